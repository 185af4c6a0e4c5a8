//! For users' tests: run a handler on an event against a real file, look, roll back. Nothing of
//! it stays.

use rusqlite::Connection;

use super::{Tx, handler::Run};
use crate::{BoxError, Event};

/// Runs `handler` on `event` in a transaction of `connection`, then `look`, then rolls back. The
/// handler's error, if any, is returned before `look` runs.
///
/// # Errors
/// The handler's, or those of the database.
pub fn try_handler<T>(
    connection: &mut Connection,
    handler: &dyn Run,
    event: &Event,
    look: impl FnOnce(&Connection) -> Result<T, BoxError>,
) -> Result<T, BoxError> {
    let transaction = connection.transaction()?;
    handler.run(&mut Tx(&transaction), event)?;
    let seen = look(&transaction);
    transaction.rollback()?;
    seen
}
