//! Sync receive: receipt, handler and COMMIT in one transaction.
//!
//! Nothing is acknowledged unless COMMIT returned success, or a fresh connection found our own
//! receipt after the old one died at COMMIT. A failed handler's writes never survive it.

use deadpool_postgres::Object;
use tokio::time::timeout;
use tokio_postgres::{
    error::SqlState,
    types::{ToSql, Type},
};
use tracing::warn;

use super::{
    Tx,
    attempt::{Attempt, DRAIN, Failure},
    batch::{Batch, Stored, Suspect},
    connect,
    core::{Core, is_unknown_endpoint},
    guard::{self, Ended},
    handler::{self, Run},
    prepared::is_stale,
};
use crate::{Error, ErrorKind, Event, Fault, Intake, OnFailure, Outcome, Taken};

/// What opens every receive transaction.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
const KEEP: &str = include_str!("../../sql/postgres/keep.sql");
const UNDO_HANDLER: &str = "ROLLBACK TO SAVEPOINT ichido_handler";
/// Tries of a receive whose prepared statements or registration turned out to be forgotten.
const TRIES: u32 = 3;
/// How often an event is kept anew after a late cancellation hit the keeping: it signals twice.
const KEEP_TRIES: u32 = 3;

/// A try that left nothing behind, because the server had forgotten what we thought it knew.
struct Again(Error);

/// Receives a sync delivery: one event with a handler.
pub(super) async fn receive(core: &Core, intake: &Intake<dyn Run>) -> Result<Taken, Error> {
    for _ in 1..TRIES {
        if let Ok(taken) = attempt(core, intake).await? {
            return Ok(taken);
        }
    }
    attempt(core, intake).await?.map_err(|Again(error)| error)
}

async fn attempt(core: &Core, intake: &Intake<dyn Run>) -> Result<Result<Taken, Again>, Error> {
    let handler = intake.sync_handler().expect("the caller routed a sync delivery here");
    let connection = core.connection().await?;
    let statements = match handler.sql() {
        Some(sql) => handler::prepare(&core.prepared, &connection, sql).await,
        None => Vec::new(),
    };
    let (tx, stored) = match begin(core, connection, intake).await? {
        Ok(begun) => begun,
        Err(again) => return Ok(Err(again)),
    };
    if stored.taken {
        let event = intake.event(0);
        let attempt = Attempt {
            core,
            event: &event,
            xid: &stored.xid,
            limit: intake.endpoint.handler_timeout,
            statements,
            in_line: None,
            savepoint: intake.endpoint.on_failure == OnFailure::Keep,
        };
        let work = Work { core, intake, event: &event, stored: &stored };
        return work.finish(tx, attempt, &**handler).await;
    }
    tx.roll_back().await;
    let mut taken = stored.taken(intake, 0);
    if stored.differs {
        taken.conflict = core.judge(&Suspect::new(intake, 0, stored.receipt)).await?;
    }
    Ok(Ok(taken))
}

/// Opens the transaction and takes the event key, in one round trip.
async fn begin(
    core: &Core,
    connection: Object,
    intake: &Intake<dyn Run>,
) -> Result<Result<(Tx, Stored), Again>, Error> {
    let receive = core.receiving(&connection).await.map_err(|error| connect::database(&error))?;
    let tx = Tx::new(connection, core.schema.clone());
    let batch = Batch::new([intake]);
    let (begun, stored) =
        futures_util::future::join(tx.batch_execute(BEGIN), batch.receive(&tx, &receive)).await;
    match (begun, stored) {
        (Ok(()), Ok(mut rows)) => {
            let stored = rows.pop().expect("one row for the one event");
            Ok(Ok((tx, stored)))
        }
        (Err(error), _) | (_, Err(error)) => {
            let why = connect::database(&error);
            if is_stale(&error) {
                drop(tx);
                return Ok(Err(Again(why)));
            }
            tx.roll_back().await;
            if is_unknown_endpoint(&error) {
                // The next connection registers it.
                core.forget_registration();
                return Ok(Err(Again(why)));
            }
            Err(why)
        }
    }
}

struct Work<'w> {
    core: &'w Core,
    intake: &'w Intake<dyn Run>,
    event: &'w Event,
    stored: &'w Stored,
}

impl Work<'_> {
    async fn finish(
        &self,
        mut tx: Tx,
        attempt: Attempt<'_>,
        handler: &dyn Run,
    ) -> Result<Result<Taken, Again>, Error> {
        let taken = match attempt.run(&mut tx, handler).await {
            Ok(()) => {
                tx.finish();
                Ok(self.outcome(Outcome::Processed, None))
            }
            Err(Failure::Stale(why)) => {
                drop(tx);
                return Ok(Err(Again(Error::new(ErrorKind::Unavailable, why))));
            }
            Err(Failure::Handler(fault)) => self.failed(tx, fault, false).await,
            Err(Failure::Timeout(fault)) => self.failed(tx, fault, true).await,
            Err(Failure::Lost(why)) => {
                drop(tx);
                Err(Error::new(ErrorKind::Unavailable, why))
            }
            Err(Failure::Unknown) => {
                drop(tx);
                self.ask_again(Outcome::Processed, None).await
            }
        };
        taken.map(Ok)
    }

    /// The handler failed: keep the event with its error in the same transaction, or refuse.
    async fn failed(&self, tx: Tx, fault: Fault, late: bool) -> Result<Taken, Error> {
        let why = fault.text;
        if !self.keeps() {
            tx.roll_back().await;
            // Late, COMMIT may have landed; the sender's next try will be a duplicate then.
            return if late {
                Err(Error::new(ErrorKind::Handler, why))
            } else {
                self.broken(why).await
            };
        }
        let kept = self.undo_and_keep(&tx, &why);
        match timeout(DRAIN.max(self.intake.endpoint.handler_timeout), kept).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) if is_outside(&error) => {
                drop(tx);
                if late {
                    // COMMIT may have landed just before the time was up.
                    return self.ask_again(Outcome::Processed, None).await;
                }
                return self.broken(why).await;
            }
            Ok(Err(error)) => return Err(connect::database(&error)),
            Err(_) => return Err(Error::new(ErrorKind::Unavailable, "the handler never ended")),
        }
        match guard::commit(&tx, &self.stored.xid, None).await {
            Ended::Committed => {
                // A cancellation may still be on its way: it must not meet the next one.
                if late {
                    drop(tx);
                } else {
                    tx.finish();
                }
                Ok(self.outcome(Outcome::Accepted, Some(why)))
            }
            Ended::Failed(error) => Err(Error::new(ErrorKind::Unavailable, error)),
            Ended::Unknown => {
                drop(tx);
                self.ask_again(Outcome::Accepted, Some(why)).await
            }
        }
    }

    /// Takes back what the handler wrote and leaves the event as work. A cancellation signals its
    /// backend twice, and the second signal may meet a statement of ours: then once more.
    async fn undo_and_keep(&self, tx: &Tx, why: &str) -> Result<(), tokio_postgres::Error> {
        let sql = tx.schema().sql(KEEP);
        let queue = &*self.intake.endpoint.name;
        let params: [(&(dyn ToSql + Sync), Type); 3] =
            [(&self.stored.receipt, Type::UUID), (&queue, Type::TEXT), (&why, Type::TEXT)];
        let mut tries = KEEP_TRIES;
        loop {
            tries -= 1;
            let undone = tx.batch_execute(UNDO_HANDLER).await;
            let kept = match undone {
                Ok(()) => tx.query_typed(&sql, &params).await.map(drop),
                Err(error) => Err(error),
            };
            match kept {
                Err(error) if tries > 0 && error.code() == Some(&SqlState::QUERY_CANCELED) => {}
                kept => return kept,
            }
        }
    }

    /// COMMIT's fate is unknown: our receipt there means that it landed, whole.
    async fn ask_again(&self, outcome: Outcome, why: Option<String>) -> Result<Taken, Error> {
        let unknown = || Error::new(ErrorKind::Unknown, "the connection was lost at COMMIT");
        match self.core.is_stored(self.stored.receipt).await {
            Ok(true) => Ok(self.outcome(outcome, why)),
            Ok(false) => {
                let why = why.unwrap_or_else(|| "the connection was lost before COMMIT".into());
                Err(Error::new(ErrorKind::Unavailable, why))
            }
            Err(_) => Err(unknown()),
        }
    }

    /// The handler failed and nothing is acknowledged. Where its own COMMIT took the receipt along,
    /// a human is told, for the effect may be half of one.
    async fn broken(&self, why: String) -> Result<Taken, Error> {
        if self.core.is_stored(self.stored.receipt).await.unwrap_or(false) {
            let reason =
                format!("the handler ended its transaction itself; check its effect: {why}");
            if let Err(error) = self.core.flag(self.event, &reason).await {
                warn!(event.id = %self.event.id, %error, "could not flag the event");
            }
        }
        Err(Error::new(ErrorKind::Handler, why))
    }

    fn keeps(&self) -> bool {
        self.intake.endpoint.on_failure == OnFailure::Keep
    }

    fn outcome(&self, outcome: Outcome, error: Option<String>) -> Taken {
        let taken = self.intake.taken(0, self.stored.receipt, outcome, error);
        Taken { repeated: self.stored.repeated, ..taken }
    }
}

/// There is no savepoint of ours any more: the transaction has ended or was never ours.
fn is_outside(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        *code == SqlState::NO_ACTIVE_SQL_TRANSACTION || *code == SqlState::S_E_INVALID_SPECIFICATION
    })
}
