//! Schemes that are no HMAC over pieces of the request, each in a file of its own.

pub(crate) mod ecdsa;
pub(crate) mod hubspot;
pub(crate) mod token;
