//! Asks the file about every SQL handler before an event does. It must never run a statement.

use std::sync::Arc;

use rusqlite::Connection;

use crate::{EndpointSpec, Error, sql_check};

/// Fails with every statement that the engine refuses.
pub(super) fn handlers(
    connection: &Connection,
    endpoints: &[Arc<EndpointSpec>],
) -> Result<(), Error> {
    let refused = sql_check::places(endpoints).filter_map(|place| {
        let error = connection.prepare(&place.statement.text).err()?;
        Some(place.refused(&error.to_string()))
    });
    sql_check::verdict(&refused.collect::<Vec<_>>())
}
