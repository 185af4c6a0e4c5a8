//! From the configuration to an open inbox, on the engine that the database's URL names.
//!
//! It must never stop at the first problem: whoever mends a configuration wants to see them all.

use std::{collections::BTreeMap, fmt, fs, path::PathBuf, sync::Arc};

use ichido::{Desk, Endpoint, EndpointSpec, Inbox, SqlHandler};

use super::{Engine, Named, endpoints, postgres, sqlite};
use crate::{
    config::{Config, PerEngine, secret::Database},
    tls::Tls,
};

/// Something in the configuration that cannot work, and its fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem(pub(crate) String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An open inbox, or the reasons against it.
pub(crate) type Opened = Result<Arc<dyn Engine>, Vec<Problem>>;

/// What differs between engines while endpoints are put together.
pub(crate) trait Kind {
    /// The engine.
    type Store: Desk;
    /// Its name in the configuration and in log lines.
    const NAME: &'static str;
    /// Gives the endpoint an SQL handler.
    fn on_sql(
        endpoint: Endpoint<Self::Store>,
        pattern: &str,
        handler: SqlHandler,
    ) -> Endpoint<Self::Store>;
    /// The file of this engine.
    fn file(files: &PerEngine) -> Option<&PathBuf>;
}

/// An inbox of `store` with the endpoints of the configuration.
pub(crate) fn inbox<K: Kind>(config: &Config, store: K::Store) -> Opened {
    match Inbox::new(store, endpoints::all::<K>(config)) {
        Ok(inbox) => Ok(Arc::new(Named(K::NAME, inbox))),
        Err(error) => Err(vec![Problem(error.to_string())]),
    }
}

/// Opens the engine that the database's URL names. PostgreSQL may be away. Nothing is opened or
/// made for a configuration that cannot work.
pub(crate) async fn open(config: &Config) -> Opened {
    let problems = problems(config);
    if !problems.is_empty() {
        return Err(problems);
    }
    match config.database.url.resolve(&config.base) {
        Err(problem) => Err(vec![Problem(problem)]),
        Ok(Database::Sqlite(path)) => sqlite::open(config, &path).await,
        Ok(Database::Postgres(url)) => postgres::open(config, &url),
    }
}

/// Everything that cannot work, without opening a database.
pub(crate) fn problems(config: &Config) -> Vec<Problem> {
    let mut problems = own_problems(config);
    problems.extend(Tls::load(config).err().map(Problem));
    match config.database.url.resolve(&config.base) {
        Err(problem) => problems.push(Problem(problem)),
        Ok(Database::Sqlite(_)) => {
            problems.extend(endpoints::check::<sqlite::Kind>(config));
        }
        Ok(Database::Postgres(url)) => {
            problems.extend(postgres::settings(config, &url).err());
            problems.extend(endpoints::check::<postgres::Kind>(config));
        }
    }
    problems
}

/// The settings of every endpoint with their defaults filled in, as far as these are known:
/// they depend on the engine and on the provider.
pub(crate) fn specs(config: &Config) -> Vec<EndpointSpec> {
    match config.database.url.resolve(&config.base) {
        Err(_) => Vec::new(),
        Ok(Database::Sqlite(_)) => endpoints::specs::<sqlite::Kind>(config),
        Ok(Database::Postgres(_)) => endpoints::specs::<postgres::Kind>(config),
    }
}

/// The database without endpoints, for commands that only read it.
pub(crate) async fn reader(config: &Config) -> anyhow::Result<Arc<dyn Engine>> {
    let config = Config { endpoint: BTreeMap::new(), ..config.clone() };
    match config.database.url.resolve(&config.base).map_err(anyhow::Error::msg)? {
        Database::Sqlite(path) => sqlite::reader(&config, &path),
        Database::Postgres(_) => {
            open(&config).await.map_err(|problems| anyhow::anyhow!("{}", problems[0]))
        }
    }
}

/// Brings the schema to this version, or says what that would take: one text a step. With `app`,
/// the user's own schema as well.
pub(crate) async fn migrate(config: &Config, plan: bool, app: bool) -> anyhow::Result<Vec<String>> {
    match config.database.url.resolve(&config.base).map_err(anyhow::Error::msg)? {
        Database::Sqlite(path) => sqlite::migrate(config, &path, plan).await,
        Database::Postgres(url) => postgres::migrate(config, &url, plan, app).await,
    }
}

/// The user's own schema for an engine: where it is, and its text.
pub(super) fn app_schema(config: &Config, file: Option<&PathBuf>) -> Result<AppSchema, Problem> {
    let Some(file) = file else { return Ok(None) };
    let path = config.base.join(file);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some((file.display().to_string(), text))),
        Err(error) => Err(Problem(format!("app.schema: {}: {error}", path.display()))),
    }
}

/// Name and text of a schema file, if one is configured.
pub(super) type AppSchema = Option<(String, String)>;

fn own_problems(config: &Config) -> Vec<Problem> {
    let mut problems: Vec<_> = config.problems().into_iter().map(Problem).collect();
    for file in [&config.app.schema.sqlite, &config.app.schema.postgres] {
        problems.extend(app_schema(config, file.as_ref()).err());
    }
    problems
}
