//! For users' tests: run a handler on an event against a real database, look, roll back.
//! Nothing of it stays.

use tokio_postgres::Client;

use super::{Tx, handler::IntoHandler};
use crate::{BoxError, Event};

impl super::Postgres {
    /// Runs `handler` on `event` in a transaction, then `look` in the same transaction, then
    /// rolls back. The handler's error, if any, is returned before `look` runs.
    ///
    /// # Errors
    /// The handler's, or those of the database. Cancel safety: a drop closes the connection,
    /// which rolls back.
    pub async fn try_handler<M: 'static, T>(
        &self,
        handler: impl for<'a> IntoHandler<'a, M>,
        event: &Event,
        look: impl AsyncFnOnce(&Client) -> Result<T, BoxError>,
    ) -> Result<T, BoxError> {
        let connection = self.core.get().await?;
        let mut tx = Tx::new(connection, self.core.schema.clone());
        tx.batch_execute("BEGIN").await?;
        handler.start(&mut tx, event).await?;
        let seen = look(&tx).await;
        tx.roll_back().await;
        seen
    }
}
