//! The rows.
use crate::Provider;
use std::{borrow::Cow, time::Duration};
static ROWS: &[Provider] = &[Provider {
    name: "stripe",
    deadline: Duration::from_secs(20),
    retry_horizon: Some(Duration::from_secs(3 * 86400)),
    id_signed: true,
    bad_signature_status: 400,
    volatile: Cow::Borrowed(&[Cow::Borrowed("pending_webhooks")]),
}];
/// All built-in providers.
pub fn catalogue() -> &'static [Provider] {
    ROWS
}
/// Finds a built-in provider by name.
pub fn provider(name: &str) -> Option<&'static Provider> {
    ROWS.iter().find(|row| row.name == name)
}
