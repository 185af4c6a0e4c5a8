//! Joining a caller's own transaction: the receipt here, the effect and COMMIT by the caller.
//!
//! The caller's driver must not be trusted with the commit of an aborted transaction, so
//! [`commit`] sends the guard and COMMIT as one message.

use tokio_postgres::Transaction;

use super::{
    Postgres,
    batch::{Batch, RECEIVE},
    connect, guard,
    handler::Run,
    prepared::Sql,
};
use crate::{Error, ErrorKind, Inbox, Intake, Route};

/// Proof that an event was taken in a transaction; [`commit`] wants it back.
#[derive(Debug)]
#[must_use = "give it to `ichido::postgres::commit`"]
pub struct Token {
    guard: String,
}

impl Inbox<Postgres> {
    /// Takes the event of `intake` in the caller's own transaction, as processed by the caller.
    ///
    /// `None`: a duplicate; the effect must not run, roll back. A bare client, which would
    /// commit the receipt on its own, does not type-check.
    ///
    /// # Errors
    /// [`ErrorKind::Data`] for a delivery of several events or an unreadable one, else those of
    /// the database; after an error the transaction can only be rolled back. Cancel safety: a
    /// dropped future leaves the transaction open; dropping the transaction rolls it back.
    #[must_use = "after a duplicate the effect must not run"]
    pub async fn record(
        &self,
        tx: &Transaction<'_>,
        intake: &Intake<dyn Run>,
    ) -> Result<Option<Token>, Error> {
        let [routed] = intake.routes.as_slice() else {
            return Err(Error::new(ErrorKind::Data, "several events: use `receive`"));
        };
        if let Route::Review(why) = routed.route {
            return Err(Error::new(ErrorKind::Data, format!("unreadable ({why}): use `receive`")));
        }
        self.store().core().ensure_registered().await?;
        let mut batch = Batch::new([intake]);
        batch.processed_by_caller();
        let schema = &self.store().core().schema;
        // On a connection of the caller's, of which we know nothing: unnamed.
        let receive = schema.sql(RECEIVE);
        let rows = batch.receive(tx.client(), &Sql::Text(&receive)).await;
        let rows = rows.map_err(|error| connect::database(&error))?;
        let stored = rows.first().filter(|row| row.taken);
        Ok(stored.map(|row| Token { guard: guard::message(schema, &row.xid, None) }))
    }
}

/// Commits a transaction that [`Inbox::record`] joined, with the guard: unlike the driver's own
/// `commit` it fails when the transaction was aborted, ended in between or made perishable.
///
/// # Errors
/// [`ErrorKind::Handler`] when the server refused: nothing is committed. [`ErrorKind::Unknown`]
/// when the connection died: answer 503, a retry is recognised. Cancel safety: after a drop the
/// outcome is unknown in the same way.
pub async fn commit(tx: Transaction<'_>, token: Token) -> Result<(), Error> {
    match guard::judge(tx.batch_execute(&token.guard).await) {
        guard::Ended::Committed => {
            // Ended on the server already; this only disarms the driver's rollback.
            drop(tx.commit().await);
            Ok(())
        }
        guard::Ended::Failed(why) => Err(Error::new(ErrorKind::Handler, why)),
        guard::Ended::Unknown => {
            Err(Error::new(ErrorKind::Unknown, "the connection was lost at COMMIT"))
        }
    }
}
