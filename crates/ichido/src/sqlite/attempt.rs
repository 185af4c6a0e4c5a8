//! One run of a handler in the receive transaction: its errors, its panics and its time.
//!
//! It must never let a panic through, and never take a fault of ours for one of the handler's:
//! what is kept as failed is acknowledged, and the sender does not come back.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

use rusqlite::Connection;
use tracing::warn;

use super::{Run, Tx, watch::Watch};
use crate::{BoxError, Intake};

/// How a handler went wrong.
pub(super) struct Why {
    pub(super) text: String,
    /// The disk, not the handler: nothing is kept, the sender tries again.
    pub(super) ours: bool,
}

/// Runs the handler of the event at `index`. Whether the transaction is still there afterwards is
/// the caller's to ask.
pub(super) fn attempt(
    watch: &Watch,
    connection: &Connection,
    intake: &Intake<dyn Run>,
    index: usize,
    handler: &dyn Run,
) -> Result<(), Why> {
    let limit = intake.endpoint.handler_timeout;
    let event = intake.event(index);
    let began = Instant::now();
    let result = watch.over(limit, || {
        let mut tx = Tx(connection);
        catch_unwind(AssertUnwindSafe(|| handler.run(&mut tx, &event)))
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
    let (text, ours) = match result {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) if is_ours(&error) => (error.to_string(), true),
        Ok(Err(_)) if took > limit => {
            (format!("handler_timeout: not done within {} s", limit.as_secs_f64()), false)
        }
        Ok(Err(error)) => (error.to_string(), false),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            (format!("handler panicked: {}", text.unwrap_or("without a word")), false)
        }
    };
    Err(Why { text, ours })
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
