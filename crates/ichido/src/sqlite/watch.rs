//! What keeps a handler inside its transaction and its time.
//!
//! While a handler runs, statements that would end or leave the transaction are refused when
//! they are prepared, nothing can be committed, and SQL is interrupted when the time is up. A
//! closure between two statements cannot be interrupted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::{
    Connection,
    hooks::{AuthAction, AuthContext, Authorization},
};

/// Virtual-machine steps between two looks at the clock: some tens of microseconds.
const STEPS: i32 = 1_000;

/// The state that the connection's hooks look at.
pub(super) struct Watch {
    running: Arc<AtomicBool>,
    /// Microseconds after `start`; `u64::MAX`: none.
    deadline: Arc<AtomicU64>,
    start: Instant,
}

impl Watch {
    pub(super) fn install(connection: &mut Connection) -> rusqlite::Result<Self> {
        let running = Arc::new(AtomicBool::new(false));
        let deadline = Arc::new(AtomicU64::new(u64::MAX));
        let start = Instant::now();
        let (ours, end, commits) = (running.clone(), deadline.clone(), running.clone());
        connection.authorizer(Some(move |context: AuthContext<'_>| {
            if ours.load(Ordering::Relaxed) && leaves(&context.action) {
                return Authorization::Deny;
            }
            Authorization::Allow
        }))?;
        // A handler that rolled everything back and goes on would commit statement by statement.
        connection.commit_hook(Some(move || commits.load(Ordering::Relaxed)))?;
        connection.progress_handler(
            STEPS,
            Some(move || micros(start.elapsed()) > end.load(Ordering::Relaxed)),
        )?;
        Ok(Self { running, deadline, start })
    }

    /// Runs `handler` under watch, for at most `limit` where it is SQL.
    pub(super) fn over<T>(&self, limit: Duration, handler: impl FnOnce() -> T) -> T {
        let end = micros(self.start.elapsed() + limit);
        self.deadline.store(end, Ordering::Relaxed);
        self.running.store(true, Ordering::Relaxed);
        let result = handler();
        self.running.store(false, Ordering::Relaxed);
        self.deadline.store(u64::MAX, Ordering::Relaxed);
        result
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Ends or leaves the transaction, or changes the connection under the next one.
fn leaves(action: &AuthAction<'_>) -> bool {
    matches!(
        action,
        AuthAction::Transaction { .. }
            | AuthAction::Savepoint { .. }
            | AuthAction::Attach { .. }
            | AuthAction::Detach { .. }
            | AuthAction::Pragma { .. }
    )
}
