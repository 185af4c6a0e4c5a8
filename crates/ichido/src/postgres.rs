//! The PostgreSQL engine. Only this module and those below it touch the driver.
//!
//! In the order of the data: [`Config`] and `connect` (where to), `batch` (what is sent), `group`
//! (async receive), `shared` and `sync` (receive with a handler: together, alone), `work` (what was
//! stored first), `attempt` (one run of a handler), `guard` (how a transaction ends).

mod attempt;
mod batch;
mod check;
mod config;
mod connect;
mod core;
mod desk;
mod duplicates;
mod group;
mod guard;
mod handler;
pub mod migrate;
mod prepared;
mod queue;
mod record;
mod report;
mod schema;
mod shared;
mod sync;
pub mod testing;
mod tx;
mod work;

use std::{sync::Arc, time::Duration};

pub use config::{
    COMMITTERS, CONNECT_TIMEOUT, Config, RECEIVE_CONNECTIONS, RECEIVE_WAIT, WAITING_MAX,
    WORK_CONNECTIONS,
};
pub use connect::connect;
pub use handler::{Function, Handle, IntoHandler, Object, Run, Running};
pub use record::{Token, commit};
pub use schema::Schema;
use tokio::sync::watch;
pub use tx::Tx;

use self::{core::Core, queue::Queue};
use crate::{
    Claim, Claimed, EndpointSpec, Error, Failed, Fault, Finding, Intake, Outcome, Stats, Store,
    Taken, Worked,
};

/// An inbox in PostgreSQL 14 or newer. Stateless: any number of processes may share a database.
pub struct Postgres {
    core: Arc<Core>,
    group: Queue<group::Answer>,
    shared: Queue<shared::Answer>,
    handlers: check::Handlers,
}

impl Postgres {
    /// Opens the engine. Does no IO: the database may be away, and is connected to when needed.
    ///
    /// # Errors
    /// When the TLS settings cannot be read.
    pub fn connect_lazy(config: &Config) -> Result<Self, Error> {
        let core = Arc::new(Core::new(config)?);
        Ok(Self {
            group: group::queue(core.clone(), config),
            shared: shared::queue(core.clone(), config),
            handlers: check::Handlers::default(),
            core,
        })
    }

    async fn receive_sync(&self, intake: Intake<dyn Run>) -> Result<Taken, Error> {
        let alone = if shared::may(&self.core, &intake) {
            match self.shared.put(intake).await? {
                shared::Answer::Done(taken) => return taken,
                shared::Answer::Alone(intake) => intake,
            }
        } else {
            intake
        };
        sync::receive(&self.core, &alone).await
    }

    pub(in crate::postgres) fn core(&self) -> &Core {
        &self.core
    }
}

impl Store for Postgres {
    type Handler = dyn Run;

    const HANDLER_TIMEOUT: Duration = Duration::from_secs(5);
    const HANDLER_TIMEOUT_MAX: Duration = Duration::from_mins(15);

    fn configure(&self, endpoints: Vec<Arc<EndpointSpec>>) {
        self.handlers.configure(&endpoints);
        self.core.configure(endpoints);
    }

    async fn receive(&self, intake: Intake<dyn Run>) -> Result<Vec<Taken>, Error> {
        let endpoint = intake.endpoint.clone();
        let taken = match intake.sync_handler() {
            Some(_) => vec![self.receive_sync(intake).await?],
            None => self.group.put(intake).await??,
        };
        duplicates::count(&self.core, &endpoint, &taken);
        if taken.iter().any(|taken| taken.outcome == Outcome::Accepted) {
            self.core.arrivals.send_replace(());
        }
        Ok(taken)
    }

    async fn claim(&self, claim: &Claim<'_>) -> Result<Vec<Claimed>, Error> {
        work::claim(&self.core, claim).await
    }

    async fn process(
        &self,
        claimed: &Claimed,
        handler: &Arc<dyn Run>,
        limit: Duration,
    ) -> Result<Worked, Error> {
        work::process(&self.core, claimed, handler, limit).await
    }

    async fn fail(&self, claimed: &Claimed, fault: &Fault) -> Result<Failed, Error> {
        work::fail(&self.core, claimed, fault).await
    }

    async fn release(&self, claimed: &Claimed, delay: Duration) -> Result<bool, Error> {
        work::release(&self.core, claimed, delay).await
    }

    async fn sweep(&self) -> Result<u32, Error> {
        work::sweep(&self.core).await
    }

    fn arrivals(&self) -> watch::Receiver<()> {
        self.core.arrivals.subscribe()
    }

    async fn check(&self) -> Result<(), Error> {
        let connection = self.core.connection().await?;
        self.core.query(&connection, "SELECT 1", &[]).await?;
        self.handlers.check(&connection).await
    }

    async fn stats(&self) -> Result<Stats, Error> {
        report::stats(&self.core).await
    }

    async fn audit(&self) -> Result<Vec<Finding>, Error> {
        report::audit(&self.core).await
    }

    async fn close(&self) {
        self.group.close().await;
        self.shared.close().await;
        duplicates::flush(&self.core).await;
        self.core.close();
    }
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").field("schema", &self.core.schema).finish_non_exhaustive()
    }
}
