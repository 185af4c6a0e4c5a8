//! One run of a handler in an open transaction, up to the answer to COMMIT: its errors, its
//! panics, its time.
//!
//! It must never let a panic through, and never take a lost line at COMMIT for either end.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::{
    FutureExt,
    future::{BoxFuture, join_all},
};
use tokio::time::timeout;
use tokio_postgres::CancelToken;
use tracing::warn;
use uuid::Uuid;

use super::{
    Tx, connect,
    core::Core,
    guard::{self, Ended},
    handler::{Run, Values, first_error},
    prepared::{Sql, is_stale},
};
use crate::{BoxError, Event, Fault, SqlHandler};

/// Comes before the handler where what stands before it must outlive its failure.
const SAVEPOINT: &str = "SAVEPOINT ichido_handler";
/// After a handler's time is up, how long its connection has to come back before it is closed.
pub(super) const DRAIN: Duration = Duration::from_secs(1);

/// How it went wrong.
pub(super) enum Failure {
    /// A statement that we had prepared is not what it was: nothing of it happened.
    Stale(String),
    /// By the handler's own error, a panic, or the guard's refusal.
    Handler(Fault),
    /// Its time was up; COMMIT may have landed just before.
    Timeout(Fault),
    /// The connection is gone before COMMIT was sent.
    Lost(String),
    /// The connection died while COMMIT was under way.
    Unknown,
}

/// What is run, and within which time.
pub(super) struct Attempt<'a> {
    pub(super) core: &'a Core,
    pub(super) event: &'a Event,
    /// Of the transaction that began.
    pub(super) xid: &'a str,
    pub(super) limit: Duration,
    /// Those of a handler in SQL, as they travel on this connection.
    pub(super) statements: Vec<Sql<'a>>,
    /// The event, where it may have a place in the line of its order key.
    pub(super) in_line: Option<Uuid>,
    /// Whether the transaction is to live on after a failure.
    pub(super) savepoint: bool,
}

impl Attempt<'_> {
    /// Runs the handler and commits, within the handler's time.
    pub(super) async fn run(&self, tx: &mut Tx, handler: &dyn Run) -> Result<(), Failure> {
        let token = tx.cancel_token();
        let running = AssertUnwindSafe(async {
            match handler.sql() {
                Some(sql) => self.run_sql(tx, sql).await,
                None => self.run_rust(tx, handler).await,
            }
        });
        match timeout(self.limit, running.catch_unwind()).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => {
                let text = format!("handler panicked: {}", said(&*panic));
                Err(Failure::Handler(Fault::retry(&text)))
            }
            Err(_) => {
                cancel(self.core, token).await;
                let limit = self.limit.as_secs_f64();
                let text = format!("handler_timeout: not done within {limit} s");
                Err(Failure::Timeout(Fault::retry(&text)))
            }
        }
    }

    /// Savepoint, statements and guard with COMMIT in one round trip. A statement that fails
    /// aborts the transaction, and so the guard stops before COMMIT.
    async fn run_sql(&self, tx: &Tx, sql: &SqlHandler) -> Result<(), Failure> {
        let values = Values::new(self.event);
        let guard = guard::message(tx.schema(), self.xid, self.in_line);
        let mut all: Vec<BoxFuture<'_, Result<(), tokio_postgres::Error>>> = Vec::new();
        if self.savepoint {
            all.push(tx.batch_execute(SAVEPOINT).boxed());
        }
        for (statement, sql) in sql.statements.iter().zip(&self.statements) {
            all.push(values.run(tx, statement, sql).boxed());
        }
        all.push(tx.batch_execute(&guard).boxed());
        let mut results = join_all(all).await;
        let committed = results.pop().expect("the guard was the last of them");
        match first_error(results) {
            Ok(()) => ended(guard::judge(committed)),
            // Everything travels together: the line may have died after COMMIT.
            Err(error) if connect::is_lost(&error) && committed.is_err() => {
                warn!(event.id = %self.event.id, error = connect::text(&error), "connection lost");
                Err(Failure::Unknown)
            }
            Err(error) if is_stale(&error) => Err(Failure::Stale(connect::text(&error))),
            Err(error) => Err(Failure::Handler(Fault::retry(&connect::text(&error)))),
        }
    }

    async fn run_rust(&self, tx: &mut Tx, handler: &dyn Run) -> Result<(), Failure> {
        let lost = |e: tokio_postgres::Error| Failure::Lost(connect::text(&e));
        if self.savepoint {
            tx.batch_execute(SAVEPOINT).await.map_err(lost)?;
        }
        tx.touch();
        if let Err(error) = handler.run(tx, self.event).await {
            return Err(Failure::Handler(Fault::of(&error, &handler_text(&error))));
        }
        ended(guard::commit(tx, self.xid, self.in_line).await)
    }
}

/// Cancels what a connection is doing. Best effort: where it does not come back, it is closed.
pub(super) async fn cancel(core: &Core, token: CancelToken) {
    let cancelled = timeout(DRAIN, token.cancel_query(core.tls.clone())).await;
    if !matches!(cancelled, Ok(Ok(()))) {
        warn!("a handler's statement was not cancelled");
    }
}

fn ended(ended: Ended) -> Result<(), Failure> {
    match ended {
        Ended::Committed => Ok(()),
        Ended::Failed(why) => Err(Failure::Handler(Fault::retry(&why))),
        Ended::Unknown => Err(Failure::Unknown),
    }
}

/// A handler's error in words, without the DETAIL of a database error.
fn handler_text(error: &BoxError) -> String {
    match error.downcast_ref::<tokio_postgres::Error>() {
        Some(error) => connect::text(error),
        None => error.to_string(),
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word")
}
