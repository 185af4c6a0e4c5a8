//! `POST /webhooks/{endpoint}`: one delivery in, one answer out.
//!
//! It must never answer 2xx to an event before the inbox said that it is committed, and never
//! log a body, a header value or a query string.

use std::time::Instant;

use hyper::{Method, Request, body::Incoming};
use ichido::{Error, ErrorKind, ReceiveError, Received, Taken};
use ichido_verify::Headers;
use tracing::{debug, warn};

use super::{
    App,
    answer::{self, Answer},
    body::NoBody,
    line::Line,
    request_id::RequestId,
};
use crate::{log::one_line, metrics::EndpointMetrics};

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
    let Ok(_place) = app.requests.try_acquire() else {
        return refused(app, metrics, "too_many_requests");
    };
    let (head, body) = request.into_parts();
    let body = match app.bodies.read(body, line).await {
        Ok(body) => body,
        Err(NoBody::NoMemory) => return refused(app, metrics, "too_many_bytes"),
        Err(NoBody::TooLarge) => return answer::too_large(),
        Err(NoBody::TooSlow) => return answer::too_slow(),
        Err(NoBody::BrokenOff) => return answer::broken_off(),
    };
    let name = &head.uri.path()[PREFIX.len()..];
    let delivery = ichido_verify::Request {
        method: head.method.as_str().to_owned(),
        url: head.uri.to_string(),
        headers: head.headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect::<Headers>(),
        body: body.bytes.clone(),
    };
    let began = Instant::now();
    match app.engine.receive(name, delivery).await {
        Ok(Received::Handshake(handshake)) => {
            debug!(request = %id, endpoint = name, "handshake answered");
            answer::handshake(handshake)
        }
        Ok(received) => {
            if let Received::Events(taken) = &received {
                metrics.taken(taken, began.elapsed());
                for event in taken {
                    tell(id, name, event);
                }
            }
            answer::taken(&received)
        }
        Err(error) => not_taken(app, metrics, (id, name), &error),
    }
}

/// One line an event; loud only where a human may have to look.
fn tell(request: RequestId, endpoint: &str, event: &Taken) {
    let (receipt, outcome) = (event.receipt, event.outcome.as_str());
    if event.conflict {
        warn!(
            %request, endpoint, %receipt,
            "conflict: same event id, other content; the first one wins"
        );
    }
    if let Some(error) = &event.error {
        let error = &*one_line(error);
        warn!(%request, endpoint, %receipt, outcome, error, "not processed; the event is kept");
    } else {
        debug!(%request, endpoint, %receipt, outcome, "received");
    }
}

fn not_taken(
    app: &App,
    metrics: &EndpointMetrics,
    (request, endpoint): (RequestId, &str),
    error: &ReceiveError,
) -> Answer {
    match error {
        ReceiveError::UnknownEndpoint => answer::not_found(),
        ReceiveError::Rejected { reason, status } => {
            metrics.rejected(*reason);
            warn!(%request, endpoint, reason = reason.as_str(), "rejected: {reason}");
            answer::rejected(*status)
        }
        ReceiveError::Store(error) => {
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
    let (kind, error) = (error.kind().as_str(), &*one_line(&text));
    warn!(%request, endpoint, kind, error, "not taken; the sender will try again");
}

fn refused(app: &App, metrics: &EndpointMetrics, reason: &'static str) -> Answer {
    metrics.failed(reason);
    answer::unavailable(app.limits.retry_after.0)
}
