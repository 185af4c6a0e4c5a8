//! Work in an SQLite file: claim, process, fail, release, each in a transaction of its own on the
//! writer thread.
//!
//! The completion comes before the handler, in one transaction with it, so that a lease that ran
//! out never causes a second effect.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use ichido_verify::{Provenance, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use super::{
    Run,
    attempt::{Why, attempt},
    file, time,
    writer::Thread,
};
use crate::{Claimed, Error, ErrorKind, Event, Failed, Fault, Lane, Then, Worked};

macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("../../sql/sqlite/", $name, ".sql"))
    };
}

/// A lease ends later by up to this share, so that those of one claim do not end together.
const LEASE_JITTER: f64 = 0.25;
/// The longest delay that is drawn for a failed event, in seconds.
const RETRY_MAX: f64 = 300.0;
/// Turns of one claim: each claims, finds nothing, or moves one exhausted event to review.
const TURNS: usize = 100;
const RAN_OUT: &str = "the lease ran out: the worker died or the handler took too long";
const USED_UP: &str = "attempts used up; at the last one the lease ran out";

/// What a worker asks for, on its way to the writer.
pub(super) struct Claim {
    pub(super) queues: Vec<Arc<str>>,
    pub(super) lanes: Vec<Lane>,
    pub(super) most: usize,
    pub(super) lease: Duration,
}

/// An event that is due.
struct Due {
    claimed: Claimed,
    held: Held,
    claimed_at: Option<String>,
    next_at: String,
    max_attempts: u32,
}

/// A row of work, by its key.
struct Held {
    id: [u8; 16],
    lease: i64,
    attempts: u32,
    run: u32,
}

/// Claims due events: the lanes in their order, in each the queues in theirs. Where nothing is
/// due, it is a look and no transaction.
pub(super) fn claim(thread: &mut Thread, claim: &Claim) -> Result<Vec<Claimed>, Error> {
    let one = Claim { most: 1, queues: claim.queues.clone(), lanes: claim.lanes.clone(), ..*claim };
    if due(thread.connection(), &one, &time::now()).map_err(|e| file::error(&e))?.is_empty() {
        return Ok(Vec::new());
    }
    commit(thread, |connection| claim_in(connection, claim))
}

fn claim_in(connection: &Connection, claim: &Claim) -> rusqlite::Result<Vec<Claimed>> {
    for _ in 0..TURNS {
        let now = Timestamp::now();
        let mut due = due(connection, claim, &time::text(now))?;
        let alone = due.iter().position(|due| due.held.lease != 0);
        match alone {
            // It may be what killed its process: alone, or not now.
            Some(0) => {
                due.truncate(1);
                if spent(connection, &due[0], now)? {
                    continue;
                }
            }
            Some(first) => due.truncate(first),
            None => {}
        }
        return take(connection, due, now, claim.lease);
    }
    Ok(Vec::new())
}

/// A transaction of ours, in which no handler runs.
fn commit<T>(
    thread: &mut Thread,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> Result<T, Error> {
    thread.transaction(|connection, _| {
        work(connection).map(|value| (value, true)).map_err(|e| file::error(&e))
    })
}

fn due(connection: &Connection, claim: &Claim, now: &str) -> rusqlite::Result<Vec<Due>> {
    let mut all = Vec::new();
    let mut find = connection.prepare_cached(sql!("work_due"))?;
    for lane in &claim.lanes {
        for queue in &claim.queues {
            let more = claim.most - all.len();
            if more == 0 {
                return Ok(all);
            }
            let row = params![&**queue, lane.as_str(), now, more];
            for found in find.query_map(row, |row| read(row, *lane))? {
                all.push(found?);
            }
        }
    }
    Ok(all)
}

fn read(row: &Row<'_>, lane: Lane) -> rusqlite::Result<Due> {
    let id: [u8; 16] = row.get(0)?;
    let held = Held { id, lease: row.get(1)?, attempts: row.get(2)?, run: row.get(3)? };
    let occurred_at: Option<String> = row.get(12)?;
    let event = Event {
        receipt: Uuid::from_bytes(id),
        endpoint: row.get::<_, String>(8)?.into(),
        provider: row.get::<_, String>(9)?.into(),
        id: row.get(10)?,
        event_type: row.get(11)?,
        occurred_at: occurred_at.and_then(|at| at.parse().ok()),
        body: Bytes::from(row.get::<_, Option<Vec<u8>>>(13)?.unwrap_or_default()),
        provenance: if row.get(14)? { Provenance::Signed } else { Provenance::Vouched },
        attempt: held.attempts + 1,
        run: held.run,
    };
    Ok(Due {
        claimed: Claimed { event, lease: 0, lane },
        held,
        claimed_at: row.get(4)?,
        next_at: row.get(5)?,
        max_attempts: row.get(7)?,
    })
}

/// Records the attempt whose lease ran out. True: it was the last one, and the event needs review.
fn spent(connection: &Connection, due: &Due, now: Timestamp) -> rusqlite::Result<bool> {
    let began = due.claimed_at.as_deref().unwrap_or(&due.next_at);
    put_attempt(connection, &due.held, began, &due.next_at, RAN_OUT)?;
    if due.held.attempts < due.max_attempts {
        return Ok(false);
    }
    to_review(connection, &due.held.id, now, USED_UP)?;
    Ok(true)
}

fn take(
    connection: &Connection,
    due: Vec<Due>,
    now: Timestamp,
    lease_time: Duration,
) -> rusqlite::Result<Vec<Claimed>> {
    if due.is_empty() {
        return Ok(Vec::new());
    }
    let lease: i64 =
        connection.prepare_cached(sql!("lease_next"))?.query_row([], |row| row.get(0))?;
    connection.prepare_cached(sql!("lease_trim"))?.execute([lease])?;
    let mut update = connection.prepare_cached(sql!("work_claim"))?;
    let mut all = Vec::with_capacity(due.len());
    for due in due {
        let ends = now + lease_time.mul_f64(1.0 + LEASE_JITTER * fastrand::f64());
        update.execute(params![due.held.id, lease, time::text(now), time::text(ends)])?;
        all.push(Claimed { lease, ..due.claimed });
    }
    Ok(all)
}

/// Completion, handler and COMMIT, in one transaction.
pub(super) fn process(
    thread: &mut Thread,
    claimed: &Claimed,
    handler: &dyn Run,
    limit: Duration,
) -> Result<Worked, Error> {
    let worked = thread.transaction(|connection, watch| {
        let started = start(connection, claimed).map_err(|e| file::error(&e))?;
        let Some(line) = started else { return Ok((Worked::Lost, false)) };
        match attempt(watch, connection, &claimed.event, limit, handler) {
            Ok(()) => {
                line.move_on(connection).map_err(|e| file::error(&e))?;
                Ok((Worked::Processed, true))
            }
            Err(Why { fault, ours: true }) => Err(Error::new(ErrorKind::Unavailable, fault.text)),
            Err(Why { fault, .. }) => Ok((Worked::Failed(fault), false)),
        }
    });
    match worked {
        // A constraint that the handler left for COMMIT to find.
        Err(error) if error.kind() == ErrorKind::Data => {
            Ok(Worked::Failed(Fault::retry(&error.to_string())))
        }
        worked => worked,
    }
}

fn start(connection: &Connection, claimed: &Claimed) -> rusqlite::Result<Option<Line>> {
    let id = *claimed.event.receipt.as_bytes();
    let mut take = connection.prepare_cached(sql!("work_start"))?;
    let row: Option<(String, u32, u32, Line)> = take
        .query_row(params![id, claimed.lease], |row| {
            let line = Line { endpoint: row.get(0)?, key: row.get(4)?, place: row.get(5)? };
            Ok((row.get(1)?, row.get(2)?, row.get(3)?, line))
        })
        .optional()?;
    let Some((queue, attempts, run, line)) = row else { return Ok(None) };
    let mut done = connection.prepare_cached(sql!("done_run"))?;
    done.execute(params![id, line.endpoint, queue, attempts, run, time::now()])?;
    Ok(Some(line))
}

/// Where an event stood that is no work any more.
struct Line {
    endpoint: i64,
    key: Option<String>,
    /// `None`: no order was asked for.
    place: Option<i64>,
}

impl Line {
    /// Lets the next of the key come, unless one that needs review blocks it.
    fn move_on(&self, connection: &Connection) -> rusqlite::Result<()> {
        let (Some(key), Some(_)) = (&self.key, self.place) else { return Ok(()) };
        let mut next = connection.prepare_cached(sql!("order_next"))?;
        next.execute(params![self.endpoint, key, time::now()]).map(drop)
    }
}

/// Records a failed attempt, where the event is still ours.
pub(super) fn fail(thread: &mut Thread, claimed: &Claimed, fault: &Fault) -> Result<Failed, Error> {
    commit(thread, |connection| fail_in(connection, claimed, fault))
}

fn fail_in(connection: &Connection, claimed: &Claimed, fault: &Fault) -> rusqlite::Result<Failed> {
    let id = *claimed.event.receipt.as_bytes();
    let mut find = connection.prepare_cached(sql!("work_held"))?;
    let found: Option<(Option<String>, u32, u32, u32)> = find
        .query_row(params![id, claimed.lease], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .optional()?;
    let Some((claimed_at, attempts, run, max_attempts)) = found else { return Ok(Failed::Lost) };
    let now = Timestamp::now();
    let held = Held { id, lease: claimed.lease, attempts, run };
    let ended = time::text(now);
    put_attempt(connection, &held, claimed_at.as_deref().unwrap_or(&ended), &ended, &fault.text)?;
    if fault.then == Then::Review || attempts >= max_attempts {
        to_review(connection, &id, now, &fault.text)?;
        return Ok(Failed::Review);
    }
    let delay = match fault.then {
        Then::Later(delay) => delay,
        _ => drawn(attempts),
    };
    let mut retry = connection.prepare_cached(sql!("work_retry"))?;
    retry.execute(params![id, fault.text, time::text(now + delay)])?;
    Ok(Failed::Retry)
}

/// Full jitter: anything up to a limit that doubles with each attempt.
fn drawn(attempts: u32) -> Duration {
    let most = 2f64.powi(attempts.min(16).cast_signed()).min(RETRY_MAX);
    Duration::from_secs_f64(most * fastrand::f64())
}

/// Gives an event back without a start. False: it is not ours any more.
pub(super) fn release(
    thread: &mut Thread,
    claimed: &Claimed,
    delay: Duration,
) -> Result<bool, Error> {
    commit(thread, |connection| {
        let id = *claimed.event.receipt.as_bytes();
        let due = time::text(Timestamp::now() + delay);
        let mut release = connection.prepare_cached(sql!("work_release"))?;
        Ok(release.execute(params![id, claimed.lease, due])? == 1)
    })
}

fn put_attempt(
    connection: &Connection,
    held: &Held,
    began: &str,
    ended: &str,
    error: &str,
) -> rusqlite::Result<()> {
    let mut put = connection.prepare_cached(sql!("work_attempt"))?;
    let row = params![held.id, held.lease, began, ended, held.run, held.attempts, error];
    put.execute(row).map(drop)
}

fn to_review(
    connection: &Connection,
    id: &[u8; 16],
    now: Timestamp,
    reason: &str,
) -> rusqlite::Result<()> {
    let mut put = connection.prepare_cached(sql!("work_to_review"))?;
    put.execute(params![id, time::text(now), reason])?;
    let mut delete = connection.prepare_cached(sql!("work_delete"))?;
    let line = delete.query_row([id], |row| {
        Ok(Line { endpoint: row.get(0)?, key: row.get(1)?, place: row.get(2)? })
    })?;
    line.move_on(connection)
}
