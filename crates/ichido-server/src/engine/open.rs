//! From the configuration to an open inbox, on the engine that the database's URL names.
//!
//! It must never stop at the first problem: whoever mends a configuration wants to see them all.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use ichido::{Endpoint, EndpointSpec, Inbox, SqlHandler, Store};
use ichido_verify::Settings;

use super::{Engine, Named, postgres, sqlite};
use crate::{
    config::{
        Config, PerEngine,
        endpoint::{EndpointConfig, HandlerConfig},
        secret::Database,
    },
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
    type Store: Store;
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

/// The settings of every endpoint with its defaults filled in, checked with all secrets and SQL
/// files read. Opens no database.
pub(crate) fn check<K: Kind>(config: &Config) -> Result<Vec<Arc<EndpointSpec>>, Vec<Problem>> {
    let (mut specs, mut problems) = (Vec::new(), Vec::new());
    for (name, settings) in &config.endpoint {
        match endpoint::<K>(name, settings, &config.base) {
            Ok(endpoint) => match endpoint.check() {
                Ok(spec) => specs.push(spec),
                Err(error) => problems.push(Problem(error.to_string())),
            },
            Err(more) => problems.extend(more),
        }
    }
    if problems.is_empty() { Ok(specs) } else { Err(problems) }
}

/// An inbox of `store` with the endpoints of the configuration.
pub(crate) fn inbox<K: Kind>(config: &Config, store: K::Store) -> Opened {
    check::<K>(config)?;
    let endpoints = config.endpoint.iter();
    let endpoints: Result<Vec<_>, _> =
        endpoints.map(|(name, settings)| endpoint::<K>(name, settings, &config.base)).collect();
    match Inbox::new(store, endpoints?) {
        Ok(inbox) => Ok(Arc::new(Named(K::NAME, inbox))),
        Err(error) => Err(vec![Problem(error.to_string())]),
    }
}

fn endpoint<K: Kind>(
    name: &str,
    config: &EndpointConfig,
    base: &Path,
) -> Result<Endpoint<K::Store>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut endpoint = Endpoint::new(name, &config.provider)
        .mode(config.mode.into())
        .on_failure(config.on_failure.into())
        .repeated_body(config.repeated_body.into())
        .settings(settings(config));
    for secret in &config.secrets.0 {
        match secret.read(base) {
            Ok(secret) => endpoint = endpoint.secret(secret),
            Err(problem) => problems.push(Problem(format!("endpoint `{name}`: {problem}"))),
        }
    }
    if let Some(span) = config.handler_timeout {
        endpoint = endpoint.handler_timeout(span.0);
    }
    if let Some(span) = config.lease {
        endpoint = endpoint.lease(span.0);
    }
    if let Some(attempts) = config.max_attempts {
        endpoint = endpoint.max_attempts(attempts);
    }
    if let Some(span) = config.keep_identity {
        endpoint = endpoint.keep_identity(span.0);
    }
    for (pattern, handler) in &config.handlers {
        if let HandlerConfig::Queue(queue) = handler {
            endpoint = endpoint.leave(pattern, queue);
            continue;
        }
        match sql_handler::<K>(pattern, handler, base) {
            Ok(handler) => endpoint = K::on_sql(endpoint, pattern, handler),
            Err(problem) => problems.push(Problem(format!("endpoint `{name}`: {problem}"))),
        }
    }
    if problems.is_empty() { Ok(endpoint) } else { Err(problems) }
}

fn settings(config: &EndpointConfig) -> Settings {
    Settings {
        tolerance: config.tolerance.map(|span| span.0),
        public_url: config.public_url.clone(),
        generic: config.generic.clone(),
    }
}

fn sql_handler<K: Kind>(
    pattern: &str,
    handler: &HandlerConfig,
    base: &Path,
) -> Result<SqlHandler, String> {
    let file = match handler {
        HandlerConfig::File(file) => Some(file),
        HandlerConfig::PerEngine(files) => K::file(files),
        HandlerConfig::Queue(_) => None,
    };
    let engine = K::NAME;
    let Some(file) = file else {
        return Err(format!(
            "handler `{pattern}` has no file for this engine: add {engine} = \"FILE\""
        ));
    };
    let path = base.join(file);
    let text = fs::read_to_string(&path)
        .map_err(|error| format!("handler `{pattern}`: {}: {error}", path.display()))?;
    SqlHandler::parse(file.display().to_string(), &text)
        .map_err(|error| format!("handler `{pattern}`: {error}"))
}

/// Opens the engine that the database's URL names. PostgreSQL may be away.
pub(crate) async fn open(config: &Config) -> Opened {
    let mut problems = own_problems(config);
    let opened = match config.database.url.resolve(&config.base) {
        Err(problem) => Err(vec![Problem(problem)]),
        Ok(Database::Sqlite(path)) => sqlite::open(config, &path).await,
        Ok(Database::Postgres(url)) => postgres::open(config, &url),
    };
    match opened {
        Ok(inbox) if problems.is_empty() => Ok(inbox),
        Ok(_) => Err(problems),
        Err(more) => {
            problems.extend(more);
            Err(problems)
        }
    }
}

/// Everything that cannot work, without opening a database.
pub(crate) fn problems(config: &Config) -> Vec<Problem> {
    let mut problems = own_problems(config);
    problems.extend(Tls::load(config).err().map(Problem));
    match config.database.url.resolve(&config.base) {
        Err(problem) => problems.push(Problem(problem)),
        Ok(Database::Sqlite(_)) => {
            problems.extend(check::<sqlite::Kind>(config).err().unwrap_or_default());
        }
        Ok(Database::Postgres(url)) => {
            problems.extend(postgres::settings(config, &url).err());
            problems.extend(check::<postgres::Kind>(config).err().unwrap_or_default());
        }
    }
    problems
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
