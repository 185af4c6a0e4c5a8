//! Asks the database about every SQL handler before an event does.
//!
//! It must never run a handler's statement: each is parsed and forgotten again, both in one
//! message, which every pooler can carry.

use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicBool, Ordering},
};

use tokio_postgres::{Client, types::Type};

use super::{connect, handler};
use crate::{EndpointSpec, Error, Statement, sql_check};

/// The handlers that are SQL, and whether the database knows all that they need.
#[derive(Default)]
pub(super) struct Handlers {
    endpoints: RwLock<Vec<Arc<EndpointSpec>>>,
    good: AtomicBool,
}

impl Handlers {
    pub(super) fn configure(&self, endpoints: &[Arc<EndpointSpec>]) {
        let mut ours = self.endpoints.write().unwrap_or_else(PoisonError::into_inner);
        endpoints.clone_into(&mut ours);
        self.good.store(false, Ordering::Release);
    }

    /// Fails with every statement that the database refuses. Asks until all are good, and then no
    /// more.
    pub(super) async fn check(&self, client: &Client) -> Result<(), Error> {
        if self.good.load(Ordering::Acquire) {
            return Ok(());
        }
        let endpoints = self.endpoints.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut refused = Vec::new();
        for place in sql_check::places(&endpoints) {
            match client.batch_execute(&message(place.statement)).await {
                Ok(()) => {}
                Err(error) if blames_the_statement(&error) => {
                    refused.push(place.refused(&connect::text(&error)));
                }
                Err(error) => return Err(connect::database(&error)),
            }
        }
        sql_check::verdict(&refused)?;
        self.good.store(true, Ordering::Release);
        Ok(())
    }
}

/// Several statements in one message are one transaction, so that the setting ends with it. Who
/// alters a table meanwhile makes us ask again later, and wait for nobody.
fn message(statement: &Statement) -> String {
    let types: Vec<Type> = statement.params.iter().map(|param| handler::type_of(*param)).collect();
    let names: Vec<_> = types.iter().map(Type::name).collect();
    let types = if names.is_empty() { String::new() } else { format!("({})", names.join(", ")) };
    format!(
        "SET LOCAL lock_timeout = '1s'; PREPARE ichido_check {types} AS {}; \
         DEALLOCATE ichido_check",
        statement.text
    )
}

/// SQLSTATE classes of what is written in a statement, or missing for it: unsupported, a bad
/// constant, no such schema, syntax or name, too complex.
fn blames_the_statement(error: &tokio_postgres::Error) -> bool {
    let class = error.code().map(|code| &code.code()[..2]);
    class.is_some_and(|class| ["0A", "22", "3F", "42", "54"].contains(&class))
}
