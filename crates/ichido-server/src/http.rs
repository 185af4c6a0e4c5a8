//! HTTP/1.1: sends each request where it belongs.
//!
//! In the order of the data: `listener` accepts, `places` bounds and `line` watches what was
//! accepted, `connection` speaks, `body` reads, `webhook` and `health` answer.
//!
//! It must never acknowledge: only `webhook` answers 2xx to an event, after the commit.

mod answer;
mod body;
mod clock;
mod connection;
mod framing;
mod health;
mod line;
mod listener;
mod places;
mod request_id;
mod watched;
mod webhook;

use std::sync::Arc;

use hyper::{Request, body::Incoming};
use tokio::sync::{Semaphore, watch};

use self::{
    answer::Answer, body::Bodies, clock::Clock, health::Readiness, line::Line,
    request_id::RequestId,
};
pub(crate) use self::{health::first_check, listener::serve};
use crate::{config::Limits, engine::Engine, metrics::Metrics, tls::Tls};

/// What every request needs.
pub(crate) struct App {
    engine: Arc<dyn Engine>,
    metrics: Metrics,
    limits: Limits,
    bodies: Bodies,
    requests: Arc<Semaphore>,
    /// True once nothing may take longer.
    cut_short: watch::Sender<bool>,
    readiness: Readiness,
    clock: Clock,
}

/// What a listener answers, and how it speaks.
#[derive(Clone)]
pub(crate) struct Face {
    pub(crate) routes: Routes,
    pub(crate) tls: Option<Arc<Tls>>,
}

impl Face {
    /// What its URLs begin with.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// What a listener answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Routes {
    /// `/webhooks/{endpoint}`.
    pub(crate) webhooks: bool,
    /// `/livez` and `/readyz`.
    pub(crate) health: bool,
    /// `/metrics`, and the reason in `/readyz`.
    pub(crate) details: bool,
}

impl App {
    /// An application over an open inbox.
    pub(crate) fn new(engine: Arc<dyn Engine>, limits: Limits) -> Self {
        let endpoints = engine.endpoints();
        Self {
            metrics: Metrics::new(endpoints.iter().map(|spec| &spec.name)),
            clock: Clock::new(endpoints.iter().map(|spec| &spec.name)),
            bodies: Bodies::new(&limits),
            requests: Arc::new(Semaphore::new(limits.requests_max)),
            cut_short: watch::Sender::new(false),
            readiness: Readiness::default(),
            limits,
            engine,
        }
    }

    /// The inbox behind it.
    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    /// The metrics of the process.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Makes `/readyz` say no, so that a load balancer looks elsewhere.
    pub(crate) fn stopping(&self) {
        self.readiness.stopping();
    }

    /// Answers what is in flight with 503, now.
    fn cut_short(&self) {
        self.cut_short.send_replace(true);
    }

    /// Waits until no delivery is at work, also none whose sender is gone.
    pub(crate) async fn drained(&self) {
        let all = u32::try_from(self.limits.requests_max).unwrap_or(u32::MAX);
        // An error says that the semaphore is closed, which it never is.
        let _ = self.requests.acquire_many(all).await;
    }

    async fn answer(&self, line: &Line, face: &Face, request: Request<Incoming>) -> Answer {
        let id = RequestId::new();
        self.metrics.edge.in_flight.inc();
        let in_flight = Leave(self);
        let mut cut_short = self.cut_short.subscribe();
        let mut answer = tokio::select! {
            biased;
            answer = self.route((line, id), face.routes, request) => answer,
            _ = cut_short.wait_for(|cut| *cut) => answer::unavailable(self.limits.retry_after.0),
        };
        drop(in_flight);
        if line.is_unread() {
            answer = answer::closing(answer);
        }
        answer::complete(&mut answer, id, face.tls.is_some());
        self.metrics.answered(answer.status().as_u16());
        answer
    }

    async fn route(
        &self,
        (line, id): (&Line, RequestId),
        routes: Routes,
        request: Request<Incoming>,
    ) -> Answer {
        if !framing::is_sound(&request) {
            return answer::malformed();
        }
        let path = request.uri().path();
        if routes.webhooks && path.starts_with(webhook::PREFIX) {
            return webhook::receive(self, line, id, request).await;
        }
        match path {
            "/livez" if routes.health => health::live(request.method()),
            "/readyz" if routes.health => health::ready(self, routes, request.method()).await,
            "/metrics" if routes.details => health::metrics(self, request.method()),
            _ => answer::not_found(),
        }
    }
}

/// Counts a request out, also when its future is dropped.
struct Leave<'a>(&'a App);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.metrics.edge.in_flight.dec();
    }
}
