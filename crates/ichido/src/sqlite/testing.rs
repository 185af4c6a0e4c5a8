//! For users' tests: run a handler on an event against a real file, look, roll back. Nothing of
//! it stays.

use rusqlite::Connection;

use super::{Sqlite, Tx, handler::Run, watch::Watch};
use crate::{BoxError, Event, Store};

/// Runs `handler` on `event` in a transaction of `connection`, then `look`, then rolls back. The
/// handler is held as it is when events come in: it cannot commit, and its SQL is interrupted
/// after the longest `handler_timeout` there is. Hooks of your own on `connection` are lost.
///
/// # Errors
/// The handler's, if any, before `look` runs; those of `look`; those of the database.
pub fn try_handler<T>(
    connection: &mut Connection,
    handler: &dyn Run,
    event: &Event,
    look: impl FnOnce(&Connection) -> Result<T, BoxError>,
) -> Result<T, BoxError> {
    let watch = Watch::install(connection)?;
    let tried = attempt(&watch, connection, handler, event, look);
    Watch::remove(connection)?;
    tried
}

fn attempt<T>(
    watch: &Watch,
    connection: &mut Connection,
    handler: &dyn Run,
    event: &Event,
    look: impl FnOnce(&Connection) -> Result<T, BoxError>,
) -> Result<T, BoxError> {
    let transaction = connection.transaction()?;
    watch.over(Sqlite::HANDLER_TIMEOUT_MAX, || handler.run(&mut Tx(&transaction), event))?;
    if transaction.is_autocommit() {
        return Err("the handler rolled the whole transaction back".into());
    }
    let seen = look(&transaction);
    transaction.rollback()?;
    seen
}
