//! Why something was refused: closed lists, safe to log.
//!
//! No text here may ever hold a part of a request or of a secret.

use std::fmt;

use jiff::Timestamp;

/// Why a delivery is not believed.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rejection {
    /// The signature header is missing or empty.
    NoSignature,
    /// A header that the scheme reads once came twice.
    RepeatedHeader,
    /// The signature header can't be read: no known label, wrong length, wrong alphabet.
    MalformedSignature,
    /// No candidate matched any secret.
    WrongSignature,
    /// The signed timestamp is missing.
    NoTimestamp,
    /// The timestamp is not a number of the expected form.
    MalformedTimestamp,
    /// The timestamp is older than the tolerance.
    TooOld,
    /// The timestamp is further in the future than the tolerance.
    TooNew,
    /// A header that the signature covers (such as the message id) is missing.
    NoSignedHeader,
    /// A signed header holds bytes that make the signed message ambiguous.
    MalformedSignedHeader,
    /// The signature is good, but not the sender's: its bytes came before, under another event id
    /// that it does not cover. Said by an inbox, which remembers; never by a verifier.
    RepeatedBody,
}

impl Rejection {
    /// All reasons, for code that wants to register a metric for each.
    pub const ALL: &'static [Self] = &[
        Self::NoSignature,
        Self::RepeatedHeader,
        Self::MalformedSignature,
        Self::WrongSignature,
        Self::NoTimestamp,
        Self::MalformedTimestamp,
        Self::TooOld,
        Self::TooNew,
        Self::NoSignedHeader,
        Self::MalformedSignedHeader,
        Self::RepeatedBody,
    ];

    /// Names the reason as a metrics label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSignature => "no_signature",
            Self::RepeatedHeader => "repeated_header",
            Self::MalformedSignature => "malformed_signature",
            Self::WrongSignature => "wrong_signature",
            Self::NoTimestamp => "no_timestamp",
            Self::MalformedTimestamp => "malformed_timestamp",
            Self::TooOld => "too_old",
            Self::TooNew => "too_new",
            Self::NoSignedHeader => "no_signed_header",
            Self::MalformedSignedHeader => "malformed_signed_header",
            Self::RepeatedBody => "repeated_body",
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSignature => "signature header is missing or empty",
            Self::RepeatedHeader => "a header that may come once came twice",
            Self::MalformedSignature => "signature header can't be read",
            Self::WrongSignature => "no signature matches any configured secret",
            Self::NoTimestamp => "signed timestamp is missing",
            Self::MalformedTimestamp => "timestamp is not in the expected form",
            Self::TooOld => "timestamp is older than the tolerance",
            Self::TooNew => "timestamp is further in the future than the tolerance",
            Self::NoSignedHeader => "a header that the signature covers is missing",
            Self::MalformedSignedHeader => "a header that the signature covers can't be read",
            Self::RepeatedBody => "body came before, under another event id that is not signed",
        })
    }
}

impl std::error::Error for Rejection {}

/// A delivery that is not believed.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub reason: Rejection,
    /// The time that the sender signed, where the time alone is the reason: the signature was
    /// good. When it is always about as far away, it is our clock that is wrong.
    pub signed_at: Option<Timestamp>,
}

impl From<Rejection> for Refused {
    fn from(reason: Rejection) -> Self {
        Self { reason, signed_at: None }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl std::error::Error for Refused {}

/// Why a verifier can't be built. The text names the fix and never a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(Vec<String>);

impl ConfigError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(vec![text.into()])
    }

    /// All of them in one, so that whoever mends a configuration need not start over.
    pub(crate) fn all(problems: impl IntoIterator<Item = Self>) -> Self {
        Self(problems.into_iter().flat_map(|problem| problem.0).collect())
    }

    /// Each thing that is wrong, with its fix.
    pub fn problems(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl std::error::Error for ConfigError {}

/// Why a request can't be signed.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignError {
    /// The first secret is a public key: it verifies, but it can't sign.
    PublicKey,
    /// The event id or type can't be sent in a header of this provider.
    UnusableText,
    /// The scheme signs a header that the request does not have yet.
    MissingHeader,
    /// The time can't be written in this provider's unit.
    UnusableTime,
}

impl fmt::Display for SignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PublicKey => "a public key can't sign; use the private key (whsk_...)",
            Self::MissingHeader => "the scheme signs a header that the request lacks; add it first",
            Self::UnusableText => "event id or type has characters that no header can carry",
            Self::UnusableTime => "timestamps before 1970 can't be signed",
        })
    }
}

impl std::error::Error for SignError {}
