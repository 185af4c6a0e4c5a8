//! Webhook signatures: bytes in, verdict out. No IO, no clock.
//!
//! One [`Verifier`] per endpoint is compiled from a provider's name, the endpoint's [`Settings`]
//! and its [`Secret`]s. It takes a [`Request`] as it came over the wire and the time, and says
//! what it is: a [`Delivery`] of verified events, a handshake with its [`Answer`], or a
//! [`Rejection`].
//!
//! ```
//! use ichido_verify::{Request, Secret, Settings, Timestamp, Verdict, Verifier};
//!
//! let secrets = [Secret::new("whsec_current"), Secret::new("whsec_previous")];
//! let verifier = Verifier::new("stripe", &Settings::default(), &secrets)?;
//!
//! // A provider would have sent this; tests sign it themselves.
//! let now: Timestamp = "2026-01-31T12:00:00Z".parse()?;
//! let body = r#"{"id":"evt_1","type":"invoice.paid","data":{"object":{"id":"in_1"}}}"#;
//! let mut request = Request { method: "POST".into(), body: body.into(), ..Request::default() };
//! verifier.sign(&mut request, "evt_1", "invoice.paid", now)?;
//!
//! let Verdict::Delivery(delivery) = verifier.verify(request.clone(), now)? else {
//!     unreachable!("stripe has no handshake")
//! };
//! let event = &delivery.events[0];
//! assert_eq!((event.id(), event.event_type()), ("evt_1", "invoice.paid"));
//! assert_eq!(event.order_key(), Some("in_1"));
//!
//! // One changed byte, and nothing of it is believed.
//! request.body = body.replace("in_1", "in_2").into();
//! assert!(verifier.verify(request, now).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What holds for every provider
//!
//! - The raw bytes are verified before anything parses them.
//! - Every candidate signature is compared with every secret, in constant time; a label that the
//!   scheme does not know is skipped and never a fallback to something weaker.
//! - Decoders are strict: exact length, one alphabet, digits-only times.
//! - A request that verifies is never refused for its content. An event without a usable id gets
//!   the id `sha256:<digest of its bytes>` and the type [`UNREADABLE_TYPE`], and says why
//!   ([`VerifiedEvent::unreadable`]).
//! - A [`VerifiedEvent`] is made by [`Verifier::verify`], or by the loudly named [`vouch`].
//!
//! # Providers
//!
//! A provider is a row of data ([`catalogue`]). The provider `generic` is a row that is written
//! in the configuration ([`GenericHmac`]):
//!
//! ```
//! # use ichido_verify::{Secret, Settings, Verifier};
//! let settings: Settings = serde_json::from_str(r#"{
//!     "tolerance": "5m",
//!     "generic": {
//!         "header": "X-Signature", "prefix": "sha256=",
//!         "message": "{timestamp}.{body}", "timestamp_header": "X-Timestamp",
//!         "id": "json:event.id", "event_type": "header:X-Event"
//!     }
//! }"#)?;
//! let verifier = Verifier::new("generic", &settings, &[Secret::new("shared")])?;
//! assert!(verifier.provider().id_signed);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod batch;
#[cfg(test)]
mod batches;
mod catalogue;
mod challenge;
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
mod row;
mod secret;
mod settings;
mod sign;
mod signature;
mod special;
mod time;
mod verifier;

pub use catalogue::{catalogue, provider};
pub use error::{ConfigError, Refused, Rejection, SignError};
pub use event::{
    Answer, Delivery, EVENT_ID_BYTES_MAX, Provenance, UNREADABLE_TYPE, Unreadable, Verdict,
    VerifiedEvent, vouch,
};
pub use headers::Headers;
pub use jiff::Timestamp;
pub use provider::{Facts, Provider, Sureness};
pub use request::Request;
pub use secret::Secret;
pub use settings::{
    GenericAlgorithm, GenericEncoding, GenericHmac, GenericKey, GenericUnit, Settings,
};
pub use verifier::{SECRETS_MAX, Verifier};
