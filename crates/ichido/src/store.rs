//! The contract of an engine. Whatever holds here is checked for every engine by one
//! conformance suite; nothing outside the store modules may touch a driver.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::{
    Claim, Claimed, EndpointSpec, Error, Failed, Fault, Finding, Intake, Stats, Taken, Worked,
};

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

    /// Claims due events, in a short transaction of its own that counts the attempt before a
    /// handler runs. Of one whose lease ran out, that one alone; at its last attempt it moves to
    /// review instead.
    ///
    /// Cancel safety: what a dropped future may have claimed comes back when its lease runs out.
    fn claim(&self, claim: &Claim<'_>) -> impl Future<Output = Result<Vec<Claimed>, Error>> + Send;

    /// Runs the handler of a claimed event in a transaction that its completion opens: the fence,
    /// the handler's writes and the mark commit together or not at all.
    ///
    /// An error says that nothing is known to have happened, for reasons that are not the
    /// handler's; the lease covers it. Cancel safety: as [`Store::receive`].
    fn process(
        &self,
        claimed: &Claimed,
        handler: &Arc<Self::Handler>,
        limit: Duration,
    ) -> impl Future<Output = Result<Worked, Error>> + Send;

    /// Records a failed attempt: the event comes back later, or needs review.
    fn fail(
        &self,
        claimed: &Claimed,
        fault: &Fault,
    ) -> impl Future<Output = Result<Failed, Error>> + Send;

    /// Gives a claimed event back as if it had not been claimed; it is due after `delay`. False:
    /// the lease was not ours any more.
    fn release(
        &self,
        claimed: &Claimed,
        delay: Duration,
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Lets go on what waits for an event of its order key that is gone: after a worker of another
    /// kind did not say that it was done, and where an endpoint asks for order no more. Returns
    /// how many events are due now because of it.
    fn sweep(&self) -> impl Future<Output = Result<u32, Error>> + Send;

    /// Changes whenever this process stored an event for a worker. Other processes are not heard.
    fn arrivals(&self) -> watch::Receiver<()>;

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
