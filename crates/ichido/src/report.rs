//! What `stats` and `audit` report, the same for every engine. Must never hold payloads.

use serde::Serialize;

/// Figures of an inbox at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Events with work that remains, needs review not counted.
    pub unprocessed: u64,
    /// Age in seconds of the oldest of them, by the database's clock.
    pub oldest_age_seconds: Option<f64>,
    /// Events that wait for a human.
    pub needs_review: u64,
    /// Open flags on processed events.
    pub flags: u64,
    /// Same key, other content.
    pub conflicts: u64,
    /// Bodies that came under more than one event id, where the provider does not sign its ids.
    pub repeated_bodies: u64,
    /// Deliveries of events that were taken before, ever. Counted about a second late; a process
    /// that is killed takes that second's along.
    pub duplicates: u64,
    /// Received in the last hour, by endpoint and type, most frequent first; at most 50 rows.
    pub received_last_hour: Vec<TypeCount>,
    /// Messages that wait to leave.
    pub outbox_waiting: u64,
}

/// How many events of one type an endpoint received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TypeCount {
    /// The endpoint's name.
    pub endpoint: String,
    /// The provider's event type.
    pub event_type: String,
    /// How many.
    pub count: u64,
}

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The invariant's short name, e.g. `event_without_state`.
    pub invariant: String,
    /// What it says when it holds, in a sentence.
    pub promise: String,
    /// How many rows break it.
    pub count: u64,
    /// The receipt id or key of one of them.
    pub example: String,
}
