//! One run of a handler in an open transaction: its errors, its panics and its time.
//!
//! It must never let a panic through, and never take a fault of ours for one of the handler's:
//! what is kept as failed is acknowledged, and the sender does not come back.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use rusqlite::Connection;
use tracing::warn;

use super::{Run, Tx, watch::Watch};
use crate::{BoxError, Event, Fault};

/// What is said of a handler that lost the transaction and told nobody.
const ROLLED_BACK: &str =
    "the handler rolled the whole transaction back: use OR ABORT or RAISE (ABORT)";

/// How a handler went wrong.
pub(super) struct Why {
    pub(super) fault: Fault,
    /// The disk, not the handler: nothing is kept, whoever brought the event tries again.
    pub(super) ours: bool,
}

/// Runs the handler of an event. Whether the transaction is still there afterwards is the
/// caller's to ask, too, where it failed.
pub(super) fn attempt(
    watch: &Watch,
    connection: &Connection,
    event: &Event,
    limit: Duration,
    handler: &dyn Run,
) -> Result<(), Why> {
    let began = Instant::now();
    let result = watch.over(limit, || {
        let mut tx = Tx(connection);
        catch_unwind(AssertUnwindSafe(|| handler.run(&mut tx, event)))
    });
    let took = began.elapsed();
    if took > limit {
        warn!(
            endpoint = %event.endpoint,
            event_type = %event.event_type,
            took_ms = took.as_millis(),
            limit_ms = limit.as_millis(),
            "a handler held the only writer longer than its handler_timeout"
        );
    }
    let lost = connection.is_autocommit();
    let (fault, ours) = match result {
        Ok(Ok(())) if lost => (Fault::retry(ROLLED_BACK), false),
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) if is_ours(&error) => (Fault::retry(&error.to_string()), true),
        Ok(Err(_)) if took > limit => {
            let limit = limit.as_secs_f64();
            (Fault::retry(&format!("handler_timeout: not done within {limit} s")), false)
        }
        Ok(Err(error)) => (Fault::of(&error, &error.to_string()), false),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("without a word");
            (Fault::retry(&format!("handler panicked: {text}")), false)
        }
    };
    Err(Why { fault, ours })
}

/// The disk is full or broken: no handler could have done better.
fn is_ours(error: &BoxError) -> bool {
    use rusqlite::ErrorCode::{DiskFull, OutOfMemory, SystemIoFailure};
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(&**error);
    while let Some(error) = next {
        let code = error.downcast_ref().and_then(rusqlite::Error::sqlite_error_code);
        if matches!(code, Some(DiskFull | OutOfMemory | SystemIoFailure)) {
            return true;
        }
        next = error.source();
    }
    false
}
