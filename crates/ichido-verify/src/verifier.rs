//! The verifier.
use crate::{ConfigError, Provider, Rejection, Request, Secret, Settings, SignError, Verdict};
use jiff::Timestamp;
/// A compiled endpoint.
#[derive(Debug)]
pub struct Verifier {
    row: Provider,
}
impl Verifier {
    /// Compiles.
    pub fn new(provider: &str, _settings: &Settings, _secrets: &[Secret]) -> Result<Self, ConfigError> {
        let row = crate::provider(provider).ok_or_else(|| ConfigError::new("unknown provider"))?;
        Ok(Self { row: row.clone() })
    }
    /// The row.
    pub fn provider(&self) -> &Provider {
        &self.row
    }
    /// Verifies.
    pub fn verify(&self, _request: Request, _now: Timestamp) -> Result<Verdict, Rejection> {
        Err(Rejection::NoSignature)
    }
    /// Signs.
    pub fn sign(&self, _request: &mut Request, _event_id: &str, _event_type: &str, _now: Timestamp) -> Result<(), SignError> {
        Err(SignError::PublicKey)
    }
    /// Equal after dropping volatile members.
    pub fn same_content(&self, a: &[u8], b: &[u8]) -> bool {
        a == b
    }
}
