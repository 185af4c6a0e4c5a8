//! `POST /webhooks/{endpoint}`: one delivery in, one answer out.
//!
//! It must never answer 2xx to an event before the inbox said that it is committed, and never
//! log a body, a header value or a query string.

use std::{sync::Arc, time::Instant};

use hyper::{Method, Request, body::Incoming};
use ichido::{Error, ErrorKind, EventName, ReceiveError, Received, Taken};
use ichido_verify::Headers;
use tokio::sync::OwnedSemaphorePermit as Place;
use tracing::{debug, warn};

use super::{
    App,
    answer::{self, Answer},
    body::{NoBody, Share, Whole},
    line::Line,
    request_id::RequestId,
};
use crate::{engine::Ended, log::one_line, metrics::EndpointMetrics};

/// What every path of an endpoint begins with.
pub(crate) const PREFIX: &str = "/webhooks/";

/// Receives one delivery.
pub(crate) async fn receive(
    app: &App,
    line: &Line,
    id: RequestId,
    request: Request<Incoming>,
) -> Answer {
    let name = &request.uri().path()[PREFIX.len()..];
    let Some(metrics) = app.metrics.endpoint(name) else { return answer::not_found() };
    if request.method() != Method::POST {
        return answer::method_not_allowed("POST");
    }
    let (head, body) = request.into_parts();
    let Whole { bytes: body, memory } = match app.bodies.read(body, line).await {
        Ok(body) => body,
        Err(NoBody::NoMemory) => return refused(app, metrics, "too_many_bytes"),
        Err(NoBody::TooLarge) => return answer::too_large(),
        Err(NoBody::TooSlow) => return answer::too_slow(),
        Err(NoBody::BrokenOff) => return answer::broken_off(),
    };
    // After the body, so that a slow sender has no place among those that are served.
    let Ok(place) = app.requests.clone().try_acquire_owned() else {
        return refused(app, metrics, "too_many_requests");
    };
    let delivery = ichido_verify::Request {
        method: head.method.as_str().to_owned(),
        url: head.uri.to_string(),
        headers: head.headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect::<Headers>(),
        body,
    };
    let ended = watch_the_end(id, metrics.clone(), (place, memory));
    match app.engine.receive(&metrics.name, delivery, ended).await {
        Ok(Received::Handshake(handshake)) => {
            debug!(request = %id, endpoint = metrics.name, "handshake answered");
            answer::handshake(handshake)
        }
        Ok(received) => {
            app.clock.agrees(metrics);
            answer::taken(&received)
        }
        Err(error) => not_taken(app, metrics, id, &error),
    }
}

/// Counts and tells what was committed, whether or not anybody still waits for the answer, and
/// holds what the delivery occupies until then.
fn watch_the_end(id: RequestId, metrics: Arc<EndpointMetrics>, held: (Place, Share)) -> Ended {
    let began = Instant::now();
    Box::new(move |result| {
        if let Ok(taken) = result {
            metrics.taken(taken, began.elapsed());
            for event in taken {
                tell(id, &metrics.name, event);
            }
        }
        drop(held);
    })
}

/// One line an event; loud only where a human may have to look.
fn tell(request: RequestId, endpoint: &str, taken: &Taken) {
    let (receipt, outcome) = (taken.receipt, taken.outcome.as_str());
    let (event_id, event_type) = (one_line(&taken.event.id), one_line(&taken.event.event_type));
    let (event_id, event_type) = (&*event_id, &*event_type);
    if taken.conflict {
        warn!(
            %request, endpoint, event_id, event_type, %receipt,
            "conflict: same event id, other content; the first one wins"
        );
    }
    if taken.repeated {
        warn!(
            %request, endpoint, event_id, event_type, %receipt,
            "repeated body: it came before, under another event id that is not signed"
        );
    }
    if let Some(error) = &taken.error {
        let (error, handler) = (&*one_line(error), handler(&taken.event));
        warn!(
            %request, endpoint, event_id, event_type, handler, %receipt, outcome, error,
            "not processed; the event is kept"
        );
    } else {
        debug!(%request, endpoint, event_id, event_type, %receipt, outcome, "received");
    }
}

/// What the handler of an event is called; it is from our own configuration.
fn handler(event: &EventName) -> &str {
    event.handler.as_deref().unwrap_or("none")
}

fn not_taken(
    app: &App,
    metrics: &EndpointMetrics,
    request: RequestId,
    error: &ReceiveError,
) -> Answer {
    let endpoint = &*metrics.name;
    match error {
        ReceiveError::UnknownEndpoint => answer::not_found(),
        ReceiveError::Rejected { reason, status, signed_at } => {
            if let Some(signed_at) = signed_at {
                app.clock.refused(metrics, *signed_at);
            }
            metrics.rejected(*reason);
            warn!(%request, endpoint, reason = reason.as_str(), "rejected: {reason}");
            answer::rejected(*status)
        }
        ReceiveError::Store(error) => {
            // It was verified, its time too.
            app.clock.agrees(metrics);
            metrics.failed(error.kind().as_str());
            log_failure(request, endpoint, error);
            match error.kind() {
                ErrorKind::Handler | ErrorKind::Data => answer::failed(),
                _ => answer::unavailable(app.limits.retry_after.0),
            }
        }
    }
}

fn log_failure(request: RequestId, endpoint: &str, error: &Error) {
    let text = error.to_string();
    let (kind, why) = (error.kind().as_str(), &*one_line(&text));
    let unknown = EventName::default();
    let event = error.event().unwrap_or(&unknown);
    let (event_id, event_type) = (&*one_line(&event.id), &*one_line(&event.event_type));
    let handler = handler(event);
    warn!(
        %request, endpoint, event_id, event_type, handler, kind, error = why,
        "not taken; the sender will try again"
    );
}

fn refused(app: &App, metrics: &EndpointMetrics, reason: &'static str) -> Answer {
    metrics.failed(reason);
    answer::unavailable(app.limits.retry_after.0)
}
