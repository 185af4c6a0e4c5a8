//! What is sent back. One body for every reason to reject, and the same headers on everything.
//!
//! It must never hold a reason or a text from the request: those go to the log.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Response, StatusCode,
    header::{
        ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
        HeaderValue, REFERRER_POLICY, RETRY_AFTER, STRICT_TRANSPORT_SECURITY,
        X_CONTENT_TYPE_OPTIONS,
    },
};
use ichido::Received;

use super::request_id::RequestId;

/// An answer, whole.
pub(crate) type Answer = Response<Full<Bytes>>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const ONE_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");
/// On everything. What is sent is for programs: a browser is told to do nothing with it.
const EVERYWHERE: [(HeaderName, HeaderValue); 4] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
];

/// Any answer of ours.
pub(crate) fn answer(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer
}

/// Puts the headers of every answer on this one.
pub(crate) fn complete(answer: &mut Answer, id: RequestId, over_tls: bool) {
    let headers = answer.headers_mut();
    headers.extend(EVERYWHERE);
    headers.insert(REQUEST_ID, id.header());
    if over_tls {
        headers.insert(STRICT_TRANSPORT_SECURITY, ONE_YEAR);
    }
}

fn error(status: StatusCode, body: &'static str) -> Answer {
    answer(status, JSON, Bytes::from_static(body.as_bytes()))
}

/// 200 with the outcome of a committed delivery.
pub(crate) fn taken(received: &Received) -> Answer {
    let (outcome, events) = match (received.outcome(), received) {
        (Some(outcome), Received::Events(taken)) => (outcome.as_str(), taken.len()),
        // A verified delivery that holds no event: there was nothing to store.
        _ => ("ignored", 0),
    };
    let body = match (outcome, events) {
        ("processed", 1) => Bytes::from_static(br#"{"outcome":"processed"}"#),
        ("accepted", 1) => Bytes::from_static(br#"{"outcome":"accepted"}"#),
        ("duplicate", 1) => Bytes::from_static(br#"{"outcome":"duplicate"}"#),
        ("ignored", 1) => Bytes::from_static(br#"{"outcome":"ignored"}"#),
        _ => format!(r#"{{"outcome":"{outcome}","events":{events}}}"#).into(),
    };
    answer(StatusCode::OK, JSON, body)
}

/// A provider's handshake, as the provider wants it.
pub(crate) fn handshake(handshake: ichido_verify::Answer) -> Answer {
    let status = StatusCode::from_u16(handshake.status).unwrap_or(StatusCode::OK);
    let content_type = HeaderValue::from_static(handshake.content_type);
    let mut answer = answer(status, content_type, handshake.body.into());
    for (name, value) in handshake.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}

/// Not verified: one body, whatever the reason.
pub(crate) fn rejected(status: u16) -> Answer {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    error(status, r#"{"error":"rejected"}"#)
}

/// No such path or endpoint.
pub(crate) fn not_found() -> Answer {
    error(StatusCode::NOT_FOUND, r#"{"error":"not_found"}"#)
}

/// The path exists, for another method.
pub(crate) fn method_not_allowed(allow: &'static str) -> Answer {
    let mut answer = error(StatusCode::METHOD_NOT_ALLOWED, r#"{"error":"method_not_allowed"}"#);
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    answer
}

/// The head is not what HTTP/1.1 demands. Where the next request begins is in doubt.
pub(crate) fn malformed() -> Answer {
    closing(error(StatusCode::BAD_REQUEST, r#"{"error":"malformed"}"#))
}

/// The body is larger than the limit. The rest of it is not read, so the connection ends.
pub(crate) fn too_large() -> Answer {
    closing(error(StatusCode::PAYLOAD_TOO_LARGE, r#"{"error":"too_large"}"#))
}

/// The body did not come in time.
pub(crate) fn too_slow() -> Answer {
    closing(error(StatusCode::REQUEST_TIMEOUT, r#"{"error":"too_slow"}"#))
}

/// The body broke off.
pub(crate) fn broken_off() -> Answer {
    closing(error(StatusCode::BAD_REQUEST, r#"{"error":"incomplete"}"#))
}

/// Not taken for a reason of ours: send it again later.
pub(crate) fn unavailable(retry_after: Duration) -> Answer {
    let mut answer = error(StatusCode::SERVICE_UNAVAILABLE, r#"{"error":"unavailable"}"#);
    let seconds = retry_after.as_secs().max(1);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    answer
}

/// The handler failed and the endpoint refuses: nothing was kept.
pub(crate) fn failed() -> Answer {
    error(StatusCode::INTERNAL_SERVER_ERROR, r#"{"error":"failed"}"#)
}

/// A page of plain text.
pub(crate) fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    answer(status, TEXT, body.into())
}

/// The same, and the connection ends with it.
pub(crate) fn closing(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}
