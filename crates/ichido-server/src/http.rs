//! HTTP/1.1: accepts connections within limits, sends each request where it belongs, and ends
//! without dropping what is in flight.
//!
//! It must never acknowledge: only `webhook` answers 2xx to an event, after the commit.

mod answer;
mod body;
mod health;
mod request_id;
mod webhook;

use std::{
    convert::Infallible,
    future::Future,
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hyper::{
    Request, Version, body::Incoming, header::HOST, server::conn::http1, service::service_fn,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tracing::warn;

pub(crate) use self::health::first_check;
use self::{answer::Answer, body::Bodies, health::Readiness, request_id::RequestId};
use crate::{config::Limits, engine::Engine, metrics::Metrics};

/// Pause after `accept` failed, for want of file descriptors for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What every request needs.
pub(crate) struct App {
    engine: Arc<dyn Engine>,
    metrics: Metrics,
    limits: Limits,
    bodies: Bodies,
    requests: Semaphore,
    readiness: Readiness,
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
            bodies: Bodies::new(&limits),
            requests: Semaphore::new(limits.requests_max),
            readiness: Readiness::default(),
            limits,
            engine,
        }
    }

    /// The inbox behind it.
    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    /// Makes `/readyz` say no, so that a load balancer looks elsewhere.
    pub(crate) fn stopping(&self) {
        self.readiness.stopping();
    }

    async fn answer(&self, routes: Routes, request: Request<Incoming>) -> Answer {
        let id = RequestId::new();
        self.metrics.in_flight.inc();
        let in_flight = Leave(self);
        let mut answer = self.route(routes, id, request).await;
        drop(in_flight);
        answer::complete(&mut answer, id);
        self.metrics.answered(answer.status().as_u16());
        answer
    }

    async fn route(&self, routes: Routes, id: RequestId, request: Request<Incoming>) -> Answer {
        if !has_its_host(&request) {
            return answer::bad_request();
        }
        let path = request.uri().path();
        if routes.webhooks && path.starts_with(webhook::PREFIX) {
            return webhook::receive(self, id, request).await;
        }
        match path {
            "/livez" if routes.health => health::live(request.method()),
            "/readyz" if routes.health => health::ready(self, routes, request.method()).await,
            "/metrics" if routes.details => health::metrics(self, request.method()),
            _ => answer::not_found(),
        }
    }
}

/// HTTP/1.1 demands one `Host`; two of them are somebody's trick. Which host it names is nobody's
/// business here: paths alone tell endpoints apart.
fn has_its_host(request: &Request<Incoming>) -> bool {
    let hosts = request.headers().get_all(HOST).iter().count();
    hosts == 1 || (hosts == 0 && request.version() == Version::HTTP_10)
}

/// Counts a request out, also when its future is dropped.
struct Leave<'a>(&'a App);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.metrics.in_flight.dec();
    }
}

/// Accepts on `listener` until `stop` is done, then gives what is in flight `deadline` to finish.
pub(crate) async fn serve(
    listener: TcpListener,
    app: Arc<App>,
    routes: Routes,
    stop: impl Future<Output = ()>,
    deadline: Duration,
) {
    let places = Arc::new(Semaphore::new(app.limits.connections_max));
    let connections = GracefulShutdown::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, place)) => {
                let watcher = connections.watcher();
                tokio::spawn(connection(stream, place, watcher, app.clone(), routes));
            }
            Err(error) => {
                warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    let open = connections.count();
    if timeout(deadline, connections.shutdown()).await.is_err() {
        warn!(open, "requests were still in flight at the shutdown deadline");
    }
}

/// A connection and its place. Waits for the place first: who finds none stays in the kernel's
/// queue.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, place))
}

async fn connection(
    stream: TcpStream,
    place: OwnedSemaphorePermit,
    watcher: Watcher,
    app: Arc<App>,
    routes: Routes,
) {
    app.metrics.connections.inc();
    let spoke = AtomicBool::new(false);
    let service = service_fn(|request| {
        spoke.store(true, Ordering::Relaxed);
        let app = &app;
        async move { Ok::<_, Infallible>(app.answer(routes, request).await) }
    });
    let http = http1::Builder::new()
        .timer(TokioTimer::new())
        // Covers the wait for the next request, too, hence the longer of the two times.
        .header_read_timeout(app.limits.idle_timeout.0)
        .max_headers(app.limits.headers_max)
        // The buffer may hold more than it was told to: only the second limit is exact.
        .max_buf_size(app.limits.header_bytes_max)
        .max_header_size(app.limits.header_bytes_max)
        .serve_connection(TokioIo::new(stream), service);
    {
        let mut http = pin!(watcher.watch(http));
        // An error here is the client's: gone, too slow, or not HTTP. hyper answered it if it
        // could.
        let first = timeout(app.limits.header_timeout.0, &mut http).await;
        if first.is_err() && spoke.load(Ordering::Relaxed) {
            let _ = http.await;
        }
    }
    app.metrics.connections.dec();
    drop(place);
}
