//! What runs for an event on SQLite: a closure or a file of SQL. It runs on the writer thread
//! and is the only writer meanwhile, so it must be short and must never wait for anything.

use std::{ops::Deref, sync::Arc};

use rusqlite::{
    Connection,
    types::{ToSqlOutput, Value},
};

use super::{Sqlite, time};
use crate::{BoxError, Endpoint, Event, Param, SqlHandler, Statement, Target};

/// The transaction of an event. Everything a handler writes through it commits with the receipt,
/// or not at all; ending it from within is refused.
pub struct Tx<'t>(pub(super) &'t Connection);

impl Tx<'_> {
    /// Puts a note for a human on this event, which stays processed.
    ///
    /// # Errors
    /// Those of the database.
    pub fn flag(&self, event: &Event, reason: &str) -> rusqlite::Result<()> {
        let mut statement = self.prepare_cached(include_str!("../../sql/sqlite/flag_put.sql"))?;
        statement.execute((&*event.endpoint, &event.id, reason)).map(drop)
    }

    /// Writes a message that leaves after this transaction committed, at least once.
    ///
    /// # Errors
    /// Those of the database.
    pub fn outbox(
        &self,
        aggregate_type: &str,
        aggregate_id: &str,
        event_type: &str,
        payload: &serde_json::Value,
    ) -> rusqlite::Result<()> {
        let mut statement = self.prepare_cached(include_str!("../../sql/sqlite/outbox_put.sql"))?;
        let row = (aggregate_type, aggregate_id, event_type, payload.to_string());
        statement.execute(row).map(drop)
    }
}

impl Deref for Tx<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0
    }
}

impl std::fmt::Debug for Tx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tx")
    }
}

/// A handler: a closure or a file of SQL, whose type is forgotten.
pub trait Run: Send + Sync {
    /// Applies the event.
    ///
    /// # Errors
    /// Whatever keeps the event from taking effect.
    fn run(&self, tx: &mut Tx<'_>, event: &Event) -> Result<(), BoxError>;
}

impl<F, E> Run for F
where
    F: Fn(&mut Tx<'_>, &Event) -> Result<(), E> + Send + Sync,
    E: Into<BoxError>,
{
    fn run(&self, tx: &mut Tx<'_>, event: &Event) -> Result<(), BoxError> {
        self(tx, event).map_err(Into::into)
    }
}

impl Run for SqlHandler {
    fn run(&self, tx: &mut Tx<'_>, event: &Event) -> Result<(), BoxError> {
        for statement in &self.statements {
            run(tx, statement, event)?;
        }
        Ok(())
    }
}

impl Endpoint<Sqlite> {
    /// Adds the handler for `pattern`: a type, a prefix that ends in `.*`, or `*` for the rest.
    pub fn on<E: Into<BoxError> + 'static>(
        self,
        pattern: &str,
        handler: impl Fn(&mut Tx<'_>, &Event) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.target(pattern, Target::Handler(Arc::new(handler)))
    }

    /// Adds a file of SQL as the handler for `pattern`.
    pub fn on_sql(self, pattern: &str, handler: SqlHandler) -> Self {
        let handler = Arc::new(handler);
        self.sql_target(pattern, &handler, Target::Handler(handler.clone()))
    }
}

fn run(tx: &Tx<'_>, statement: &Statement, event: &Event) -> Result<(), BoxError> {
    let mut prepared = tx.prepare_cached(&statement.text)?;
    for (index, param) in statement.params.iter().enumerate() {
        prepared.raw_bind_parameter(index + 1, value(*param, event)?)?;
    }
    let mut rows = prepared.raw_query();
    while rows.next()?.is_some() {}
    Ok(())
}

fn value(param: Param, event: &Event) -> Result<ToSqlOutput<'_>, BoxError> {
    Ok(match param {
        // Not JSON is the statement's to refuse; not text cannot even be asked.
        Param::Payload => std::str::from_utf8(&event.body)?.into(),
        Param::Body => (&event.body[..]).into(),
        Param::EventId => event.id.as_str().into(),
        Param::EventType => event.event_type.as_str().into(),
        Param::Endpoint => (*event.endpoint).into(),
        Param::Provider => (*event.provider).into(),
        Param::OccurredAt => {
            let text = event.occurred_at.map(time::text);
            ToSqlOutput::Owned(text.map_or(Value::Null, Value::Text))
        }
    })
}
