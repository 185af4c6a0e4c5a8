//! What a human decides, of either engine.
//!
//! It must never add behaviour: what a decision does is the business of `ichido::Desk`.

use ichido::{Desk, Error, Flag, Review};
use uuid::Uuid;

use super::{Boxed, Named};

/// See [`Desk`].
pub(crate) trait Decisions {
    /// See [`Desk::reviews`].
    fn reviews(&self, most: u32) -> Boxed<'_, Result<Vec<Review>, Error>>;

    /// See [`Desk::requeue`].
    fn requeue(&self, receipt: Uuid) -> Boxed<'_, Result<bool, Error>>;

    /// See [`Desk::discard`].
    fn discard<'a>(&'a self, receipt: Uuid, reason: &'a str) -> Boxed<'a, Result<bool, Error>>;

    /// See [`Desk::flags`].
    fn flags(&self, most: u32) -> Boxed<'_, Result<Vec<Flag>, Error>>;

    /// See [`Desk::close_flag`].
    fn close_flag<'a>(&'a self, flag: &'a str, note: &'a str) -> Boxed<'a, Result<bool, Error>>;

    /// See [`Desk::replay`].
    fn replay<'a>(
        &'a self,
        receipt: Uuid,
        by: &'a str,
        reason: &'a str,
    ) -> Boxed<'a, Result<u32, Error>>;
}

impl<S: Desk> Decisions for Named<S> {
    fn reviews(&self, most: u32) -> Boxed<'_, Result<Vec<Review>, Error>> {
        Box::pin(self.1.store().reviews(most))
    }

    fn requeue(&self, receipt: Uuid) -> Boxed<'_, Result<bool, Error>> {
        Box::pin(self.1.store().requeue(receipt))
    }

    fn discard<'a>(&'a self, receipt: Uuid, reason: &'a str) -> Boxed<'a, Result<bool, Error>> {
        Box::pin(self.1.store().discard(receipt, reason))
    }

    fn flags(&self, most: u32) -> Boxed<'_, Result<Vec<Flag>, Error>> {
        Box::pin(self.1.store().flags(most))
    }

    fn close_flag<'a>(&'a self, flag: &'a str, note: &'a str) -> Boxed<'a, Result<bool, Error>> {
        Box::pin(self.1.store().close_flag(flag, note))
    }

    fn replay<'a>(
        &'a self,
        receipt: Uuid,
        by: &'a str,
        reason: &'a str,
    ) -> Boxed<'a, Result<u32, Error>> {
        Box::pin(self.1.store().replay(receipt, by, reason))
    }
}
