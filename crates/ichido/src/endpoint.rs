//! One configured place that receives: name, provider, secrets, mode and handlers.
//!
//! What cannot work is refused here, at start, with the fix named. An endpoint never lets a
//! setting through that would lose or double an event later.

use std::{sync::Arc, time::Duration};

use ichido_verify::{ConfigError, Secret, Settings, Verifier};

use crate::{Handlers, PatternError, Store, Target};

/// Longest name: it is part of a URL, of metrics and of every key.
pub const NAME_MAX_BYTES: usize = 63;
/// How long a claimed event is invisible to other workers, unless the endpoint says otherwise.
pub const LEASE: Duration = Duration::from_mins(1);
/// Starts of a handler before an event needs review.
pub const MAX_ATTEMPTS: u16 = 10;
/// How long an identity is remembered: longer than any way back that we know (30 days) + 24 h.
pub const KEEP_IDENTITY: Duration = Duration::from_hours(24 * 90);
/// Slack between the provider's last retry and the end of the memory of its event.
const IDENTITY_MARGIN: Duration = Duration::from_hours(24);

/// When the handler runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// In the receive transaction; the answer tells its outcome.
    #[default]
    Sync,
    /// Later, by a worker.
    Async,
}

/// What becomes of a sync event whose handler fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Undo the handler's writes, keep the event as work with its error, answer `accepted`.
    #[default]
    Keep,
    /// Undo everything and answer 5xx; the provider sends it again.
    Refuse,
}

/// What becomes of signed bytes that come again under another event id, where the provider's
/// signature does not cover the id. A retry keeps its id, and is a duplicate like any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RepeatedBody {
    /// Take it, and mark it for a human: two honest events can be alike.
    #[default]
    Mark,
    /// Reject it, and store nothing of it: for senders whose bodies are never alike.
    Refuse,
}

/// The settings of an endpoint that a store needs. Immutable once the inbox is open.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EndpointSpec {
    /// Permanent: it is half of every event key.
    pub name: Arc<str>,
    /// The provider's name in the catalogue.
    pub provider: Arc<str>,
    /// Sync or async.
    pub mode: Mode,
    /// What becomes of a failed sync event.
    pub on_failure: OnFailure,
    /// What becomes of a known body under another, unsigned id.
    pub repeated_body: RepeatedBody,
    /// How long a handler may take.
    pub handler_timeout: Duration,
    /// How long a claimed event is invisible to other workers.
    pub lease: Duration,
    /// Starts of a handler before the event needs review.
    pub max_attempts: u16,
    /// How long the identity of an event outlives it.
    pub keep_identity: Duration,
    /// Patterns that have a handler; which types are `ignored` is configuration.
    pub patterns: Vec<String>,
    /// False where the provider's signature does not cover the event id.
    pub id_signed: bool,
    /// The provider wants its answer within this time; ours comes earlier.
    pub answer_within: Duration,
}

impl EndpointSpec {
    /// A receive is answered within this time: earlier than the provider gives up, and never
    /// later than [`crate::RECEIVE_DEADLINE`].
    pub fn receive_within(&self) -> Duration {
        crate::RECEIVE_DEADLINE.min(self.answer_within.mul_f64(0.9))
    }
}

/// Why an endpoint was refused at start.
#[derive(Debug, thiserror::Error)]
#[error("endpoint `{name}`: {problem}")]
pub struct EndpointError {
    /// The endpoint's name.
    pub name: String,
    /// What is wrong and how to mend it.
    pub problem: String,
}

/// An endpoint while it is being configured. `on` is an inherent method of each engine's
/// endpoint: see [`crate::postgres`] and [`crate::sqlite`].
#[must_use = "an endpoint receives nothing until it is given to `Inbox::new`"]
pub struct Endpoint<S: Store> {
    name: String,
    provider: String,
    secrets: Vec<Secret>,
    settings: Settings,
    mode: Mode,
    on_failure: OnFailure,
    repeated_body: RepeatedBody,
    handler_timeout: Option<Duration>,
    lease: Duration,
    max_attempts: u16,
    keep_identity: Duration,
    handlers: Handlers<S::Handler>,
    /// The first mistake in a chain of calls, told when the inbox opens.
    refused: Option<PatternError>,
}

impl<S: Store> Endpoint<S> {
    /// An endpoint `name` that receives from `provider`. Sync and `keep` unless told otherwise.
    pub fn new(name: impl Into<String>, provider: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            provider: provider.into(),
            secrets: Vec::new(),
            settings: Settings::default(),
            mode: Mode::default(),
            on_failure: OnFailure::default(),
            repeated_body: RepeatedBody::default(),
            handler_timeout: None,
            lease: LEASE,
            max_attempts: MAX_ATTEMPTS,
            keep_identity: KEEP_IDENTITY,
            handlers: Handlers::default(),
            refused: None,
        }
    }

    /// Adds a secret. All of them are tried, so a rotation is: add the new one, later drop the
    /// old one.
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secrets.push(Secret::new(secret));
        self
    }

    /// Sets what the provider's row leaves open: tolerance, public URL, a generic scheme.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets when handlers run.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets what becomes of a sync event whose handler fails.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// Sets what becomes of a known body under another, unsigned id.
    pub fn repeated_body(mut self, repeated_body: RepeatedBody) -> Self {
        self.repeated_body = repeated_body;
        self
    }

    /// Sets how long a handler may take.
    pub fn handler_timeout(mut self, timeout: Duration) -> Self {
        self.handler_timeout = Some(timeout);
        self
    }

    /// Sets how long a claimed event is invisible to other workers.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets how many starts of a handler an event has before it needs review.
    pub fn max_attempts(mut self, attempts: u16) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// Sets how long the identity of an event is remembered.
    pub fn keep_identity(mut self, keep: Duration) -> Self {
        self.keep_identity = keep;
        self
    }

    /// Leaves the types of `pattern` to an outside worker that claims from `queue`.
    pub fn leave(self, pattern: &str, queue: &str) -> Self {
        self.target(pattern, Target::Queue(queue.into()))
    }

    /// Adds who works on `pattern`; the engines' `on` methods end here.
    pub(crate) fn target(mut self, pattern: &str, target: Target<S::Handler>) -> Self {
        if let Err(error) = self.handlers.add(pattern, target) {
            self.refused.get_or_insert(error);
        }
        self
    }

    /// Checks the endpoint without opening an inbox, and gives its settings with every default
    /// filled in.
    pub fn check(self) -> Result<Arc<EndpointSpec>, EndpointError> {
        Ok(self.build()?.spec)
    }

    pub(crate) fn build(self) -> Result<Built<S::Handler>, EndpointError> {
        let name = self.name.clone();
        self.build_inner().map_err(|problem| EndpointError { name, problem })
    }

    fn build_inner(self) -> Result<Built<S::Handler>, String> {
        check_name(&self.name)?;
        if let Some(error) = self.refused {
            return Err(error.to_string());
        }
        let verifier = Verifier::new(&self.provider, &self.settings, &self.secrets)
            .map_err(|e: ConfigError| e.to_string())?;
        let row = verifier.provider();
        let handler_timeout = self.handler_timeout.unwrap_or_else(|| match self.mode {
            Mode::Sync => S::HANDLER_TIMEOUT.min(row.deadline.mul_f64(0.6)),
            Mode::Async => S::HANDLER_TIMEOUT,
        });
        let spec = EndpointSpec {
            name: self.name.into(),
            provider: self.provider.into(),
            mode: self.mode,
            on_failure: self.on_failure,
            repeated_body: self.repeated_body,
            handler_timeout,
            lease: self.lease,
            max_attempts: self.max_attempts,
            keep_identity: self.keep_identity,
            patterns: self.handlers.patterns(),
            id_signed: row.id_signed,
            answer_within: row.deadline,
        };
        refuse_contradictions(&spec, row.retry_horizon, S::HANDLER_TIMEOUT_MAX)?;
        Ok(Built { spec: Arc::new(spec), handlers: self.handlers, verifier: Arc::new(verifier) })
    }
}

impl<S: Store> std::fmt::Debug for Endpoint<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("name", &self.name)
            .field("provider", &self.provider)
            .field("handlers", &self.handlers)
            .finish_non_exhaustive()
    }
}

/// A checked endpoint, ready to receive.
pub(crate) struct Built<H: ?Sized> {
    pub(crate) spec: Arc<EndpointSpec>,
    pub(crate) handlers: Handlers<H>,
    pub(crate) verifier: Arc<Verifier>,
}

fn check_name(name: &str) -> Result<(), String> {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let good = name.starts_with(word) && name.chars().all(|c| word(c) || c == '-' || c == '_');
    if good && name.len() <= NAME_MAX_BYTES {
        return Ok(());
    }
    Err(format!("a name is a-z, 0-9, `-` and `_`, at most {NAME_MAX_BYTES} bytes"))
}

/// The settings that would lose or double an event, each refused with its fix.
fn refuse_contradictions(
    spec: &EndpointSpec,
    retry_horizon: Option<Duration>,
    handler_timeout_max: Duration,
) -> Result<(), String> {
    let timeout = spec.handler_timeout;
    let (timeout_s, lease_s) = (timeout.as_secs_f64(), spec.lease.as_secs_f64());
    if timeout > handler_timeout_max {
        let max_s = handler_timeout_max.as_secs_f64();
        return Err(format!("handler_timeout is {timeout_s} s; this engine allows {max_s} s"));
    }
    if timeout.is_zero() {
        return Err("handler_timeout is 0: give handlers some time".into());
    }
    if spec.lease <= timeout {
        return Err(format!(
            "lease ({lease_s} s) must be longer than handler_timeout ({timeout_s} s): a handler \
             that still runs would be started again"
        ));
    }
    let ours = spec.receive_within();
    if spec.mode == Mode::Sync && timeout >= ours {
        return Err(format!(
            "handler_timeout ({timeout_s} s) must be below the {} s within which {} is answered: \
             lower it, or use mode = \"async\"",
            ours.as_secs_f64(),
            spec.provider
        ));
    }
    if spec.max_attempts == 0 {
        return Err("max_attempts is 0: no handler would ever start".into());
    }
    if spec.on_failure == OnFailure::Refuse && retry_horizon.is_none() {
        return Err(format!(
            "on_failure = \"refuse\" loses events: {} never sends again what was refused; use \
             \"keep\"",
            spec.provider
        ));
    }
    if spec.repeated_body == RepeatedBody::Refuse && spec.id_signed {
        return Err(format!(
            "repeated_body = \"refuse\" has nothing to do: {} signs the event id, so that a \
             replay is a duplicate; leave it out",
            spec.provider
        ));
    }
    let floor = retry_horizon.unwrap_or_default() + IDENTITY_MARGIN;
    if spec.keep_identity < floor {
        return Err(format!(
            "keep_identity ({} h) must be at least {} h: {} may still send the event again, and \
             it would take effect twice",
            spec.keep_identity.as_secs() / 3600,
            floor.as_secs() / 3600,
            spec.provider
        ));
    }
    Ok(())
}
