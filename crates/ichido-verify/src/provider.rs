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
    /// What is known about how it sends, and how surely; `None` for a scheme of the configuration.
    pub facts: Option<Facts>,
    pub(crate) scheme: Scheme,
    pub(crate) events: Events,
    pub(crate) handshakes: List<Handshake>,
    pub(crate) special: Special,
}

/// How a provider delivers, as far as it is known. The numbers that the inbox computes with are
/// members of [`Provider`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// When it tries again, in words.
    pub schedule: &'static str,
    /// Whether a redelivery has the event id of the first; `None`: not known.
    pub keeps_id: Option<bool>,
    /// What it does about an answer with a status of 4xx.
    pub client_error: &'static str,
    /// Where that was read.
    pub source: &'static str,
    /// When: year and month.
    pub as_of: &'static str,
    /// How surely.
    pub sureness: Sureness,
}

/// How surely a fact is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sureness {
    /// Read in the provider's documentation or in its SDK's source.
    Read,
    /// Read elsewhere: another project's code, a blog.
    SecondHand,
    /// Not read anywhere that could be named: check it before you rely on it.
    Unsure,
}

/// What a row can't say, each with code of its own in `special`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    /// The generic way: an HMAC or ed25519 signature over pieces of the request.
    None,
    /// No signature: a shared secret is sent along, found there, after these words.
    Token { source: TokenSource, prefix: &'static str },
    /// ECDSA over P-256 with SHA-256, written as ASN.1, in base64.
    EcdsaP256,
}

/// Where a shared secret is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenSource {
    Header(&'static str),
    /// The same, in base64 after `prefix`, as in HTTP Basic.
    Basic(&'static str),
    Query(&'static str),
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
    /// One signature in each of the headers `NAME-1`, `NAME-2` and so on.
    Numbered,
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
    /// SHA-256 over the secret and the message: no HMAC, and weaker than one.
    PrefixSha256,
    Ed25519,
}

impl Algorithm {
    /// The exact size of a signature in bytes.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::HmacSha1 => 20,
            Self::HmacSha256 | Self::PrefixSha256 => 32,
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
    /// The same with some escapes decoded, as HubSpot does.
    UrlDecoded,
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
    /// A member of the body, which is signed: looked at once the signature matched.
    Body(Text),
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
    /// A parameter of the request's query.
    Query(Text),
    /// The name of the first of these top-level members that is there.
    Has(List<Text>),
    Literal(Text),
    /// All of them, one after the other; nothing when one is not there.
    Join(List<Source>),
}

/// Where the events of a delivery are, and what they say about themselves.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    /// Paths of the arrays that hold the events, as in `entry[].changes[]`; what holds an event
    /// of another path is none itself. Empty: the body is one event.
    pub(crate) batch: List<Text>,
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
    /// The method that asks.
    pub(crate) method: &'static str,
    /// The handshake is meant when all of these are there with these values.
    pub(crate) when: List<(Source, Text)>,
    /// And all of these, whatever their values.
    pub(crate) with: List<Source>,
    /// And none of these fields of a form.
    pub(crate) unless_fields: List<Text>,
    /// Whether it must be signed to be answered.
    pub(crate) signed: bool,
    pub(crate) reply: Reply,
}

#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// This status with an empty body.
    Status(u16),
    /// 200 with the text found there, as plain text that no browser may take for anything else.
    Echo(Source),
    /// 200 with a JSON object that has the text found there as this member.
    EchoJson(&'static str, Source),
    /// 200 with this JSON.
    Json(&'static str),
    /// A MAC of the text found there.
    Mac(Challenge, Source),
    /// 200 with the values of request headers, each under a name of its own: (name, from).
    Headers(&'static [(&'static str, &'static str)]),
}

/// How the MAC of a challenge is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Challenge {
    Zoom,
    X,
}
