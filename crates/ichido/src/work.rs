//! Work as a store hands it out: what is asked for, what was claimed, and what became of it.
//!
//! A claim counts the attempt before anything runs, and its lease is the fence: whatever is done
//! with a claimed event says the number, and is refused when the event was claimed again.

use std::{sync::Arc, time::Duration};

use crate::{Event, Fault};

/// Where work waits within a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Never tried.
    Fresh,
    /// Failed before, or sent back by a human.
    Retry,
    /// Replays.
    Backfill,
}

impl Lane {
    /// The word in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Retry => "retry",
            Self::Backfill => "backfill",
        }
    }
}

/// What a worker asks for.
#[derive(Debug, Clone)]
pub struct Claim<'c> {
    /// The queues.
    pub queues: &'c [Arc<str>],
    /// The lanes of each, the first of them first.
    pub lanes: &'c [Lane],
    /// At most so many events.
    pub most: usize,
    /// How long they stay invisible to others, at least.
    pub lease: Duration,
}

/// An event that is ours until its lease runs out.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The event, with the number of this attempt.
    pub event: Event,
    /// The fence: a number that is never given twice.
    pub lease: i64,
    /// The lane in which it waited.
    pub lane: Lane,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Worked {
    /// The effect and the mark are committed.
    Processed,
    /// The lease was not ours any more: nothing was done.
    Lost,
    /// The handler failed, and nothing of it stayed. To be told by [`crate::Store::fail`].
    Failed(Fault),
}

/// What became of an event after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    /// It comes back.
    Retry,
    /// It needs review.
    Review,
    /// The lease was not ours any more: nothing was recorded.
    Lost,
}
