//! The built-in providers, one row each, in a file for each kind of sender.
//!
//! A row is data. Facts come from the providers' own documentation and SDKs where a row says
//! [`Sureness::Read`]; most rows have vectors in `tests/data/signatures.json`.
//!
//! [`Sureness::Read`]: crate::Sureness::Read

mod developer;
mod messaging;
mod payments;
mod platforms;
mod standard;
mod work;

use std::sync::LazyLock;

use crate::Provider;

/// Names all built-in providers, in alphabetical order, `generic` excepted.
pub fn catalogue() -> &'static [Provider] {
    static ROWS: LazyLock<Vec<Provider>> = LazyLock::new(|| {
        let kinds = [developer::ROWS, messaging::ROWS, payments::ROWS, platforms::ROWS, work::ROWS];
        let rows = kinds.into_iter().flatten().map(crate::row::Row::compile);
        let mut rows: Vec<_> = rows.chain(standard::rows()).collect();
        rows.sort_by_key(|row| row.name);
        rows
    });
    &ROWS
}

/// Finds a built-in provider by its name.
pub fn provider(name: &str) -> Option<&'static Provider> {
    catalogue().iter().find(|row| row.name == name)
}
