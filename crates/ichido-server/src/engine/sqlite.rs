//! The embedded file behind the server: opening, the application's schema, reading beside it.
//!
//! The file belongs to the server alone, so that it is migrated when it is opened.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use ichido::{
    Endpoint, SqlHandler, Store,
    sqlite::{self, Sqlite},
};

use super::{
    Engine,
    open::{self, Opened, Problem},
};
use crate::config::{Config, PerEngine};

/// SQLite among the engines.
pub(crate) struct Kind;

impl open::Kind for Kind {
    type Store = Sqlite;
    const NAME: &'static str = "sqlite";

    fn on_sql(endpoint: Endpoint<Sqlite>, pattern: &str, handler: SqlHandler) -> Endpoint<Sqlite> {
        endpoint.on_sql(pattern, handler)
    }

    fn file(files: &PerEngine) -> Option<&PathBuf> {
        files.sqlite.as_ref()
    }
}

/// Opens the file, applies the application's schema, and puts the endpoints on it. Nobody else can
/// bring what a handler still lacks, so that it is refused.
pub(crate) async fn open(config: &Config, path: &Path) -> Opened {
    let store = store(config, path).await.map_err(|problem| vec![problem])?;
    let engine = open::inbox::<Kind>(config, store)?;
    engine.check().await.map_err(|error| vec![Problem(error.to_string())])?;
    Ok(engine)
}

async fn store(config: &Config, path: &Path) -> Result<Sqlite, Problem> {
    let schema = open::app_schema(config, config.app.schema.sqlite.as_ref())?;
    let mut settings = sqlite::Config::new(path);
    settings.receive_wait = config.limits.receive_wait.0;
    let store = Sqlite::open(settings).map_err(|error| Problem(format!("database: {error}")))?;
    if let Some((name, text)) = schema {
        let applied = store.apply(&text).await;
        applied.map_err(|error| Problem(format!("app.schema: {name}: {error}")))?;
    }
    Ok(store)
}

/// Opens the file for reading, beside a server that may hold its lock.
pub(crate) fn reader(config: &Config, path: &Path) -> anyhow::Result<Arc<dyn Engine>> {
    let store = Sqlite::open_reader(path)?;
    open::inbox::<Kind>(config, store).map_err(|problems| anyhow::anyhow!("{}", problems[0]))
}

/// The file is migrated whenever it is opened, so that this only opens it.
pub(crate) async fn migrate(
    config: &Config,
    path: &Path,
    plan: bool,
) -> anyhow::Result<Vec<String>> {
    if plan {
        return Ok(vec!["-- an embedded file is migrated when it is opened".to_owned()]);
    }
    let store = store(config, path).await.map_err(|problem| anyhow::anyhow!("{problem}"))?;
    store.close().await;
    Ok(vec![format!("{} is up to date", path.display())])
}
