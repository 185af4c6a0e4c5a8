//! One delivery as it came over the wire, before anything was believed.

use bytes::Bytes;

use crate::Headers;

/// One HTTP request as it came: nothing in it is to be trusted until it was verified.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The method in upper case, such as `POST`.
    pub method: String,
    /// The path and query, or the whole URL, as received.
    pub url: String,
    /// All headers in order.
    pub headers: Headers,
    /// The raw body: the bytes that were signed.
    pub body: Bytes,
}

/// Shows no URL (its query can hold a secret), no header value and no body.
impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
