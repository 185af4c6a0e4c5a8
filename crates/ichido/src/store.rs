//! The contract of an engine. Whatever holds here is checked for every engine by one
//! conformance suite; nothing outside the store modules may touch a driver.

use std::{future::Future, sync::Arc, time::Duration};

use crate::{EndpointSpec, Error, Finding, Intake, Stats, Taken};

/// An engine. It holds no transaction type: a store runs the handler inside its own transaction.
///
/// Cancel safety: a dropped future never leaves a connection inside an open transaction in a
/// pool, and never leaves a receipt without its effect. Callers still run `receive` on a task of
/// its own, so that a client that hangs up cancels nothing half-way.
pub trait Store: Send + Sync + 'static {
    /// What runs for an event: a function, an object or a file of SQL, in the engine's own form.
    type Handler: ?Sized + Send + Sync + 'static;

    /// Handler timeout of an endpoint that sets none.
    const HANDLER_TIMEOUT: Duration;

    /// The longest handler timeout that this engine allows; what is above is refused at start.
    const HANDLER_TIMEOUT_MAX: Duration;

    /// Tells the store which endpoints it serves. Called once, before anything else, and without
    /// IO: the database may be away. The store registers them with its first connection.
    fn configure(&self, endpoints: Vec<Arc<EndpointSpec>>);

    /// Commits the receipts of a delivery, with the effect of its handler where it is sync.
    ///
    /// Returns one [`Taken`] for each event, in order, and only after COMMIT returned success.
    /// On an error nothing may be acknowledged.
    fn receive(
        &self,
        intake: Intake<Self::Handler>,
    ) -> impl Future<Output = Result<Vec<Taken>, Error>> + Send;

    /// Fails, naming the fix, when the database is away, a standby, not durable, of another schema
    /// version, or does not know what a handler in SQL needs.
    fn check(&self) -> impl Future<Output = Result<(), Error>> + Send;

    /// Figures for a person or a machine; cheap on a large history.
    fn stats(&self) -> impl Future<Output = Result<Stats, Error>> + Send;

    /// The invariants as queries. An empty list means that every one holds.
    fn audit(&self) -> impl Future<Output = Result<Vec<Finding>, Error>> + Send;

    /// Finishes what is in flight and closes connections. Receives after it are refused.
    fn close(&self) -> impl Future<Output = ()> + Send;
}
