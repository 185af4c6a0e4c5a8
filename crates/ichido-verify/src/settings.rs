//! What an endpoint's configuration can say about its provider.
use std::time::Duration;
/// Settings of one endpoint.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// How far a signed timestamp may be from now; default: the provider's own.
    pub tolerance: Option<Duration>,
    /// The URL as it is registered with the provider, for schemes that sign it.
    pub public_url: Option<String>,
    /// The scheme of provider `generic`.
    pub generic: Option<GenericHmac>,
}
/// A scheme of one's own.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenericHmac {
    /// The header that carries the signature.
    pub header: String,
}
