//! A stand-in until the engines are there. It refuses every delivery.

use std::{path::PathBuf, sync::Arc, time::Duration};

use ichido::{
    Endpoint, EndpointSpec, Error, ErrorKind, Finding, Intake, SqlHandler, Stats, Store, Taken,
};

use super::open::Kind;
use crate::config::PerEngine;

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

pub(crate) struct PendingKind;

impl Kind for PendingKind {
    type Store = Pending;
    const NAME: &'static str = "sqlite";
    fn on_sql(endpoint: Endpoint<Pending>, pattern: &str, _: SqlHandler) -> Endpoint<Pending> {
        endpoint.leave(pattern, "pending")
    }
    fn file(files: &PerEngine) -> Option<&PathBuf> {
        files.sqlite.as_ref()
    }
}
