//! Statistics and the audit, as the database's functions give them.

use super::core::Core;
use crate::{Error, Finding, Stats, TypeCount};

const STATS: &str = include_str!("../../sql/postgres/stats.sql");
const STATS_TYPES: &str = include_str!("../../sql/postgres/stats_types.sql");
const AUDIT: &str = include_str!("../../sql/postgres/audit.sql");

pub(super) async fn stats(core: &Core) -> Result<Stats, Error> {
    let client = core.connection().await?;
    let mut stats = Stats::default();
    for row in core.query(&client, STATS, &[]).await? {
        let value: Option<f64> = row.get(1);
        let count = count(value.unwrap_or_default());
        match row.get(0) {
            "unprocessed" => stats.unprocessed = count,
            "oldest_age_seconds" => stats.oldest_age_seconds = value,
            "needs_review" => stats.needs_review = count,
            "flags" => stats.flags = count,
            "conflicts" => stats.conflicts = count,
            "repeated_bodies" => stats.repeated_bodies = count,
            "duplicates" => stats.duplicates = count,
            "outbox_waiting" => stats.outbox_waiting = count,
            _ => {}
        }
    }
    let rows = core.query(&client, STATS_TYPES, &[]).await?;
    stats.received_last_hour = rows
        .iter()
        .map(|row| TypeCount {
            endpoint: row.get(0),
            event_type: row.get(1),
            count: u64::try_from(row.get::<_, i64>(2)).unwrap_or_default(),
        })
        .collect();
    Ok(stats)
}

/// The function gives counts as `double precision`; those of an inbox are exact in it.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts, from 0 up")]
fn count(value: f64) -> u64 {
    value.max(0.0) as u64
}

pub(super) async fn audit(core: &Core) -> Result<Vec<Finding>, Error> {
    let client = core.connection().await?;
    let rows = core.query(&client, AUDIT, &[]).await?;
    Ok(rows
        .iter()
        .map(|row| Finding {
            invariant: row.get(0),
            promise: row.get(1),
            count: u64::try_from(row.get::<_, i64>(2)).unwrap_or_default(),
            example: row.get::<_, Option<String>>(3).unwrap_or_default(),
        })
        .collect())
}
