//! What is in the file after the play, read on a connection of its own that cannot write.

use std::{collections::BTreeMap, path::Path};

use anyhow::Context;
use rusqlite::{Connection, OpenFlags};

use super::site::ENDPOINT;

/// What the tables hold.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Events by id; true when nothing remains to be done.
    pub(super) events: BTreeMap<String, bool>,
    /// Ledger entries of each invoice.
    pub(super) entries: BTreeMap<String, u64>,
    /// Messages of each invoice.
    pub(super) messages: BTreeMap<String, u64>,
    /// Sum over the ledger.
    pub(super) sum: i64,
    pub(super) flags: u64,
    /// The status of each invoice.
    pub(super) status: BTreeMap<String, String>,
}

/// Reads the tables of the file.
pub(super) fn read(file: &Path) -> anyhow::Result<Found> {
    let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .with_context(|| format!("cannot open {}", file.display()))?;
    let all = |sql: &str| -> rusqlite::Result<Vec<(String, String)>> {
        database.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    };
    let counts = |sql: &str| -> anyhow::Result<BTreeMap<String, u64>> {
        all(sql)?.into_iter().map(|(key, count)| Ok((key, count.parse()?))).collect()
    };
    let one = |sql: &str| database.query_row(sql, [], |row| row.get::<_, i64>(0));
    let events = all(&format!(
        "SELECT event_id, CASE WHEN processed_at IS NULL THEN 'open' ELSE 'done' END
           FROM webhook_inbox WHERE endpoint = '{ENDPOINT}'"
    ))?;
    Ok(Found {
        events: events.into_iter().map(|(id, state)| (id, state == "done")).collect(),
        entries: counts(
            "SELECT invoice_id, CAST(count(*) AS TEXT) FROM ledger_entries GROUP BY invoice_id",
        )?,
        messages: counts(
            "SELECT aggregate_id, CAST(count(*) AS TEXT) FROM outbox GROUP BY aggregate_id",
        )?,
        sum: one("SELECT coalesce(sum(amount), 0) FROM ledger_entries")?,
        flags: one("SELECT count(*) FROM ichido_flag")?.try_into()?,
        status: all("SELECT id, status FROM invoices")?.into_iter().collect(),
    })
}
