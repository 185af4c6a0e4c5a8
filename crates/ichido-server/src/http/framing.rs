//! What HTTP/1.1 demands of a request's head and the HTTP library leaves to its user.
//!
//! It must never mend a head: two readers of a mended one may disagree on where the next request
//! begins, or whom it is for.

use hyper::{
    Request, Version,
    header::{HOST, TRANSFER_ENCODING},
};

/// True when the head names one host, and no transfer encoding but `chunked`, once. (A length
/// beside chunks can't be seen here: the library ignores it and closes, as RFC 9112 asks.)
pub(crate) fn is_sound<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let hosts = headers.get_all(HOST).iter().count();
    let old = request.version() < Version::HTTP_11;
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let coding = codings.next();
    (hosts == 1 || (old && hosts == 0))
        && coding.is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
        && codings.next().is_none()
}
