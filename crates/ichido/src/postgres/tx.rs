//! An open transaction that owns its connection, so that handlers see no lifetime.
//!
//! It must never return a connection with an unfinished transaction to the pool: that one is
//! closed. It derefs to the client but not mutably, which keeps `transaction()` away.

use std::ops::Deref;

use deadpool_postgres::Object;
use tokio_postgres::{
    Client,
    types::{ToSql, Type},
};

use super::Schema;
use crate::{BoxError, Event};

/// DISCARD ALL but for what is prepared: our own statements stay, a handler's by PREPARE, too.
const CLEAN: &str = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; \
    SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES";

/// The transaction of an event. Everything a handler writes through it commits with the receipt,
/// or not at all.
pub struct Tx {
    connection: Option<Object>,
    schema: Schema,
    /// A handler in Rust had it: whatever it left in the session must not meet the next one.
    touched: bool,
}

impl Tx {
    pub(super) fn new(connection: Object, schema: Schema) -> Self {
        Self { connection: Some(connection), schema, touched: false }
    }

    /// Puts a note for a human on this event, which stays processed.
    ///
    /// # Errors
    /// Those of the database. Cancel safety: dropping the future leaves the transaction open and
    /// the statement running; return an error from the handler instead.
    pub async fn flag(&self, event: &Event, reason: &str) -> Result<(), tokio_postgres::Error> {
        let sql = self.schema.sql("SELECT ichido.flag($1, $2, $3)");
        let params: [(&(dyn ToSql + Sync), Type); 3] =
            [(&&*event.endpoint, Type::TEXT), (&event.id, Type::TEXT), (&reason, Type::TEXT)];
        self.query_typed(&sql, &params).await.map(drop)
    }

    /// Writes a message that leaves after this transaction committed, at least once.
    ///
    /// # Errors
    /// Those of the database, or of a payload that is not JSON. Cancel safety: as [`Tx::flag`].
    pub async fn outbox(
        &self,
        aggregate_type: &str,
        aggregate_id: &str,
        event_type: &str,
        payload: &serde_json::Value,
    ) -> Result<(), BoxError> {
        let sql = self.schema.sql("SELECT ichido.outbox_put($1, $2, $3, $4)");
        let params: [(&(dyn ToSql + Sync), Type); 4] = [
            (&aggregate_type, Type::TEXT),
            (&aggregate_id, Type::TEXT),
            (&event_type, Type::TEXT),
            (payload, Type::JSONB),
        ];
        self.query_typed(&sql, &params).await?;
        Ok(())
    }

    /// A handler in Rust is about to have it.
    pub(super) fn touch(&mut self) {
        self.touched = true;
    }

    /// The transaction ended on the server: the connection may serve others, cleaned of what a
    /// handler may have set, locked or listened to. Nobody waits for that.
    pub(super) fn finish(mut self) {
        let Some(connection) = self.connection.take() else { return };
        if self.touched {
            tokio::spawn(async move {
                if connection.batch_execute(CLEAN).await.is_err() {
                    drop(Object::take(connection));
                }
            });
        }
    }

    /// Rolls back; the connection is closed where that does not work.
    pub(super) async fn roll_back(self) {
        if !self.is_closed() && self.batch_execute("ROLLBACK").await.is_ok() {
            self.finish();
        }
    }

    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    fn object(&self) -> &Object {
        self.connection.as_ref().expect("a transaction has its connection until it is finished")
    }
}

impl Deref for Tx {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.object()
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(Object::take(connection));
        }
    }
}

impl std::fmt::Debug for Tx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tx").field("schema", &self.schema).finish_non_exhaustive()
    }
}
