//! The guard that travels with COMMIT, and what to think of its answer.
//!
//! Drivers say `Ok` to the commit of an aborted transaction, and a handler's own COMMIT passes a
//! plain `SELECT 1`. An error here is never taken for a commit, and a lost line for neither.

use uuid::Uuid;

use super::{Schema, Tx, connect};

/// How a transaction ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// COMMIT returned success.
    Committed,
    /// The server refused: not committed by us.
    Failed(String),
    /// The connection died: perhaps committed.
    Unknown,
}

/// One message, so that a guard that raises keeps COMMIT from being reached. Deferred
/// constraints are made to speak first: as errors at COMMIT they would look like an unknown.
/// `in_line`: an event with a place in the line of its order key, which moves on with it.
pub(super) fn message(schema: &Schema, xid: &str, in_line: Option<Uuid>) -> String {
    let xid: String = xid.chars().filter(char::is_ascii_digit).collect();
    let judged = match in_line {
        Some(receipt) => format!("'{xid}', '{receipt}'"),
        None => format!("'{xid}'"),
    };
    schema.sql(&format!("SET CONSTRAINTS ALL IMMEDIATE; SELECT ichido.sound({judged}); COMMIT"))
}

/// Sends the guard and COMMIT.
pub(super) async fn commit(tx: &Tx, xid: &str, in_line: Option<Uuid>) -> Ended {
    judge(tx.batch_execute(&message(tx.schema(), xid, in_line)).await)
}

/// What the answer to [`message`] means: an SQLSTATE is a failure, a lost line an unknown.
pub(super) fn judge(answer: Result<(), tokio_postgres::Error>) -> Ended {
    match answer {
        Ok(()) => Ended::Committed,
        Err(error) if connect::is_lost(&error) => Ended::Unknown,
        Err(error) => Ended::Failed(connect::text(&error)),
    }
}
