//! What a human decides, by the database's functions: anyone may call them from psql as well.

use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use uuid::Uuid;

use super::{
    Postgres,
    core::{Core, Params},
};
use crate::{Desk, Error, ErrorKind, Flag, Review};

const REVIEWS: &str = include_str!("../../sql/postgres/desk_reviews.sql");
const FLAGS: &str = include_str!("../../sql/postgres/desk_flags.sql");
const REQUEUE: &str = include_str!("../../sql/postgres/requeue.sql");
const DISCARD: &str = include_str!("../../sql/postgres/discard.sql");
const FLAG_CLOSE: &str = include_str!("../../sql/postgres/flag_close.sql");
const REPLAY: &str = include_str!("../../sql/postgres/replay.sql");

async fn rows(core: &Core, sql: &str, params: &Params<'_>) -> Result<Vec<Row>, Error> {
    let client = core.connection().await?;
    core.query(&client, sql, params).await
}

/// Whether a decision was made.
async fn decided(core: &Core, sql: &str, params: &Params<'_>) -> Result<bool, Error> {
    let rows = rows(core, sql, params).await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

impl Desk for Postgres {
    async fn reviews(&self, most: u32) -> Result<Vec<Review>, Error> {
        let most = i64::from(most);
        let rows = rows(self.core(), REVIEWS, &[(&most, Type::INT8)]).await?;
        let review = |row: &Row| Review {
            receipt: row.get(0),
            endpoint: row.get(1),
            event_id: row.get(2),
            event_type: row.get(3),
            attempts: u32::try_from(row.get::<_, i16>(4)).unwrap_or_default(),
            since: row.get(5),
            reason: row.get(6),
        };
        Ok(rows.iter().map(review).collect())
    }

    async fn requeue(&self, receipt: Uuid) -> Result<bool, Error> {
        let requeued = decided(self.core(), REQUEUE, &[(&receipt, Type::UUID)]).await?;
        self.core().arrivals.send_replace(());
        Ok(requeued)
    }

    async fn discard(&self, receipt: Uuid, reason: &str) -> Result<bool, Error> {
        let params: [(&(dyn ToSql + Sync), Type); 2] =
            [(&receipt, Type::UUID), (&reason, Type::TEXT)];
        decided(self.core(), DISCARD, &params).await
    }

    async fn flags(&self, most: u32) -> Result<Vec<Flag>, Error> {
        let most = i64::from(most);
        let rows = rows(self.core(), FLAGS, &[(&most, Type::INT8)]).await?;
        let flag = |row: &Row| Flag {
            flag: row.get(0),
            endpoint: row.get(1),
            event_id: row.get(2),
            raised_at: row.get(3),
            reason: row.get(4),
        };
        Ok(rows.iter().map(flag).collect())
    }

    async fn close_flag(&self, flag: &str, note: &str) -> Result<bool, Error> {
        let id: Uuid = flag.parse().map_err(|_| {
            Error::new(ErrorKind::Data, format!("{flag} is no id of a flag: see the list of flags"))
        })?;
        let params: [(&(dyn ToSql + Sync), Type); 2] = [(&id, Type::UUID), (&note, Type::TEXT)];
        decided(self.core(), FLAG_CLOSE, &params).await
    }

    async fn replay(&self, receipt: Uuid, by: &str, reason: &str) -> Result<u32, Error> {
        let params: [(&(dyn ToSql + Sync), Type); 3] =
            [(&receipt, Type::UUID), (&by, Type::TEXT), (&reason, Type::TEXT)];
        let rows = rows(self.core(), REPLAY, &params).await?;
        self.core().arrivals.send_replace(());
        let run: i16 = rows.first().map_or(0, |row| row.get(0));
        Ok(u32::try_from(run).unwrap_or_default())
    }
}
