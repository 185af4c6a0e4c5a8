//! The name of one request: on its answer (`x-request-id`) and in the lines that tell of it.
//!
//! It must never come from the request: a stranger could write into the log with it.

use std::fmt;

use hyper::header::HeaderValue;

/// A random name, unique enough to find a line in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestId(u64);

impl RequestId {
    /// A new one.
    pub(crate) fn new() -> Self {
        Self(fastrand::u64(..))
    }

    /// As the value of a header.
    pub(crate) fn header(self) -> HeaderValue {
        HeaderValue::from_maybe_shared(bytes::Bytes::from(self.to_string()))
            .expect("hexadecimal digits are a header value")
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
