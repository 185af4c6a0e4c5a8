//! The inbox: from a request to a committed receipt.
//!
//! It verifies the raw bytes before anything else looks at them, and it asks the store only
//! after that. It never acknowledges: it returns what was committed, and callers answer.

use std::{collections::HashMap, sync::Arc, time::Duration};

use ichido_verify::{Answer, Delivery, Refused, Rejection, Request, Timestamp, Verdict, Verifier};

use crate::{
    Endpoint, EndpointError, EndpointSpec, Error, ErrorKind, Handlers, Intake, Mode, Outcome,
    Route, Routed, Store, Taken, Target, delivery_id, endpoint::Built, receipt_id,
};

/// A receive answers within this time, or earlier where the provider wants it earlier.
pub const RECEIVE_DEADLINE: Duration = Duration::from_secs(8);

/// Endpoints and the store behind them. Cheap to clone.
pub struct Inbox<S: Store> {
    store: Arc<S>,
    endpoints: Arc<HashMap<Arc<str>, Built<S::Handler>>>,
}

impl<S: Store> Clone for Inbox<S> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), endpoints: self.endpoints.clone() }
    }
}

/// What a request turned out to be.
#[derive(Debug)]
pub enum Received {
    /// A provider's handshake: send this answer; no event came with it.
    Handshake(Answer),
    /// One result for each event of the delivery, in order. All are committed.
    Events(Vec<Taken>),
}

impl Received {
    /// The word for the whole delivery: the least finished of its events' outcomes.
    pub fn outcome(&self) -> Option<Outcome> {
        let Self::Events(taken) = self else { return None };
        let has = |outcome| taken.iter().any(|t| t.outcome == outcome);
        [Outcome::Accepted, Outcome::Processed, Outcome::Ignored, Outcome::Duplicate]
            .into_iter()
            .find(|outcome| has(*outcome))
    }
}

/// Why nothing may be acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// No endpoint of that name: 404.
    #[error("no endpoint of that name is configured")]
    UnknownEndpoint,
    /// Not verified, or a body that is refused the second time: 400, or 401 where the provider
    /// insists.
    #[error("rejected: {reason}")]
    Rejected {
        /// Why, for the log and the metrics; never for the sender.
        reason: Rejection,
        /// The status that the provider expects for a bad signature.
        status: u16,
        /// The time that the sender signed, where the time alone is the reason.
        signed_at: Option<Timestamp>,
    },
    /// Not taken, or not known to be taken: 5xx, the sender tries again.
    #[error(transparent)]
    Store(#[from] Error),
}

impl<S: Store> Inbox<S> {
    /// Checks the endpoints and tells the store of them. Does no IO: the database may be away.
    pub fn new(
        store: S,
        endpoints: impl IntoIterator<Item = Endpoint<S>>,
    ) -> Result<Self, EndpointError> {
        let mut map = HashMap::new();
        for endpoint in endpoints {
            let built = endpoint.build()?;
            let name = built.spec.name.clone();
            if map.insert(name.clone(), built).is_some() {
                let problems = vec!["configured twice: names are permanent and unique".to_owned()];
                return Err(EndpointError { name: name.to_string(), problems });
            }
        }
        store.configure(map.values().map(|built| built.spec.clone()).collect());
        Ok(Self { store: Arc::new(store), endpoints: Arc::new(map) })
    }

    /// The store, for what is an engine's own.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The settings of every endpoint.
    pub fn endpoints(&self) -> impl Iterator<Item = &Arc<EndpointSpec>> {
        self.endpoints.values().map(|built| &built.spec)
    }

    /// The settings of one endpoint.
    pub fn endpoint(&self, name: &str) -> Option<&Arc<EndpointSpec>> {
        self.endpoints.get(name).map(|built| &built.spec)
    }

    /// Who works on the types of an endpoint.
    pub(crate) fn handlers(&self, endpoint: &str) -> Option<&Handlers<S::Handler>> {
        self.endpoints.get(endpoint).map(|built| &built.handlers)
    }

    /// The verifier of an endpoint, for signing test events.
    pub fn verifier(&self, endpoint: &str) -> Option<&Arc<Verifier>> {
        self.endpoints.get(endpoint).map(|built| &built.verifier)
    }

    /// Verifies the raw bytes of `request` and finds a route for each event. No IO.
    ///
    /// For callers that join their own transaction; everyone else calls [`Inbox::receive`].
    pub fn verify(
        &self,
        endpoint: &str,
        request: Request,
        now: Timestamp,
    ) -> Result<Verified<S::Handler>, ReceiveError> {
        let built = self.endpoints.get(endpoint).ok_or(ReceiveError::UnknownEndpoint)?;
        match built.verifier.judge(request, now) {
            Ok(Verdict::Handshake(answer)) => Ok(Verified::Handshake(answer)),
            Ok(Verdict::Delivery(delivery)) => Ok(Verified::Delivery(built.route(delivery))),
            Err(Refused { reason, signed_at, .. }) => {
                let status = built.verifier.provider().bad_signature_status;
                Err(ReceiveError::Rejected { reason, status, signed_at })
            }
        }
    }

    /// Receives one request: verifies it, commits it, and says what became of its events.
    ///
    /// A 2xx may be sent only for `Ok`. Cancel safety: the database part runs on a task of its
    /// own; dropping this future cancels nothing half-way, and a retry is a duplicate.
    pub async fn receive(
        &self,
        endpoint: &str,
        request: Request,
    ) -> Result<Received, ReceiveError> {
        self.receive_and(endpoint, request, |_| {}).await
    }

    /// [`Inbox::receive`] that tells `ended` what was committed, from the task that committed it:
    /// also when the answer came too late for the caller, or the caller is gone. What `ended`
    /// owns, such as the permit of a limit, is kept for as long as the work lasts.
    pub async fn receive_and(
        &self,
        endpoint: &str,
        request: Request,
        ended: impl FnOnce(&Result<Vec<Taken>, Error>) + Send + 'static,
    ) -> Result<Received, ReceiveError> {
        match self.verify(endpoint, request, Timestamp::now())? {
            Verified::Handshake(answer) => Ok(Received::Handshake(answer)),
            Verified::Delivery(intake) => {
                let status = intake.verifier.provider().bad_signature_status;
                let taken = self.take(intake, ended).await.map_err(|error| refused(error, status));
                Ok(Received::Events(taken?))
            }
        }
    }

    /// Receives an event that we vouch for ourselves: no signature was verified. Recorded as
    /// vouched, and it never conflicts with a signed copy.
    ///
    /// Cancel safety: as [`Inbox::receive`].
    pub async fn vouch(&self, endpoint: &str, delivery: Delivery) -> Result<Taken, ReceiveError> {
        let built = self.endpoints.get(endpoint).ok_or(ReceiveError::UnknownEndpoint)?;
        let mut taken = self.take(built.route(delivery), |_| {}).await?;
        taken.pop().ok_or_else(|| Error::new(ErrorKind::Data, "a delivery without events").into())
    }

    async fn take(
        &self,
        intake: Intake<S::Handler>,
        ended: impl FnOnce(&Result<Vec<Taken>, Error>) + Send + 'static,
    ) -> Result<Vec<Taken>, Error> {
        let within = intake.endpoint.receive_within();
        let event = intake.event_name(0);
        let store = self.store.clone();
        let task = tokio::spawn(async move {
            let result = store.receive(intake).await;
            ended(&result);
            result
        });
        let taken = match tokio::time::timeout(within, task).await {
            Ok(Ok(taken)) => taken,
            Ok(Err(panic)) => {
                Err(Error::new(ErrorKind::Unknown, "receive panicked").because(panic))
            }
            Err(_) => {
                let message = format!("not committed within {} s", within.as_secs_f64());
                Err(Error::new(ErrorKind::Busy, message))
            }
        };
        taken.map_err(|error| error.about(event))
    }
}

/// Why a verified delivery was not taken.
fn refused(error: Error, status: u16) -> ReceiveError {
    match error.kind() {
        ErrorKind::RepeatedBody => {
            ReceiveError::Rejected { reason: Rejection::RepeatedBody, status, signed_at: None }
        }
        _ => error.into(),
    }
}

/// A request that was verified and not yet stored.
#[derive(Debug)]
#[must_use = "nothing is stored yet"]
pub enum Verified<H: ?Sized> {
    /// A handshake's answer.
    Handshake(Answer),
    /// A delivery, routed.
    Delivery(Intake<H>),
}

impl<H: ?Sized> Built<H> {
    /// Gives each event its receipt id and its route. Several events are always stored as async.
    fn route(&self, delivery: Delivery) -> Intake<H> {
        let sync = self.spec.mode == Mode::Sync && delivery.events.len() == 1;
        let name = &self.spec.name;
        let first = delivery.events.first().map_or("", |event| event.id());
        let delivery_id = delivery_id(name, first);
        let routes = delivery
            .events
            .iter()
            .map(|event| Routed {
                receipt: receipt_id(name, event.id()),
                route: match event.unreadable() {
                    Some(reason) => Route::Review(reason.as_str()),
                    None => route_type(&self.handlers, event.event_type(), name, sync),
                },
            })
            .collect();
        Intake {
            endpoint: self.spec.clone(),
            delivery_id,
            delivery,
            routes,
            verifier: self.verifier.clone(),
        }
    }
}

fn route_type<H: ?Sized>(
    handlers: &Handlers<H>,
    event_type: &str,
    endpoint: &Arc<str>,
    sync: bool,
) -> Route<H> {
    match handlers.find(event_type) {
        Some(Target::Handler(handler)) if sync => Route::Run(handler.clone()),
        Some(Target::Handler(_)) => Route::Queue(endpoint.clone()),
        Some(Target::Queue(queue)) => Route::Queue(queue.clone()),
        None => Route::Ignore,
    }
}

impl<S: Store> std::fmt::Debug for Inbox<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").field("endpoints", &self.endpoints.keys()).finish_non_exhaustive()
    }
}
