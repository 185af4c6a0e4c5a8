//! What a row of the catalogue can say.
use std::{borrow::Cow, time::Duration};
/// One provider.
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
}
