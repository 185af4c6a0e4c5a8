//! Statistics and the audit, as statements over the file. Must never write.

use rusqlite::Connection;

use crate::{Finding, Stats, TypeCount};

pub(super) fn stats(connection: &Connection) -> rusqlite::Result<Stats> {
    let mut stats = Stats::default();
    let mut figures = connection.prepare(include_str!("../../sql/sqlite/stats.sql"))?;
    let mut rows = figures.query([])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        match name.as_str() {
            "unprocessed" => stats.unprocessed = row.get(1)?,
            "oldest_age_seconds" => stats.oldest_age_seconds = row.get(1)?,
            "needs_review" => stats.needs_review = row.get(1)?,
            "flags" => stats.flags = row.get(1)?,
            "conflicts" => stats.conflicts = row.get(1)?,
            "repeated_bodies" => stats.repeated_bodies = row.get(1)?,
            "duplicates" => stats.duplicates = row.get(1)?,
            "outbox_waiting" => stats.outbox_waiting = row.get(1)?,
            _ => {}
        }
    }
    let mut types = connection.prepare(include_str!("../../sql/sqlite/stats_types.sql"))?;
    let rows = types.query_map([], |row| {
        Ok(TypeCount { endpoint: row.get(0)?, event_type: row.get(1)?, count: row.get(2)? })
    })?;
    stats.received_last_hour = rows.collect::<Result<_, _>>()?;
    Ok(stats)
}

pub(super) fn audit(connection: &Connection) -> rusqlite::Result<Vec<Finding>> {
    let mut audit = connection.prepare(include_str!("../../sql/sqlite/audit.sql"))?;
    let rows = audit.query_map([], |row| {
        Ok(Finding {
            invariant: row.get(0)?,
            promise: row.get(1)?,
            count: row.get(2)?,
            example: row.get(3)?,
        })
    })?;
    rows.collect()
}
