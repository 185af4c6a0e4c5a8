//! Sync deliveries whose handlers are SQL share a transaction: one commit, few round trips.
//!
//! All or nothing: where anything goes wrong before COMMIT, nothing of it stays and each delivery
//! is received on its own (`sync`), so that a bad neighbour costs time and never an outcome. COMMIT
//! is sent only after every statement succeeded, so that its fate is the only one that can be
//! unknown.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, join, join_all},
};
use tokio::time::timeout;

use super::{
    Config, Tx,
    attempt::cancel,
    batch::{Batch, Stored},
    connect,
    core::{Core, is_unknown_endpoint},
    group,
    guard::{self, Ended},
    handler::{self, Run, Values},
    prepared::Sql,
    queue::{self, Queue, Shape},
    sync::BEGIN,
};
use crate::{Error, ErrorKind, Event, Intake, Outcome, SqlHandler, Taken};

/// Deliveries in one transaction. Their handlers hold each other's locks until it ends.
const DELIVERIES_MAX: usize = 16;
/// With this many a second transaction is worth it: the handlers are most of the work.
const ENOUGH: usize = 4;
/// Until all their statements have run; below the second after which PostgreSQL looks for
/// deadlocks. What takes longer is received alone, within its own `handler_timeout`.
const TIME: Duration = Duration::from_millis(250);
/// How long a handler runs alone after it made a shared transaction fail.
const REST: Duration = Duration::from_mins(1);

/// What became of a delivery that was offered.
pub(super) enum Answer {
    /// It was received, or is known not to be.
    Done(Result<Taken, Error>),
    /// Nothing happened: receive it alone.
    Alone(Intake<dyn Run>),
}

type Job = queue::Job<Answer>;

/// Handlers that run alone for a while. One is known by its address, for it lives as long as the
/// inbox.
#[derive(Debug, Default)]
pub(super) struct Resting(Mutex<HashMap<usize, Instant>>);

impl Resting {
    fn has(&self, handler: &SqlHandler) -> bool {
        let mut resting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = address(handler);
        match resting.get(&key) {
            Some(since) if since.elapsed() < REST => true,
            Some(_) => resting.remove(&key).is_none(),
            None => false,
        }
    }

    fn put(&self, handler: &SqlHandler) {
        let mut resting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        resting.insert(address(handler), Instant::now());
    }
}

fn address(handler: &SqlHandler) -> usize {
    std::ptr::from_ref(handler).addr()
}

/// The queue of sync deliveries that may share.
pub(super) fn queue(core: Arc<Core>, config: &Config) -> Queue<Answer> {
    let shape = Shape {
        committers: config.committers,
        deliveries_max: DELIVERIES_MAX,
        enough: ENOUGH,
        waiting_max: config.waiting_max,
    };
    Queue::new(core, shape, |core, jobs| commit(core, jobs).boxed())
}

/// Whether this delivery may share.
pub(super) fn may(core: &Core, intake: &Intake<dyn Run>) -> bool {
    sql(intake).is_some_and(|handler| !core.resting.has(handler))
}

fn sql(intake: &Intake<dyn Run>) -> Option<&SqlHandler> {
    intake.sync_handler().and_then(|handler| handler.sql())
}

/// Why a shared transaction did not commit.
enum Apart {
    /// Rolled back, through the fault of these, if anybody's.
    Undone(Vec<usize>),
    /// No connection: nothing was tried, and alone it would fare no better.
    Away(Error),
    /// The connection died at COMMIT; the receipts will tell.
    Unknown(Vec<Stored>),
}

async fn commit(core: Arc<Core>, jobs: Vec<Job>) {
    let (intakes, answers): (Vec<_>, Vec<_>) =
        jobs.into_iter().map(|job| (job.intake, job.answer)).unzip();
    let all: Vec<_> = intakes.iter().collect();
    let apart = match together(&core, &all).await {
        Ok(rows) => {
            for ((intake, answer), row) in intakes.iter().zip(answers).zip(&rows) {
                drop(answer.send(Answer::Done(group::judge_one(&core, intake, 0, row).await)));
            }
            return;
        }
        Err(apart) => apart,
    };
    match apart {
        Apart::Undone(blamed) => {
            for handler in blamed.iter().filter_map(|index| sql(all[*index])) {
                core.resting.put(handler);
            }
            for (intake, answer) in intakes.into_iter().zip(answers) {
                drop(answer.send(Answer::Alone(intake)));
            }
        }
        Apart::Away(error) => {
            for answer in answers {
                let error = Error::new(error.kind(), error.to_string());
                drop(answer.send(Answer::Done(Err(error))));
            }
        }
        Apart::Unknown(rows) => {
            for ((intake, answer), row) in intakes.iter().zip(answers).zip(&rows) {
                drop(answer.send(Answer::Done(ask_again(&core, intake, row).await)));
            }
        }
    }
}

/// Receives all of them in one transaction; their rows once it has committed.
async fn together(core: &Core, intakes: &[&Intake<dyn Run>]) -> Result<Vec<Stored>, Apart> {
    let connection = core.connection().await.map_err(Apart::Away)?;
    let mut handlers: HashMap<usize, Vec<Sql<'_>>> = HashMap::new();
    for handler in intakes.iter().filter_map(|intake| sql(intake)) {
        if let std::collections::hash_map::Entry::Vacant(entry) = handlers.entry(address(handler)) {
            entry.insert(handler::prepare(&core.prepared, &connection, handler).await);
        }
    }
    let receive = core.receiving(&connection).await.map_err(|_| Apart::Undone(Vec::new()))?;
    let tx = Tx::new(connection, core.schema.clone());
    let token = tx.cancel_token();
    let own = intakes.iter().map(|intake| intake.endpoint.handler_timeout).min();
    let limit = own.map_or(TIME, |own| own.min(TIME));
    let rows = match timeout(limit, run(core, &tx, intakes, &receive, &handlers)).await {
        Ok(Ok(rows)) => rows,
        Ok(Err(blamed)) => {
            tx.roll_back().await;
            return Err(Apart::Undone(blamed));
        }
        Err(_) => {
            cancel(core, token).await;
            drop(tx);
            return Err(Apart::Undone((0..intakes.len()).collect()));
        }
    };
    if rows.iter().all(|row| !row.taken) {
        tx.roll_back().await;
        return Ok(rows);
    }
    match guard::commit(&tx, &rows[0].xid, None).await {
        Ended::Committed => {
            tx.finish();
            Ok(rows)
        }
        Ended::Failed(_) => Err(Apart::Undone((0..intakes.len()).collect())),
        Ended::Unknown => Err(Apart::Unknown(rows)),
    }
}

/// Receipts in one round trip, the statements of all that were taken in a second one. An error
/// names who is to blame, if anybody.
async fn run(
    core: &Core,
    tx: &Tx,
    intakes: &[&Intake<dyn Run>],
    receive: &Sql<'_>,
    handlers: &HashMap<usize, Vec<Sql<'_>>>,
) -> Result<Vec<Stored>, Vec<usize>> {
    let batch = Batch::new(intakes.iter().copied());
    let (begun, rows) = join(tx.batch_execute(BEGIN), batch.receive(tx, receive)).await;
    let rows = begun.and(rows).map_err(|error| {
        if is_unknown_endpoint(&error) {
            core.forget_registration();
        }
        Vec::new()
    })?;
    let events: Vec<Event> = intakes.iter().map(|intake| intake.event(0)).collect();
    let values: Vec<_> = events.iter().map(Values::new).collect();
    let mut running: Vec<BoxFuture<'_, Result<(), tokio_postgres::Error>>> = Vec::new();
    let mut whose = Vec::new();
    for (index, (intake, row)) in intakes.iter().zip(&rows).enumerate() {
        let Some(handler) = sql(intake).filter(|_| row.taken) else { continue };
        for (statement, sql) in handler.statements.iter().zip(&handlers[&address(handler)]) {
            whose.push(index);
            running.push(values[index].run(tx, statement, sql).boxed());
        }
    }
    let results = join_all(running).await;
    match results.iter().position(Result::is_err) {
        None => Ok(rows),
        Some(first) if results[first].as_ref().is_err_and(connect::is_lost) => Err(Vec::new()),
        Some(first) => Err(vec![whose[first]]),
    }
}

/// COMMIT's fate is unknown: our receipt there means that it landed, with its effect.
async fn ask_again(core: &Core, intake: &Intake<dyn Run>, row: &Stored) -> Result<Taken, Error> {
    let outcome = if row.taken { Outcome::Processed } else { Outcome::Duplicate };
    match core.is_stored(row.receipt).await {
        Ok(true) => {
            let taken = intake.taken(0, row.receipt, outcome, None);
            Ok(Taken { repeated: row.repeated, ..taken })
        }
        Ok(false) => {
            Err(Error::new(ErrorKind::Unavailable, "the connection was lost before COMMIT"))
        }
        Err(_) => Err(Error::new(ErrorKind::Unknown, "the connection was lost at COMMIT")),
    }
}
