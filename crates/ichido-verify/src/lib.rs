//! Webhook signatures: bytes in, verdict out. No IO, no clock.
#![forbid(unsafe_code)]

mod catalogue;
mod check;
mod content;
mod error;
mod event;
mod form;
mod generic;
mod headers;
mod json;
mod key;
mod provider;
mod read;
mod request;
mod secret;
mod settings;
mod sign;
mod signature;
mod time;
mod verifier;

pub use catalogue::{catalogue, provider};
pub use error::{ConfigError, Rejection, SignError};
pub use event::{
    Answer, Delivery, EVENT_ID_BYTES_MAX, Provenance, UNREADABLE_TYPE, Unreadable, Verdict,
    VerifiedEvent, vouch,
};
pub use headers::Headers;
pub use jiff::Timestamp;
pub use provider::Provider;
pub use request::Request;
pub use secret::Secret;
pub use settings::{
    GenericAlgorithm, GenericEncoding, GenericHmac, GenericKey, GenericUnit, Settings,
};
pub use verifier::{SECRETS_MAX, Verifier};
