//! What comes out: deliveries of verified events, and handshake answers.
//!
//! A [`VerifiedEvent`] has two makers, `Verifier::verify` and [`vouch`]; there must never be a
//! third, so all its fields are private and nothing here is public that could fill them.

use std::ops::Range;

use bytes::Bytes;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::{Headers, Request};

/// Longest event id in bytes: the width of the key column, and far above any provider's ids.
pub const EVENT_ID_BYTES_MAX: usize = 255;

/// Longest event type and order key in bytes; longer ones count as not there.
pub(crate) const FACT_BYTES_MAX: usize = 255;

/// The event type of a verified delivery that holds no usable event id.
pub const UNREADABLE_TYPE: &str = "unreadable";

/// The outcome of a verification.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// One or more verified events.
    Delivery(Delivery),
    /// The provider asked something about the endpoint; there is no event in it.
    Handshake(Answer),
}

/// What to answer to a handshake, word for word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// More headers, as name and value.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    pub(crate) fn empty() -> Self {
        Self::plain("")
    }

    pub(crate) fn status(status: u16) -> Self {
        Self { status, ..Self::empty() }
    }

    /// Text that somebody else may have chosen: no browser may take it for a page.
    pub(crate) fn plain(text: &str) -> Self {
        let headers = match text {
            "" => Vec::new(),
            _ => vec![("x-content-type-options", "nosniff".to_owned())],
        };
        Self { status: 200, content_type: "text/plain", headers, body: text.into() }
    }

    pub(crate) fn json(text: String) -> Self {
        Self { content_type: "application/json", body: text.into(), ..Self::empty() }
    }
}

/// One verified request with its events.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The request as it came.
    pub request: Request,
    /// The index of the secret that verified it.
    pub secret: usize,
    /// The events in the order of the body; never empty.
    pub events: Vec<VerifiedEvent>,
}

/// How we know that an event is real.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provenance {
    /// Its signature was verified.
    Signed,
    /// We vouched for it: see [`vouch`].
    Vouched,
}

impl Provenance {
    /// The word for it in SQL and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Signed => "signed",
            Self::Vouched => "vouched",
        }
    }
}

/// Why a verified delivery has no usable event id.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unreadable {
    /// The body is empty.
    EmptyBody,
    /// The body is not UTF-8.
    NotUtf8,
    /// The body is not the JSON or form that the provider sends.
    NotJson,
    /// The body's top level is not an object.
    NotAnObject,
    /// There is no event id.
    IdMissing,
    /// The event id is there twice with nothing to say which one counts.
    IdAmbiguous,
    /// The event id is not text.
    IdNotText,
    /// The event id is longer than 255 bytes.
    IdTooLong,
    /// The event id is empty or holds control characters.
    IdBadCharacters,
    /// The event type is there twice: which handler is meant would be a guess.
    TypeAmbiguous,
}

impl Unreadable {
    /// Names the reason as a metrics label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EmptyBody => "empty_body",
            Self::NotUtf8 => "not_utf8",
            Self::NotJson => "not_json",
            Self::NotAnObject => "not_an_object",
            Self::IdMissing => "id_missing",
            Self::IdAmbiguous => "id_ambiguous",
            Self::IdNotText => "id_not_text",
            Self::IdTooLong => "id_too_long",
            Self::IdBadCharacters => "id_bad_characters",
            Self::TypeAmbiguous => "type_ambiguous",
        }
    }
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::EmptyBody => "body is empty",
            Self::NotUtf8 => "body is not UTF-8",
            Self::NotJson => "body is not what this provider sends",
            Self::NotAnObject => "body is not a JSON object",
            Self::IdMissing => "event id is missing",
            Self::IdAmbiguous => "event id is ambiguous: it is there twice",
            Self::IdNotText => "event id is not text",
            Self::IdTooLong => "event id is longer than 255 bytes",
            Self::IdBadCharacters => "event id is empty or holds control characters",
            Self::TypeAmbiguous => "event type is ambiguous: it is there twice",
        })
    }
}

impl std::error::Error for Unreadable {}

/// One message that is known to be real.
#[derive(Clone)]
pub struct VerifiedEvent {
    id: Box<str>,
    event_type: Box<str>,
    range: Range<usize>,
    digest: [u8; 32],
    occurred_at: Option<Timestamp>,
    order_key: Option<Box<str>>,
    provenance: Provenance,
    unreadable: Option<Unreadable>,
}

/// What an extractor found out about one event; the makers turn it into a [`VerifiedEvent`].
pub(crate) struct Facts {
    pub(crate) id: Box<str>,
    pub(crate) event_type: Option<Box<str>>,
    pub(crate) occurred_at: Option<Timestamp>,
    pub(crate) order_key: Option<Box<str>>,
}

impl VerifiedEvent {
    /// The first maker: called by `Verifier::verify` after a signature matched, nowhere else.
    pub(crate) fn signed(
        body: &[u8],
        range: Range<usize>,
        facts: Result<Facts, Unreadable>,
    ) -> Self {
        Self::make(body, range, facts, Provenance::Signed)
    }

    fn make(
        body: &[u8],
        range: Range<usize>,
        facts: Result<Facts, Unreadable>,
        provenance: Provenance,
    ) -> Self {
        let digest: [u8; 32] = Sha256::digest(&body[range.clone()]).into();
        match facts.and_then(|facts| check_id(&facts.id).map(|()| facts)) {
            Ok(facts) => Self {
                id: facts.id,
                event_type: facts.event_type.unwrap_or_default(),
                range,
                digest,
                occurred_at: facts.occurred_at,
                order_key: facts.order_key,
                provenance,
                unreadable: None,
            },
            Err(reason) => Self {
                id: format!("sha256:{}", data_encoding::HEXLOWER.encode(&digest)).into(),
                event_type: UNREADABLE_TYPE.into(),
                range,
                digest,
                occurred_at: None,
                order_key: None,
                provenance,
                unreadable: Some(reason),
            },
        }
    }

    /// The event id: at most 255 bytes, no control characters.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The event type as the provider names it; empty where the provider sent none.
    pub fn event_type(&self) -> &str {
        &self.event_type
    }

    /// Where the event's own bytes lie inside the body of its request.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// SHA-256 of the event's own bytes.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// When the provider says it happened.
    pub fn occurred_at(&self) -> Option<Timestamp> {
        self.occurred_at
    }

    /// The id of the object that the event is about, for endpoints that order by key.
    pub fn order_key(&self) -> Option<&str> {
        self.order_key.as_deref()
    }

    /// How we know that it is real.
    pub fn provenance(&self) -> Provenance {
        self.provenance
    }

    /// Why it has no usable event id; `None` for nearly every event.
    pub fn unreadable(&self) -> Option<Unreadable> {
        self.unreadable
    }
}

impl std::fmt::Debug for VerifiedEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VerifiedEvent")
            .field("id", &self.id)
            .field("event_type", &self.event_type)
            .field("provenance", &self.provenance)
            .finish_non_exhaustive()
    }
}

/// Refuses ids that can't be a key.
pub(crate) fn check_id(id: &str) -> Result<(), Unreadable> {
    if id.len() > EVENT_ID_BYTES_MAX {
        return Err(Unreadable::IdTooLong);
    }
    if id.is_empty() || id.chars().any(char::is_control) {
        return Err(Unreadable::IdBadCharacters);
    }
    Ok(())
}

/// Makes an event **without checking any signature**: the caller vouches for it.
///
/// Only for events whose origin is known by other means, such as a reconciler that fetched them
/// from the provider's API over TLS with its own API key. Never pass a request body from the
/// network. The event is recorded as `vouched` for ever, and never counts as evidence against a
/// signed one.
///
/// # Errors
/// An id that can't be a key is refused; nothing is invented for it.
pub fn vouch(
    id: &str,
    event_type: &str,
    body: Bytes,
    occurred_at: Option<Timestamp>,
) -> Result<Delivery, Unreadable> {
    check_id(id)?;
    let facts =
        Facts { id: id.into(), event_type: Some(event_type.into()), occurred_at, order_key: None };
    let event = VerifiedEvent::make(&body, 0..body.len(), Ok(facts), Provenance::Vouched);
    let request =
        Request { method: "VOUCH".to_owned(), url: String::new(), headers: Headers::new(), body };
    Ok(Delivery { request, secret: 0, events: vec![event] })
}
