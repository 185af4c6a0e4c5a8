//! What a human decides, each in a transaction of its own on a connection of its own: also from
//! another process than the one that receives, which waits for it as for any writer.
//!
//! It must never hold the file for longer than one decision.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};
use uuid::Uuid;

use super::{Sqlite, file, time};
use crate::{Desk, Error, ErrorKind, Flag, Review};

macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("../../sql/sqlite/", $name, ".sql"))
    };
}

/// How long a decision waits for whoever writes: longer than any handler may take.
const BUSY: Duration = Duration::from_secs(5);

/// An event that was taken out of review.
struct Held {
    endpoint: i64,
    queue: String,
    attempts: u32,
    run: u32,
    received_at: String,
    order_key: Option<String>,
    order_seq: Option<i64>,
    reason: String,
}

impl Sqlite {
    /// Runs `decide` in a transaction that is kept where it succeeds.
    async fn decide<T: Send + 'static>(
        &self,
        decide: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let path = self.path.clone();
        let task = tokio::task::spawn_blocking(move || {
            let mut connection = open(&path).map_err(|e| file::error(&e))?;
            file::check(&connection)?;
            let transaction = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(|e| file::error(&e))?;
            let decided = decide(&transaction)?;
            transaction.commit().map_err(|e| file::error(&e))?;
            Ok(decided)
        });
        let decided =
            task.await.unwrap_or_else(|e| Err(Error::new(ErrorKind::Unavailable, e.to_string())));
        self.arrivals.send_replace(());
        decided
    }
}

/// Decides on an event that needs review. False: it does not (any more).
fn on_held(
    connection: &Connection,
    receipt: Uuid,
    decide: impl FnOnce(&Held) -> Result<(), Error>,
) -> Result<bool, Error> {
    match take(connection, receipt.as_bytes()).map_err(|e| file::error(&e))? {
        Some(held) => decide(&held).map(|()| true),
        None => Ok(false),
    }
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

fn refused(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::Data, why)
}

fn take(connection: &Connection, id: &[u8; 16]) -> rusqlite::Result<Option<Held>> {
    let held = connection.query_row(sql!("review_take"), [id], |row| {
        Ok(Held {
            endpoint: row.get(0)?,
            queue: row.get(1)?,
            attempts: row.get(2)?,
            run: row.get(3)?,
            received_at: row.get(4)?,
            order_key: row.get(5)?,
            order_seq: row.get(6)?,
            reason: row.get(7)?,
        })
    });
    held.optional()
}

fn must_have_bytes(connection: &Connection, receipt: Uuid) -> Result<(), Error> {
    let id = *receipt.as_bytes();
    let kept: rusqlite::Result<bool> =
        connection.query_row(sql!("bytes_kept"), [id], |row| row.get(0));
    if kept.map_err(|e| file::error(&e))? {
        return Ok(());
    }
    Err(refused(format!("the bytes of event {receipt} are no longer kept: discard it")))
}

/// Back to its queue. Where its key waited for it, it is the first in line again; where it was
/// skipped and another of its key is at work, it goes to the end.
fn requeue(connection: &Connection, id: &[u8; 16], held: &Held) -> rusqlite::Result<()> {
    let (mut next, mut place) = (Some(time::now()), held.order_seq);
    if let (Some(key), Some(_)) = (&held.order_key, held.order_seq) {
        let line: Option<(bool, i64)> = connection
            .query_row(sql!("order_head"), params![held.endpoint, key], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        if let Some((true, last)) = line {
            (next, place) = (None, Some(last + 1));
        }
    }
    let row = params![
        id,
        held.endpoint,
        held.queue,
        "retry",
        next,
        held.run,
        held.received_at,
        held.order_key,
        place,
        held.reason
    ];
    connection.execute(sql!("work_again"), row).map(drop)
}

fn discard(
    connection: &Connection,
    id: &[u8; 16],
    held: &Held,
    reason: &str,
) -> rusqlite::Result<()> {
    let note = format!("{reason} (it needed review: {})", held.reason);
    let now = time::now();
    let row = params![id, held.run, held.endpoint, held.attempts, now, held.queue, note];
    connection.execute(sql!("done_discarded"), row)?;
    if let (Some(key), Some(_)) = (&held.order_key, held.order_seq) {
        connection.execute(sql!("order_next"), params![held.endpoint, key, time::now()])?;
    }
    Ok(())
}

fn replay(connection: &Connection, receipt: Uuid, by: &str, reason: &str) -> Result<u32, Error> {
    let failed = |e: rusqlite::Error| file::error(&e);
    let id = *receipt.as_bytes();
    let found: Option<(i64, String, Option<String>, bool, u32, String)> = connection
        .query_row(sql!("replay_find"), [id], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
        })
        .optional()
        .map_err(failed)?;
    let (endpoint, received_at, key, open, last, queue) =
        found.ok_or_else(|| refused(format!("unknown event {receipt}")))?;
    if open {
        let fix = "wait for its worker, or requeue or discard it";
        return Err(refused(format!("event {receipt} is not done: {fix}")));
    }
    must_have_bytes(connection, receipt)?;
    let (run, now) = (last + 1, time::now());
    let row = params![id, run, now, by, reason];
    connection.execute(sql!("replay_put"), row).map_err(failed)?;
    let (place, error) = (None::<i64>, None::<&str>);
    let row = params![id, endpoint, queue, "backfill", now, run, received_at, key, place, error];
    connection.execute(sql!("work_again"), row).map_err(failed)?;
    Ok(run)
}

impl Desk for Sqlite {
    async fn reviews(&self, most: u32) -> Result<Vec<Review>, Error> {
        self.read(move |connection| {
            let mut find = connection.prepare(sql!("desk_reviews"))?;
            let rows = find.query_map([most], |row| {
                Ok(Review {
                    receipt: Uuid::from_bytes(row.get(0)?),
                    endpoint: row.get(1)?,
                    event_id: row.get(2)?,
                    event_type: row.get(3)?,
                    attempts: row.get(4)?,
                    since: row.get(5)?,
                    reason: row.get(6)?,
                })
            })?;
            rows.collect()
        })
        .await
    }

    async fn requeue(&self, receipt: Uuid) -> Result<bool, Error> {
        self.decide(move |connection| {
            on_held(connection, receipt, |held| {
                must_have_bytes(connection, receipt)?;
                requeue(connection, receipt.as_bytes(), held).map_err(|e| file::error(&e))
            })
        })
        .await
    }

    async fn discard(&self, receipt: Uuid, reason: &str) -> Result<bool, Error> {
        if reason.trim().is_empty() {
            return Err(refused("discard needs a reason"));
        }
        let reason = reason.to_owned();
        self.decide(move |connection| {
            on_held(connection, receipt, |held| {
                discard(connection, receipt.as_bytes(), held, &reason).map_err(|e| file::error(&e))
            })
        })
        .await
    }

    async fn flags(&self, most: u32) -> Result<Vec<Flag>, Error> {
        self.read(move |connection| {
            let mut find = connection.prepare(sql!("desk_flags"))?;
            let rows = find.query_map([most], |row| {
                Ok(Flag {
                    flag: row.get::<_, i64>(0)?.to_string(),
                    endpoint: row.get(1)?,
                    event_id: row.get(2)?,
                    raised_at: row.get(3)?,
                    reason: row.get(4)?,
                })
            })?;
            rows.collect()
        })
        .await
    }

    async fn close_flag(&self, flag: &str, note: &str) -> Result<bool, Error> {
        let id: i64 = flag
            .parse()
            .map_err(|_| refused(format!("{flag} is no id of a flag: see the list of flags")))?;
        let note = note.to_owned();
        self.decide(move |connection| {
            let row = params![id, time::now(), note];
            let closed = connection.execute(sql!("flag_close"), row);
            closed.map(|count| count == 1).map_err(|e| file::error(&e))
        })
        .await
    }

    async fn replay(&self, receipt: Uuid, by: &str, reason: &str) -> Result<u32, Error> {
        if by.trim().is_empty() || reason.trim().is_empty() {
            return Err(refused("replay needs who asks for it and why"));
        }
        let (by, reason) = (by.to_owned(), reason.to_owned());
        self.decide(move |connection| replay(connection, receipt, &by, &reason)).await
    }
}
