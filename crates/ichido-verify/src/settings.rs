//! What an endpoint's configuration can say about its provider.
//!
//! Unknown members are refused: a misspelt tolerance must not silently be the default.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// Settings of one endpoint. All members have defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// How far a signed timestamp may be from now; default: the provider's own.
    /// In configuration: a number of seconds, or text such as `"5m"`.
    #[serde(deserialize_with = "duration")]
    pub tolerance: Option<Duration>,
    /// The URL as it is registered with the provider, for schemes that sign it.
    pub public_url: Option<String>,
    /// The text that Meta sends back when it asks whether the endpoint is ours.
    pub verify_token: Option<String>,
    /// The scheme of the provider `generic`, and of no other.
    pub generic: Option<GenericHmac>,
}

/// An HMAC scheme that is written down in the configuration (provider `generic`).
///
/// A source is text: `header:NAME`, `json:path.to.member` or `field:NAME` (form body).
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenericHmac {
    /// The header that carries the signature.
    pub header: String,
    /// Text before the signature in that header, such as `sha256=`. Default: none.
    #[serde(default)]
    pub prefix: String,
    /// `sha256` (default), `sha512` or `sha1`.
    #[serde(default)]
    pub algorithm: GenericAlgorithm,
    /// `hex` (default, lower case), `base64` (padded) or `base64url` (not padded).
    #[serde(default)]
    pub encoding: GenericEncoding,
    /// How the secret becomes the key: `text` (default), `hex` or `base64`.
    #[serde(default)]
    pub key: GenericKey,
    /// The signed bytes, with `{body}`, `{timestamp}`, `{header:NAME}`, `{method}`, `{url}`
    /// (the endpoint's `public_url`). Default: `{body}`.
    #[serde(default = "body_only")]
    pub message: String,
    /// The header that carries the timestamp which is signed as `{timestamp}`.
    #[serde(default)]
    pub timestamp_header: Option<String>,
    /// `seconds` (default), `milliseconds` or `rfc3339`.
    #[serde(default)]
    pub timestamp_unit: GenericUnit,
    /// Source of the event id. `json:` accepts text and integers.
    pub id: String,
    /// Source of the event type. Default: none, all events have the type `""`.
    #[serde(default)]
    pub event_type: Option<String>,
    /// Source of the time at which it happened, and the unit of its digits.
    #[serde(default)]
    pub occurred_at: Option<String>,
    /// Unit of digits in `occurred_at`; anything else is read as RFC 3339.
    #[serde(default)]
    pub occurred_at_unit: GenericUnit,
    /// Source of the key for endpoints that order by key.
    #[serde(default)]
    pub order_key: Option<String>,
    /// Top-level members of the body that may differ between two sends of one event.
    #[serde(default)]
    pub volatile: Vec<String>,
    /// How soon the sender wants its answer; default 10 s.
    #[serde(default, deserialize_with = "duration")]
    pub deadline: Option<Duration>,
    /// How long the sender resends; 0: never. Default: three days.
    #[serde(default, deserialize_with = "duration")]
    pub retry_horizon: Option<Duration>,
}

fn body_only() -> String {
    "{body}".to_owned()
}

/// The hash of a generic scheme.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GenericAlgorithm {
    /// HMAC-SHA256.
    #[default]
    Sha256,
    /// HMAC-SHA512.
    Sha512,
    /// HMAC-SHA1, for senders that know nothing better.
    Sha1,
}

/// How the signature of a generic scheme is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GenericEncoding {
    /// Lower-case hexadecimal.
    #[default]
    Hex,
    /// Base64 with padding.
    Base64,
    /// URL-safe base64 without padding.
    Base64url,
}

/// How the secret of a generic scheme becomes its key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GenericKey {
    /// The UTF-8 bytes of the text.
    #[default]
    Text,
    /// Hexadecimal.
    Hex,
    /// Base64, padded or not.
    Base64,
}

/// The unit of a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GenericUnit {
    /// Seconds since 1970.
    #[default]
    Seconds,
    /// Milliseconds since 1970.
    Milliseconds,
    /// Text such as `2026-01-31T12:00:00Z`.
    Rfc3339,
}

/// Reads whole seconds or text such as `"5m"`.
fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    struct Seconds(Duration);

    struct Reader;
    impl Visitor<'_> for Reader {
        type Value = Seconds;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("whole seconds, or text such as \"5m\"")
        }

        fn visit_u64<E: Error>(self, seconds: u64) -> Result<Seconds, E> {
            Ok(Seconds(Duration::from_secs(seconds)))
        }

        fn visit_i64<E: Error>(self, seconds: i64) -> Result<Seconds, E> {
            u64::try_from(seconds)
                .map(|seconds| Seconds(Duration::from_secs(seconds)))
                .map_err(|_| E::custom("a duration can't be negative"))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Seconds, E> {
            text.parse::<jiff::SignedDuration>()
                .ok()
                .and_then(|duration| Duration::try_from(duration).ok())
                .map(Seconds)
                .ok_or_else(|| E::custom("not a duration: write seconds, or text such as \"5m\""))
        }
    }

    impl<'de> Deserialize<'de> for Seconds {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            from.deserialize_any(Reader)
        }
    }

    Ok(Option::<Seconds>::deserialize(from)?.map(|seconds| seconds.0))
}
