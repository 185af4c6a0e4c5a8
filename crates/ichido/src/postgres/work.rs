//! Work on PostgreSQL: claim, process, fail, release.
//!
//! The completion opens the handler's transaction, so that a lease that ran out never causes a
//! second effect: it waits for whoever holds the event, and then finds it gone.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use deadpool_postgres::Object;
use futures_util::future::join;
use ichido_verify::{Provenance, Timestamp};
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use tracing::warn;
use uuid::Uuid;

use super::{
    Tx,
    attempt::{Attempt, Failure},
    connect,
    core::Core,
    handler::{self, Run},
    prepared::is_stale,
    sync::BEGIN,
};
use crate::{Claim, Claimed, Error, ErrorKind, Event, Failed, Fault, Lane, Then, Worked};

const CLAIM: &str = include_str!("../../sql/postgres/claim.sql");
const FAIL: &str = include_str!("../../sql/postgres/fail.sql");
const RELEASE: &str = include_str!("../../sql/postgres/release.sql");
const SWEEP: &str = include_str!("../../sql/postgres/order_sweep.sql");
const IS_DONE: &str = include_str!("../../sql/postgres/is_done.sql");
const START_TYPES: [Type; 2] = [Type::UUID, Type::INT8];
/// Tries of a start whose prepared statements turned out to be forgotten.
const TRIES: u32 = 3;

/// Claims due events. One statement is one transaction.
pub(super) async fn claim(core: &Core, claim: &Claim<'_>) -> Result<Vec<Claimed>, Error> {
    let client = core.work_connection().await?;
    let queues: Vec<&str> = claim.queues.iter().map(|queue| &**queue).collect();
    let lanes: Vec<&str> = claim.lanes.iter().map(|lane| lane.as_str()).collect();
    let most = i32::try_from(claim.most).unwrap_or(i32::MAX);
    let lease = claim.lease.as_secs_f64();
    let params: [(&(dyn ToSql + Sync), Type); 4] = [
        (&queues, Type::TEXT_ARRAY),
        (&lanes, Type::TEXT_ARRAY),
        (&most, Type::INT4),
        (&lease, Type::FLOAT8),
    ];
    let rows = core.query(&client, CLAIM, &params).await?;
    rows.iter().map(claimed).collect::<Result<_, _>>().map_err(|e| connect::database(&e))
}

fn claimed(row: &Row) -> Result<Claimed, tokio_postgres::Error> {
    let lane: &str = row.try_get(3)?;
    let attempt: i16 = row.try_get(2)?;
    let run: i16 = row.try_get(10)?;
    let occurred_at: Option<SystemTime> = row.try_get(8)?;
    let signed: bool = row.try_get(11)?;
    let event = Event {
        receipt: row.try_get(0)?,
        endpoint: row.try_get::<_, &str>(4)?.into(),
        provider: row.try_get::<_, &str>(5)?.into(),
        id: row.try_get(6)?,
        event_type: row.try_get(7)?,
        occurred_at: occurred_at.and_then(|at| Timestamp::try_from(at).ok()),
        body: Bytes::from(row.try_get::<_, Option<Vec<u8>>>(9)?.unwrap_or_default()),
        provenance: if signed { Provenance::Signed } else { Provenance::Vouched },
        attempt: u32::try_from(attempt).unwrap_or_default(),
        run: u32::try_from(run).unwrap_or_default(),
    };
    let lane = match lane {
        "fresh" => Lane::Fresh,
        "backfill" => Lane::Backfill,
        _ => Lane::Retry,
    };
    Ok(Claimed { event, lease: row.try_get(1)?, lane })
}

/// Runs a handler in the transaction that its completion opens.
pub(super) async fn process(
    core: &Core,
    claimed: &Claimed,
    handler: &Arc<dyn Run>,
    limit: Duration,
) -> Result<Worked, Error> {
    for _ in 1..TRIES {
        if let Some(worked) = attempt(core, claimed, &**handler, limit).await? {
            return Ok(worked);
        }
    }
    let worked = attempt(core, claimed, &**handler, limit).await?;
    worked.ok_or_else(|| Error::new(ErrorKind::Unavailable, "the server forgets our statements"))
}

/// `None`: nothing happened, for the server had forgotten what we thought it knew.
async fn attempt(
    core: &Core,
    claimed: &Claimed,
    handler: &dyn Run,
    limit: Duration,
) -> Result<Option<Worked>, Error> {
    let connection = core.work_connection().await?;
    let statements = match handler.sql() {
        Some(sql) => handler::prepare(&core.prepared, &connection, sql).await,
        None => Vec::new(),
    };
    let Some((mut tx, xid)) = start(core, connection, claimed).await? else { return Ok(None) };
    let Some(xid) = xid else {
        tx.roll_back().await;
        return Ok(Some(Worked::Lost));
    };
    let event = &claimed.event;
    let in_line = core.is_ordered(&event.endpoint).then_some(event.receipt);
    let attempt = Attempt { core, event, xid: &xid, limit, statements, in_line, savepoint: false };
    match attempt.run(&mut tx, handler).await {
        Ok(()) => {
            tx.finish();
            Ok(Some(Worked::Processed))
        }
        Err(Failure::Stale(_)) => Ok(None),
        Err(Failure::Handler(fault)) => {
            tx.roll_back().await;
            flag_if_done(core, event, &fault).await;
            Ok(Some(Worked::Failed(fault)))
        }
        // COMMIT may have landed just before: recording the failure waits, and finds out.
        Err(Failure::Timeout(fault)) => Ok(Some(Worked::Failed(fault))),
        Err(Failure::Lost(why)) => Ok(Some(Worked::Failed(Fault::retry(&why)))),
        Err(Failure::Unknown) => {
            drop(tx);
            ask_again(core, event).await.map(Some)
        }
    }
}

/// Opens the transaction with the completion, in one round trip. No id: the lease is lost. `None`
/// at all: the connection had forgotten a statement.
async fn start(
    core: &Core,
    connection: Object,
    claimed: &Claimed,
) -> Result<Option<(Tx, Option<String>)>, Error> {
    let sql = core.prepared.sql(&connection, core.start(), &START_TYPES).await;
    let sql = sql.map_err(|error| connect::database(&error))?;
    let tx = Tx::new(connection, core.schema.clone());
    let params: [(&(dyn ToSql + Sync), Type); 2] =
        [(&claimed.event.receipt, Type::UUID), (&claimed.lease, Type::INT8)];
    match join(tx.batch_execute(BEGIN), sql.query(&tx, &params)).await {
        (Ok(()), Ok(rows)) => {
            let xid = rows.first().map(|row| row.try_get(0)).transpose();
            let xid = xid.map_err(|error| connect::database(&error))?;
            Ok(Some((tx, xid)))
        }
        (Err(error), _) | (_, Err(error)) if is_stale(&error) => Ok(None),
        (Err(error), _) | (_, Err(error)) => {
            tx.roll_back().await;
            Err(connect::database(&error))
        }
    }
}

/// COMMIT's fate is unknown: the mark there means that it landed, with the effect.
async fn ask_again(core: &Core, event: &Event) -> Result<Worked, Error> {
    if is_done(core, event).await? {
        return Ok(Worked::Processed);
    }
    Ok(Worked::Failed(Fault::retry("the connection was lost at COMMIT")))
}

/// A handler that failed after it had ended its transaction itself: the mark went along, and a
/// human is told, for the effect may be half of one.
async fn flag_if_done(core: &Core, event: &Event, fault: &Fault) {
    if !is_done(core, event).await.unwrap_or(false) {
        return;
    }
    let why = &fault.text;
    let reason = format!("the handler ended its transaction itself; check its effect: {why}");
    if let Err(error) = core.flag(event, &reason).await {
        warn!(event.id = %event.id, %error, "could not flag the event");
    }
}

async fn is_done(core: &Core, event: &Event) -> Result<bool, Error> {
    let client = core.work_connection().await?;
    let run = small(event.run);
    let params: [(&(dyn ToSql + Sync), Type); 2] =
        [(&event.receipt, Type::UUID), (&run, Type::INT2)];
    let rows = core.query(&client, IS_DONE, &params).await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

fn small(number: u32) -> i16 {
    i16::try_from(number).unwrap_or(i16::MAX)
}

pub(super) async fn fail(core: &Core, claimed: &Claimed, fault: &Fault) -> Result<Failed, Error> {
    let client = core.work_connection().await?;
    let receipt: Uuid = claimed.event.receipt;
    let delay = match fault.then {
        Then::Later(delay) => Some(delay.as_secs_f64()),
        Then::Retry | Then::Review => None,
    };
    let permanent = fault.then == Then::Review;
    let params: [(&(dyn ToSql + Sync), Type); 5] = [
        (&receipt, Type::UUID),
        (&claimed.lease, Type::INT8),
        (&fault.text, Type::TEXT),
        (&delay, Type::FLOAT8),
        (&permanent, Type::BOOL),
    ];
    let rows = core.query(&client, FAIL, &params).await?;
    Ok(match rows.first().map(|row| row.get::<_, String>(0)).as_deref() {
        Some("retry") => Failed::Retry,
        Some("review") => Failed::Review,
        _ => Failed::Lost,
    })
}

pub(super) async fn release(
    core: &Core,
    claimed: &Claimed,
    delay: Duration,
) -> Result<bool, Error> {
    let client = core.work_connection().await?;
    let seconds = delay.as_secs_f64();
    let params: [(&(dyn ToSql + Sync), Type); 3] = [
        (&claimed.event.receipt, Type::UUID),
        (&claimed.lease, Type::INT8),
        (&seconds, Type::FLOAT8),
    ];
    let rows = core.query(&client, RELEASE, &params).await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

/// Lets lines go on that nobody moves.
pub(super) async fn sweep(core: &Core) -> Result<u32, Error> {
    let client = core.work_connection().await?;
    let rows = core.query(&client, SWEEP, &[]).await?;
    let count: i32 = rows.first().map_or(0, |row| row.get(0));
    Ok(count.unsigned_abs())
}
