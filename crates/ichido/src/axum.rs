//! The ready-made route for axum: `POST /webhooks/{endpoint}`.
//!
//! It must never answer 2xx before the inbox said that the events are committed, and never tell
//! the sender why it was refused. TLS, timeouts and the number of connections are the caller's.

use ::axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, State},
    http::{
        HeaderMap, Method, StatusCode, Uri,
        header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
    },
    response::{IntoResponse, Response},
    routing::post,
};
use tracing::warn;

use crate::{ErrorKind, Inbox, ReceiveError, Received, Store};

/// The largest body that is taken, 1 MiB; above, 413. Most providers stay far below; where GitHub
/// may send up to 25 MB, put the route behind a larger `DefaultBodyLimit` of your own.
pub const BODY_BYTES_MAX: usize = 1_048_576;
/// What a 503 tells the sender to wait, in seconds.
const RETRY_AFTER_SECONDS: &str = "5";

/// A router with `POST /webhooks/{endpoint}`, to be merged into yours.
///
/// It answers as the server does: 200 with `{"outcome":"..."}`, 400 (or 401) for what does not
/// verify, 404 for an unknown endpoint, 413, 500 when the handler of an endpoint that refuses
/// failed, else 503. Cancel safety: a client that hangs up cancels nothing half-way.
pub fn webhooks<S: Store>(inbox: Inbox<S>) -> Router {
    Router::new()
        .route("/webhooks/{endpoint}", post(receive::<S>))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(inbox)
}

async fn receive<S: Store>(
    State(inbox): State<Inbox<S>>,
    Path(endpoint): Path<String>,
    method: Method,
    url: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let request = ichido_verify::Request {
        method: method.as_str().to_owned(),
        url: url.to_string(),
        headers: headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect(),
        body,
    };
    match inbox.receive(&endpoint, request).await {
        Ok(received) => taken(&received),
        Err(error) => not_taken(&endpoint, &error),
    }
}

fn taken(received: &Received) -> Response {
    let (outcome, count) = match received {
        Received::Handshake(answer) => {
            let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
            let content_type = [(CONTENT_TYPE, answer.content_type)];
            let mut response = (status, content_type, answer.body.clone()).into_response();
            for (name, value) in &answer.headers {
                if let Ok(value) = value.parse() {
                    response.headers_mut().insert(*name, value);
                }
            }
            return response;
        }
        // A verified delivery that holds no event: there was nothing to store.
        Received::Events(taken) => {
            (received.outcome().map_or("ignored", crate::Outcome::as_str), taken.len())
        }
    };
    json(
        StatusCode::OK,
        match count {
            1 => format!(r#"{{"outcome":"{outcome}"}}"#),
            _ => format!(r#"{{"outcome":"{outcome}","events":{count}}}"#),
        },
    )
}

fn not_taken(endpoint: &str, error: &ReceiveError) -> Response {
    match error {
        ReceiveError::UnknownEndpoint => {
            json(StatusCode::NOT_FOUND, r#"{"error":"not_found"}"#.into())
        }
        ReceiveError::Rejected { reason, status, .. } => {
            warn!(endpoint, reason = reason.as_str(), "rejected");
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_REQUEST);
            json(status, r#"{"error":"rejected"}"#.into())
        }
        ReceiveError::Store(error) => {
            warn!(endpoint, kind = error.kind().as_str(), %error, "not taken");
            match error.kind() {
                ErrorKind::Handler | ErrorKind::Data => {
                    json(StatusCode::INTERNAL_SERVER_ERROR, r#"{"error":"failed"}"#.into())
                }
                _ => {
                    let body = r#"{"error":"unavailable"}"#.into();
                    let answer = json(StatusCode::SERVICE_UNAVAILABLE, body);
                    ([(RETRY_AFTER, RETRY_AFTER_SECONDS)], answer).into_response()
                }
            }
        }
    }
}

fn json(status: StatusCode, body: String) -> Response {
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
    (status, headers, body).into_response()
}
