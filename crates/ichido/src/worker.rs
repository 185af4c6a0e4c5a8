//! The worker: claims what waits for this inbox's handlers, runs them, and says how it went.
//!
//! It never claims more than it starts at once, and gives back what it has no handler for. That a
//! second worker cannot repeat an effect is the store's business (`Store::process`), not its.

mod crew;
mod slots;
mod sweep;

use std::{
    collections::BTreeMap,
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
};
use tracing::{debug, error, info, warn};

use self::{
    crew::Crew,
    slots::{Slot, Slots},
};
use crate::{Claimed, EndpointSpec, Event, Failed, Handlers, Inbox, Store, Target, Then, Worked};

/// Handlers that run at once in one process: more than a small database makes faster, and few
/// enough for its connections.
pub const CONCURRENCY: usize = 16;
/// When an event that this worker has no handler for is due again. Another worker may know it:
/// the newer one of a rolling deploy.
const UNKNOWN_DELAY: Duration = Duration::from_secs(5);

/// What became of an attempt, as metrics and logs call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkOutcome {
    /// The effect is committed.
    Processed,
    /// The handler failed; the event comes back.
    Retry,
    /// The handler failed; the event needs review.
    Review,
    /// The lease was not ours any more: nothing was done, or somebody else finished first.
    Lost,
    /// Given back without a start.
    Released,
    /// The database could not be asked; the lease covers it.
    Unknown,
}

impl WorkOutcome {
    /// The label in metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Retry => "retry",
            Self::Review => "review",
            Self::Lost => "lost",
            Self::Released => "released",
            Self::Unknown => "unknown",
        }
    }
}

/// An attempt that ended.
#[derive(Debug)]
pub struct Ended<'e> {
    /// The event and which start of its handler this was.
    pub event: &'e Event,
    /// How long its transaction took.
    pub took: Duration,
    /// What became of it.
    pub outcome: WorkOutcome,
    /// Why it is not processed.
    pub error: Option<&'e str>,
}

type Observe = Arc<dyn Fn(&Ended<'_>) + Send + Sync>;

/// A worker for every handler of an inbox. Any number of them share a database.
#[must_use = "a worker does nothing until it runs"]
pub struct Worker<S: Store> {
    inbox: Inbox<S>,
    concurrency: usize,
    observe: Observe,
}

impl<S: Store> Inbox<S> {
    /// A worker for the endpoints of this inbox that have handlers: for what async endpoints
    /// stored, and for sync events that were kept after a failure.
    pub fn worker(&self) -> Worker<S> {
        let observe: Observe = Arc::new(|_| {});
        Worker { inbox: self.clone(), concurrency: CONCURRENCY, observe }
    }
}

impl<S: Store> Worker<S> {
    /// Sets how many handlers run at once; at least one. On PostgreSQL each needs a connection of
    /// `work_connections`.
    pub fn concurrency(mut self, most: usize) -> Self {
        self.concurrency = most.max(1);
        self
    }

    /// Is told of every attempt that ended.
    pub fn observe(mut self, observe: impl Fn(&Ended<'_>) + Send + Sync + 'static) -> Self {
        self.observe = Arc::new(observe);
        self
    }

    /// Works until `stop` is done, then claims no more and waits for the handlers that run; each
    /// ends within its own timeout.
    ///
    /// Cancel safety: dropping the future stops the claims, and aborts the handlers that run:
    /// their transactions roll back, and their events come back when the leases have run out.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let (stopping, stopped) = watch::channel(false);
        let mut crews = JoinSet::new();
        for crew in self.crews(&stopped) {
            crews.spawn(crew.run());
        }
        crews.spawn(sweep::run(self.inbox.clone(), stopped.clone()));
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(crew) = crews.join_next() => tell(crew),
            }
        }
        stopping.send_replace(true);
        while let Some(crew) = crews.join_next().await {
            tell(crew);
        }
    }

    /// One crew for all endpoints of one lease, and one for each that limits its concurrency.
    fn crews(&self, stopped: &watch::Receiver<bool>) -> Vec<Crew<S>> {
        let mut shared: BTreeMap<Duration, Vec<Arc<EndpointSpec>>> = BTreeMap::new();
        let mut own = Vec::new();
        for spec in self.inbox.endpoints().filter(|spec| self.has_handlers(spec)) {
            match spec.concurrency {
                Some(most) => own.push((spec.lease, vec![spec.clone()], most.get())),
                None => shared.entry(spec.lease).or_default().push(spec.clone()),
            }
        }
        let all = shared.into_iter().map(|(lease, specs)| (lease, specs, self.concurrency));
        let slots = Slots::new(self.concurrency);
        all.chain(own)
            .map(|(lease, specs, most)| {
                let mut queues: Vec<_> = specs.iter().map(|spec| spec.name.clone()).collect();
                queues.sort();
                let hand = Hand { inbox: self.inbox.clone(), observe: self.observe.clone() };
                Crew::new(Arc::new(hand), queues, lease, slots.within(most), stopped.clone())
            })
            .collect()
    }

    fn has_handlers(&self, spec: &EndpointSpec) -> bool {
        self.inbox.handlers(&spec.name).is_some_and(Handlers::has_own)
    }
}

impl<S: Store> std::fmt::Debug for Worker<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("concurrency", &self.concurrency).finish_non_exhaustive()
    }
}

/// A task of ours ended; it should not have panicked.
fn tell(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        error!(%error, "a worker panicked outside its handlers; the leases cover what it held");
    }
}

/// What runs a claimed event.
struct Hand<S: Store> {
    inbox: Inbox<S>,
    observe: Observe,
}

impl<S: Store> Hand<S> {
    fn store(&self) -> &S {
        self.inbox.store()
    }

    /// Works on a claimed event and records how it went. The slot is free when that is done.
    async fn work(self: Arc<Self>, claimed: Claimed, slot: Slot) {
        let began = Instant::now();
        let endpoint = &claimed.event.endpoint;
        let target = self.inbox.handlers(endpoint).and_then(|h| h.find(&claimed.event.event_type));
        let spec = self.inbox.endpoint(endpoint);
        let (outcome, error) = if let (Some(Target::Handler(handler)), Some(spec)) = (target, spec)
        {
            self.run(&claimed, handler, spec.handler_timeout).await
        } else {
            let why = "this worker has no handler for its type; another one may";
            (self.release(&claimed, UNKNOWN_DELAY).await, Some(why.to_owned()))
        };
        let took = began.elapsed();
        let ended = Ended { event: &claimed.event, took, outcome, error: error.as_deref() };
        log(&ended);
        (self.observe)(&ended);
        drop(slot);
    }

    async fn run(
        &self,
        claimed: &Claimed,
        handler: &Arc<S::Handler>,
        limit: Duration,
    ) -> (WorkOutcome, Option<String>) {
        let fault = match self.store().process(claimed, handler, limit).await {
            Ok(Worked::Processed) => return (WorkOutcome::Processed, None),
            Ok(Worked::Lost) => return (WorkOutcome::Lost, None),
            Ok(Worked::Failed(fault)) => fault,
            Err(error) => {
                return (self.release(claimed, Duration::ZERO).await, Some(error.to_string()));
            }
        };
        let outcome = match self.store().fail(claimed, &fault).await {
            Ok(Failed::Retry) => WorkOutcome::Retry,
            Ok(Failed::Review) => WorkOutcome::Review,
            Ok(Failed::Lost) => WorkOutcome::Lost,
            Err(error) => {
                warn!(%error, "a failed attempt was not recorded; its lease covers it");
                WorkOutcome::Unknown
            }
        };
        let asked = match fault.then {
            Then::Review if outcome == WorkOutcome::Review => "permanent: ",
            _ => "",
        };
        (outcome, Some(format!("{asked}{}", fault.text)))
    }

    /// Gives back what is not started. Where even that cannot be said, the lease says it later.
    async fn release(&self, claimed: &Claimed, delay: Duration) -> WorkOutcome {
        match self.store().release(claimed, delay).await {
            Ok(true) => WorkOutcome::Released,
            Ok(false) => WorkOutcome::Lost,
            Err(error) => {
                debug!(%error, "not given back; the lease covers it");
                WorkOutcome::Unknown
            }
        }
    }
}

fn log(ended: &Ended<'_>) {
    let event = ended.event;
    let (endpoint, id, event_type) = (&*event.endpoint, &*event.id, &*event.event_type);
    let (attempt, took_ms) = (event.attempt, ended.took.as_millis());
    let (outcome, error) = (ended.outcome.as_str(), ended.error);
    match ended.outcome {
        WorkOutcome::Processed => {
            debug!(endpoint, id, event_type, attempt, took_ms, "{outcome}");
        }
        WorkOutcome::Released => {
            info!(endpoint, id, event_type, error, "{outcome}");
        }
        _ => warn!(endpoint, id, event_type, attempt, took_ms, error, "{outcome}"),
    }
}
