//! What can go wrong in a store, and what a handler can say beside "failed".
//!
//! Must never carry a body, a secret or a signature: these texts reach logs and `last_error`.

use std::{fmt, time::Duration};

use crate::EventName;

/// Any error of a handler.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What a caller has to tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Over a limit of ours (queue full, waited too long). Nothing was taken: 503.
    Busy,
    /// The database is away, a standby, or misconfigured. Nothing was taken: 503.
    Unavailable,
    /// The connection died at COMMIT and asking again gave no answer. Perhaps taken: 503.
    Unknown,
    /// The handler failed and the endpoint refuses. Nothing was taken: 500.
    Handler,
    /// The schema is missing or of another version; the message names the fix.
    Schema,
    /// The database refused a value or a statement of ours.
    Data,
    /// A known body under another id, at an endpoint that refuses that. Nothing was taken: 400.
    RepeatedBody,
}

impl ErrorKind {
    /// The label of this kind in metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown_commit",
            Self::Handler => "handler_failed",
            Self::Schema => "schema",
            Self::Data => "data",
            Self::RepeatedBody => "repeated_body",
        }
    }
}

/// An error of a store. Branch on [`Error::kind`]; the text is for logs.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<BoxError>,
    event: Option<Box<EventName>>,
}

impl Error {
    /// An error of `kind` that says what happened and, where there is one, the fix.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None, event: None }
    }

    /// The same with its cause.
    #[must_use]
    pub fn because(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same with the event that was not taken; of several, the first.
    #[must_use]
    pub(crate) fn about(mut self, event: EventName) -> Self {
        self.event = Some(Box::new(event));
        self
    }

    /// The event that was not taken, where it is known; of several, the first.
    pub fn event(&self) -> Option<&EventName> {
        self.event.as_deref()
    }

    /// What a caller branches on.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// True when the sender should try again later: the fault is ours or the database's.
    pub fn is_retryable(&self) -> bool {
        !matches!(self.kind, ErrorKind::Data | ErrorKind::RepeatedBody)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|e| e as &(dyn std::error::Error + 'static))
    }
}

/// A handler's "never try again": the event goes straight to needs review.
#[derive(Debug)]
pub struct Permanent(pub BoxError);

impl Permanent {
    /// Wraps the reason a human will read.
    pub fn new(reason: impl Into<BoxError>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Permanent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Permanent {}

/// A handler's "not now": try again after this long, without a jitter of ours.
#[derive(Debug, Clone, Copy)]
pub struct Later(pub Duration);

impl fmt::Display for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "asked to be tried again in {} s", self.0.as_secs_f64())
    }
}

impl std::error::Error for Later {}
