//! What keeps a handler inside its transaction and its time.
//!
//! While a handler or a user's script runs, statements that would end or leave the transaction
//! are refused when they are prepared, and nothing can be committed. A handler's SQL is
//! interrupted when the time is up; a closure between two statements cannot be.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::{
    Connection,
    hooks::{AuthAction, AuthContext, Authorization},
};

/// Virtual-machine steps between two looks at the clock: some tens of microseconds.
const STEPS: i32 = 1_000;

/// Nobody but us is on the connection.
const NOBODY: u8 = 0;
/// A script of the user's own.
const SCRIPT: u8 = 1;
const HANDLER: u8 = 2;

/// The state that the connection's hooks look at.
pub(super) struct Watch {
    running: Arc<AtomicU8>,
    /// Microseconds after `start`; `u64::MAX`: none.
    deadline: Arc<AtomicU64>,
    start: Instant,
}

impl Watch {
    pub(super) fn install(connection: &mut Connection) -> rusqlite::Result<Self> {
        let running = Arc::new(AtomicU8::new(NOBODY));
        let deadline = Arc::new(AtomicU64::new(u64::MAX));
        let start = Instant::now();
        let (ours, end, commits) = (running.clone(), deadline.clone(), running.clone());
        connection.authorizer(Some(move |context: AuthContext<'_>| {
            if leaves(&context.action, ours.load(Ordering::Relaxed)) {
                return Authorization::Deny;
            }
            Authorization::Allow
        }))?;
        // A handler that rolled everything back and goes on would commit statement by statement.
        connection.commit_hook(Some(move || commits.load(Ordering::Relaxed) != NOBODY))?;
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
        self.running.store(HANDLER, Ordering::Relaxed);
        let result = handler();
        self.running.store(NOBODY, Ordering::Relaxed);
        self.deadline.store(u64::MAX, Ordering::Relaxed);
        result
    }

    /// Runs a script under watch, without a limit.
    pub(super) fn script<T>(&self, script: impl FnOnce() -> T) -> T {
        self.running.store(SCRIPT, Ordering::Relaxed);
        let result = script();
        self.running.store(NOBODY, Ordering::Relaxed);
        result
    }

    /// Takes the hooks off again.
    pub(super) fn remove(connection: &mut Connection) -> rusqlite::Result<()> {
        connection.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
        connection.commit_hook(None::<fn() -> bool>)?;
        connection.progress_handler(0, None::<fn() -> bool>)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Ends or leaves the transaction, or changes the connection under the next one. A script may
/// set what holds for the file.
fn leaves(action: &AuthAction<'_>, running: u8) -> bool {
    match action {
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => running != NOBODY,
        AuthAction::Attach { .. } | AuthAction::Detach { .. } | AuthAction::Pragma { .. } => {
            running == HANDLER
        }
        _ => false,
    }
}
