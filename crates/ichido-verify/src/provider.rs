//! What a row of the catalogue can say about a provider: data only, all of it `const`.
//!
//! Nothing here knows a provider by name. What a row can't express belongs in code of its own,
//! never in a flag that only one provider sets.

use std::borrow::Cow;
use std::time::Duration;

use crate::catalogue::{catalogue, provider};
use crate::{ConfigError, Settings, generic};

/// Text of a row: built in, or from an endpoint's configuration.
pub(crate) type Text = Cow<'static, str>;
/// A list in a row.
pub(crate) type List<T> = Cow<'static, [T]>;
/// Alternative header names, in lower case; the first one that is present counts.
pub(crate) type Names = List<Text>;

/// One provider: how it signs, and where its events say what they are.
#[derive(Debug, Clone)]
pub struct Provider {
    /// The name in configuration, such as `stripe`.
    pub name: &'static str,
    /// How soon it wants its answer.
    pub deadline: Duration,
    /// How long it resends what was not acknowledged; `None`: it never resends by itself.
    pub retry_horizon: Option<Duration>,
    /// Whether the signature covers the event id.
    pub id_signed: bool,
    /// The status that a bad signature is answered with: 400, or 401 where the provider insists.
    pub bad_signature_status: u16,
    /// Top-level members of the body that may differ between two sends of one event.
    pub volatile: Cow<'static, [Cow<'static, str>]>,
    pub(crate) scheme: Scheme,
    pub(crate) events: Events,
    pub(crate) handshakes: List<Handshake>,
}

impl Provider {
    /// The row of an endpoint: one of the catalogue, or the scheme of its settings.
    ///
    /// # Errors
    /// An unknown name, or settings that the provider can't have. The text names the fix.
    pub fn of(name: &str, settings: &Settings) -> Result<Self, ConfigError> {
        match (&settings.generic, name) {
            (Some(generic), generic::NAME) => generic::row(generic),
            (None, generic::NAME) => Err(ConfigError::new(
                "provider \"generic\" needs its scheme: add the settings `generic`",
            )),
            (Some(_), _) => Err(ConfigError::new(format!(
                "provider {name:?} has a scheme of its own: remove the settings `generic`, or set \
                 provider = \"generic\""
            ))),
            (None, _) => provider(name).cloned().ok_or_else(|| unknown(name)),
        }
    }

    /// Whether events say what they are about, so that they can be put in order by it.
    pub fn has_order_key(&self) -> bool {
        !self.events.order_key.is_empty()
    }

    /// How far a signed timestamp may be from now, unless the endpoint says otherwise; `None`:
    /// the provider signs none.
    pub fn tolerance(&self) -> Option<Duration> {
        self.scheme.timestamp.as_ref().map(|rule| rule.tolerance)
    }
}

fn unknown(name: &str) -> ConfigError {
    let known: Vec<_> = catalogue().iter().map(|row| row.name).collect();
    ConfigError::new(format!(
        "unknown provider {name:?}: use one of {}, {}",
        known.join(", "),
        generic::NAME
    ))
}

/// How a request is signed.
#[derive(Debug, Clone)]
pub(crate) struct Scheme {
    /// The header that carries the signatures.
    pub(crate) header: Names,
    pub(crate) form: Form,
    /// What counts as a signature. Everything else in the header is skipped.
    pub(crate) accepts: List<Accepted>,
    pub(crate) encoding: Encoding,
    pub(crate) key: KeyForm,
    /// The signed bytes, in order.
    pub(crate) message: List<Part>,
    pub(crate) timestamp: Option<TimestampRule>,
}

/// How the signature header is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One signature; its label is a prefix (possibly empty) of the value.
    Whole,
    /// Several items `label signature`; both separators are single bytes.
    Labelled { between: u8, after_label: u8 },
}

/// One label and the only algorithm that may stand behind it.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    pub(crate) label: Text,
    pub(crate) algorithm: Algorithm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    HmacSha1,
    HmacSha256,
    HmacSha512,
    Ed25519,
}

impl Algorithm {
    /// The exact size of a signature in bytes.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::HmacSha1 => 20,
            Self::HmacSha256 => 32,
            Self::HmacSha512 | Self::Ed25519 => 64,
        }
    }
}

/// How signature bytes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Lower case only.
    Hex,
    /// Standard alphabet with padding.
    Base64,
    /// URL-safe alphabet without padding.
    Base64Url,
}

/// How the text of a secret becomes a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyForm {
    /// The UTF-8 bytes of the whole text.
    Text,
    Hex,
    Base64,
    /// `whsec_` and base64 (HMAC), `whpk_` (public) or `whsk_` (private) and base64 (ed25519).
    StandardWebhooks,
}

/// One piece of the signed bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Body,
    /// The literal text of the timestamp as it came.
    Timestamp,
    Literal(Text),
    /// The literal value of a header. It must not contain the literal that follows it.
    Header(Names),
    /// The registered URL, never the one of the request.
    Url,
    Method,
}

#[derive(Debug, Clone)]
pub(crate) struct TimestampRule {
    pub(crate) source: TimestampSource,
    pub(crate) unit: Unit,
    pub(crate) tolerance: Duration,
    /// Whether a time in the future is held to the tolerance, too.
    pub(crate) future_bounded: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum TimestampSource {
    /// An item of a labelled signature header.
    Label(Text),
    Header(Names),
}

/// How a time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Millis,
    Rfc3339,
}

/// Where a fact about an event is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Header(Names),
    /// A member of the JSON body, path joined by dots; text only.
    Json(Text),
    /// The same; an integer counts as its digits.
    JsonOrInteger(Text),
    /// A field of a form body.
    Field(Text),
}

/// Where the events of a delivery are, and what they say about themselves.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    /// Path of the array that holds the events; `None`: the body is one event.
    pub(crate) batch: Option<Text>,
    /// A form field whose value is the JSON body, for providers that send forms, too.
    pub(crate) json_field: Option<Text>,
    pub(crate) id: List<Source>,
    pub(crate) event_type: List<Source>,
    pub(crate) order_key: List<Source>,
    /// Digits are read in the given unit, everything else as RFC 3339.
    pub(crate) occurred_at: List<(Source, Unit)>,
}

/// A question about the endpoint instead of an event.
#[derive(Debug, Clone)]
pub(crate) struct Handshake {
    /// The handshake is meant when all of these are there with these values.
    pub(crate) when: List<(Source, Text)>,
    /// And none of these fields of a form.
    pub(crate) unless_fields: List<Text>,
    /// Whether it must be signed to be answered.
    pub(crate) signed: bool,
    pub(crate) reply: Reply,
}

#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// 200 with an empty body.
    Empty,
    /// 200 with the text found there, as plain text.
    Echo(Source),
}
