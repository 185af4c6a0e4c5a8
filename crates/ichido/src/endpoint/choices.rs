//! What the owner of an endpoint chooses: when handlers run, and what becomes of what goes wrong.
//!
//! Each choice has one word, the same in configuration, database and code, and a default that
//! loses nothing.

/// When the handler runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// In the receive transaction; the answer tells its outcome.
    #[default]
    Sync,
    /// Later, by a worker.
    Async,
}

impl Mode {
    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Async => "async",
        }
    }
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

impl OnFailure {
    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Refuse => "refuse",
        }
    }
}

impl RepeatedBody {
    /// The word in configuration and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mark => "mark",
            Self::Refuse => "refuse",
        }
    }
}

/// What an event that fails does to the events of its order key that came after it. An endpoint
/// that asks for order has them done one at a time, as their receipts committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderByKey {
    /// They wait for it, also while it needs review, until a human requeues or discards it.
    Block,
    /// They wait while it is retried. When it needs review they go on without it; a requeue puts
    /// it at the end of the line.
    Skip,
}

impl OrderByKey {
    /// The word in configuration and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Skip => "skip",
        }
    }
}
