//! What a human decides about events: those that need review, flags, and runs that are asked for
//! again.
//!
//! It must never decide by itself, and never drop anything: a discarded event stays, with the
//! reason.

use std::future::Future;

use serde::Serialize;
use uuid::Uuid;

use crate::{Error, Store};

/// An event that needs review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Review {
    /// The receipt under which it is stored.
    pub receipt: Uuid,
    /// The endpoint's name.
    pub endpoint: String,
    /// The provider's id of it.
    pub event_id: String,
    /// The provider's type of it.
    pub event_type: String,
    /// How often a handler was started for it.
    pub attempts: u32,
    /// Since when, as RFC 3339 in UTC.
    pub since: String,
    /// The last error, or why nothing could be tried.
    pub reason: String,
}

/// An open flag: a handler's note on an event that was processed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flag {
    /// The flag's own id.
    pub flag: String,
    /// The endpoint's name.
    pub endpoint: String,
    /// The provider's id of the event.
    pub event_id: String,
    /// When, as RFC 3339 in UTC.
    pub raised_at: String,
    /// The handler's words.
    pub reason: String,
}

/// The decisions, each in a transaction of its own. Cancel safety: a decision is made whole or not
/// at all, whether or not anyone waits for the answer.
pub trait Desk: Store {
    /// Events that need review, the longest waiting first.
    fn reviews(&self, most: u32) -> impl Future<Output = Result<Vec<Review>, Error>> + Send;

    /// Sends an event that needs review back to its queue with fresh attempts; its history stays.
    /// False: it does not wait for a human (any more).
    ///
    /// # Errors
    /// When its bytes are no longer kept.
    fn requeue(&self, receipt: Uuid) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Ends an event that needs review without processing it. It stays, with the reason, and can
    /// be replayed. False: it does not wait for a human (any more).
    ///
    /// # Errors
    /// When the reason is empty.
    fn discard(
        &self,
        receipt: Uuid,
        reason: &str,
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Open flags, the oldest first.
    fn flags(&self, most: u32) -> impl Future<Output = Result<Vec<Flag>, Error>> + Send;

    /// Closes a flag with a note. False: it is not open (any more).
    fn close_flag(
        &self,
        flag: &str,
        note: &str,
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Has an event that is done run again, as a new run whose number it returns; what its earlier
    /// runs did stays. Its messages carry the same keys.
    ///
    /// # Errors
    /// When the event is unknown or not done, when its bytes are no longer kept, or when it is not
    /// said who asks and why.
    fn replay(
        &self,
        receipt: Uuid,
        by: &str,
        reason: &str,
    ) -> impl Future<Output = Result<u32, Error>> + Send;
}
