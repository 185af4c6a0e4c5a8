//! One configured place that receives: name, provider, secrets, mode and handlers.
//!
//! What cannot work is refused here, at start, with the fix named. An endpoint never lets a
//! setting through that would lose or double an event later.

mod choices;
mod contradictions;
mod span;

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use ichido_verify::{ConfigError, Provider, Secret, Settings, Verifier};

pub use self::{
    choices::{Mode, OnFailure, OrderByKey, RepeatedBody},
    span::span_text,
};
use crate::{Handlers, PatternError, SqlHandler, Store, Target};

/// Longest name: it is part of a URL, of metrics and of every key.
pub const NAME_MAX_BYTES: usize = 63;
/// How long a claimed event is invisible to other workers, unless the endpoint says otherwise.
pub const LEASE: Duration = Duration::from_mins(1);
/// Starts of a handler before an event needs review.
pub const MAX_ATTEMPTS: u16 = 10;
/// How long an identity is remembered: longer than any way back that we know (30 days) + 24 h.
pub const KEEP_IDENTITY: Duration = Duration::from_hours(24 * 90);

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
    /// Whether the events of one order key are done one at a time, in their order.
    pub order_by_key: Option<OrderByKey>,
    /// How long a handler may take.
    pub handler_timeout: Duration,
    /// How long a claimed event is invisible to other workers.
    pub lease: Duration,
    /// Starts of a handler before the event needs review.
    pub max_attempts: u16,
    /// How many of its handlers a worker runs at once; `None`: as many as the worker may.
    pub concurrency: Option<NonZeroUsize>,
    /// How long the identity of an event outlives it.
    pub keep_identity: Duration,
    /// Patterns that have a handler; which types are `ignored` is configuration.
    pub patterns: Vec<String>,
    /// False where the provider's signature does not cover the event id.
    pub id_signed: bool,
    /// The provider's events name what they are about, so that they can be put in order.
    pub has_order_key: bool,
    /// The provider wants its answer within this time; ours comes earlier.
    pub answer_within: Duration,
    /// How far a signed timestamp may be from now; `None` where none is signed.
    pub tolerance: Option<Duration>,
    /// The handlers that are SQL, with their patterns: a store can look at them before any event.
    pub sql: Vec<(String, Arc<SqlHandler>)>,
    /// What logs call the handlers.
    names: Handlers<str>,
}

impl EndpointSpec {
    /// A receive is answered within this time: earlier than the provider gives up, and never
    /// later than [`crate::RECEIVE_DEADLINE`].
    pub fn receive_within(&self) -> Duration {
        crate::RECEIVE_DEADLINE.min(self.answer_within.mul_f64(0.9))
    }

    /// What logs call the handler of `event_type`: its file of SQL, else its pattern.
    pub fn handler_name(&self, event_type: &str) -> Option<&Arc<str>> {
        self.names.find(event_type).map(|target| match target {
            Target::Handler(name) | Target::Queue(name) => name,
        })
    }
}

/// Why an endpoint was refused at start.
#[derive(Debug, thiserror::Error)]
#[error("endpoint `{name}`: {}", problems.join("; "))]
pub struct EndpointError {
    /// The endpoint's name.
    pub name: String,
    /// All that is wrong, each with how to mend it.
    pub problems: Vec<String>,
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
    order_by_key: Option<OrderByKey>,
    handler_timeout: Option<Duration>,
    lease: Duration,
    max_attempts: u16,
    concurrency: Option<NonZeroUsize>,
    keep_identity: Duration,
    handlers: Handlers<S::Handler>,
    sql: Vec<(String, Arc<SqlHandler>)>,
    names: Handlers<str>,
    /// Mistakes in a chain of calls, told when the inbox opens.
    refused: Vec<PatternError>,
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
            order_by_key: None,
            handler_timeout: None,
            lease: LEASE,
            max_attempts: MAX_ATTEMPTS,
            concurrency: None,
            keep_identity: KEEP_IDENTITY,
            handlers: Handlers::default(),
            sql: Vec::new(),
            names: Handlers::default(),
            refused: Vec::new(),
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

    /// Has the events of one order key done one at a time, in the order in which their receipts
    /// committed: for async endpoints. What the key is, is the provider's: the invoice or the
    /// order that an event is about.
    pub fn order_by_key(mut self, policy: OrderByKey) -> Self {
        self.order_by_key = Some(policy);
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

    /// Sets how many of its handlers one worker runs at once: for a handler that the database, or
    /// a rival for its rows, bears only so often.
    pub fn concurrency(mut self, most: NonZeroUsize) -> Self {
        self.concurrency = Some(most);
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
    pub(crate) fn target(self, pattern: &str, target: Target<S::Handler>) -> Self {
        self.named_target(pattern, pattern, target)
    }

    /// Adds a file of SQL as the handler for `pattern`; the engines' `on_sql` end here.
    pub(crate) fn sql_target(
        mut self,
        pattern: &str,
        sql: &Arc<SqlHandler>,
        target: Target<S::Handler>,
    ) -> Self {
        self.sql.push((pattern.to_owned(), sql.clone()));
        self.named_target(pattern, &sql.source, target)
    }

    fn named_target(mut self, pattern: &str, name: &str, target: Target<S::Handler>) -> Self {
        match self.handlers.add(pattern, target) {
            // The same pattern cannot be refused after that.
            Ok(()) => drop(self.names.add(pattern, Target::Handler(name.into()))),
            Err(error) => self.refused.push(error),
        }
        self
    }

    /// Its settings with every default filled in, whether or not they can work together. Secrets
    /// are not looked at.
    ///
    /// # Errors
    /// When the provider is unknown, for it has a say in the defaults.
    pub fn spec(&self) -> Result<EndpointSpec, ConfigError> {
        Ok(self.spec_of(&Provider::of(&self.provider, &self.settings)?))
    }

    /// Checks the endpoint without opening an inbox.
    pub fn check(&self) -> Result<(), EndpointError> {
        self.judge(self.verifier()).map(drop)
    }

    /// [`Endpoint::check`] of everything but its secrets, for when they cannot be had.
    pub fn check_without_secrets(&self) -> Result<(), EndpointError> {
        self.judge(Verifier::check(&self.provider, &self.settings))
    }

    fn verifier(&self) -> Result<Verifier, ConfigError> {
        Verifier::new(&self.provider, &self.settings, &self.secrets)
    }

    /// Adds what is wrong here to what is wrong with the provider's scheme.
    fn judge<T>(&self, scheme: Result<T, ConfigError>) -> Result<T, EndpointError> {
        let mut problems: Vec<String> = name_problem(&self.name).into_iter().collect();
        problems.extend(self.refused.iter().map(ToString::to_string));
        let known = scheme.map_err(|error| problems.extend(error.problems().iter().cloned()));
        if let Ok(row) = Provider::of(&self.provider, &self.settings) {
            let spec = self.spec_of(&row);
            problems.extend(contradictions::of(&spec, row.retry_horizon, S::HANDLER_TIMEOUT_MAX));
        }
        match known {
            Ok(known) if problems.is_empty() => Ok(known),
            _ => Err(EndpointError { name: self.name.clone(), problems }),
        }
    }

    fn spec_of(&self, row: &Provider) -> EndpointSpec {
        let handler_timeout = self.handler_timeout.unwrap_or_else(|| match self.mode {
            Mode::Sync => S::HANDLER_TIMEOUT.min(row.deadline.mul_f64(0.6)),
            Mode::Async => S::HANDLER_TIMEOUT,
        });
        EndpointSpec {
            name: self.name.as_str().into(),
            provider: self.provider.as_str().into(),
            mode: self.mode,
            on_failure: self.on_failure,
            repeated_body: self.repeated_body,
            order_by_key: self.order_by_key,
            handler_timeout,
            lease: self.lease,
            max_attempts: self.max_attempts,
            concurrency: self.concurrency,
            keep_identity: self.keep_identity,
            patterns: self.handlers.patterns(),
            id_signed: row.id_signed,
            has_order_key: row.has_order_key(),
            answer_within: row.deadline,
            tolerance: row.tolerance().map(|default| self.settings.tolerance.unwrap_or(default)),
            sql: self.sql.clone(),
            names: self.names.clone(),
        }
    }

    pub(crate) fn build(self) -> Result<Built<S::Handler>, EndpointError> {
        let verifier = self.judge(self.verifier())?;
        let spec = Arc::new(self.spec_of(verifier.provider()));
        Ok(Built { spec, handlers: self.handlers, verifier: Arc::new(verifier) })
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

fn name_problem(name: &str) -> Option<String> {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let good = name.starts_with(word) && name.chars().all(|c| word(c) || c == '-' || c == '_');
    (!good || name.len() > NAME_MAX_BYTES)
        .then(|| format!("a name is a-z, 0-9, `-` and `_`, at most {NAME_MAX_BYTES} bytes"))
}
