//! A stand-in until the engines are there. It refuses every delivery.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ichido::{
    Endpoint, EndpointSpec, Error, ErrorKind, Finding, Intake, SqlHandler, Stats, Store, Taken,
};

use super::{
    Engine,
    open::{self, Opened},
};
use crate::config::{Config, PerEngine};

pub(crate) struct Pending;

fn away<T>() -> Result<T, Error> {
    Err(Error::new(ErrorKind::Unavailable, "no engine yet"))
}

impl Store for Pending {
    type Handler = ();
    const HANDLER_TIMEOUT: Duration = Duration::from_millis(250);
    const HANDLER_TIMEOUT_MAX: Duration = Duration::from_secs(2);
    fn configure(&self, _: Vec<Arc<EndpointSpec>>) {}
    async fn receive(&self, _: Intake<()>) -> Result<Vec<Taken>, Error> {
        away()
    }
    async fn check(&self) -> Result<(), Error> {
        away()
    }
    async fn stats(&self) -> Result<Stats, Error> {
        away()
    }
    async fn audit(&self) -> Result<Vec<Finding>, Error> {
        away()
    }
    async fn close(&self) {}
}

/// SQLite among the engines.
pub(crate) struct Kind;

impl open::Kind for Kind {
    type Store = Pending;
    const NAME: &'static str = "sqlite";
    fn on_sql(endpoint: Endpoint<Pending>, pattern: &str, _: SqlHandler) -> Endpoint<Pending> {
        endpoint.leave(pattern, "pending")
    }
    fn file(files: &PerEngine) -> Option<&PathBuf> {
        files.sqlite.as_ref()
    }
}

/// Opens the file, applies the application's schema, and puts the endpoints on it.
pub(crate) async fn open(config: &Config, _path: &Path) -> Opened {
    open::inbox::<Kind>(config, Pending)
}

/// Opens the file for reading, beside a server that may hold its lock.
pub(crate) async fn reader(config: &Config, path: &Path) -> anyhow::Result<Arc<dyn Engine>> {
    open(config, path).await.map_err(|problems| anyhow::anyhow!("{}", problems[0]))
}

/// The embedded file is migrated when it is opened.
pub(crate) async fn migrate(
    _config: &Config,
    _path: &Path,
    _plan: bool,
    _app: bool,
) -> anyhow::Result<Vec<String>> {
    anyhow::bail!("the SQLite engine is not there yet")
}
