//! PostgreSQL behind the server: settings, opening, migration.
//!
//! It must never migrate a database that nobody asked it to migrate.

use std::path::PathBuf;

use anyhow::Context;
use ichido::{
    Endpoint, SqlHandler,
    postgres::{self, Postgres, Schema},
};

use super::open::{self, Opened, Problem};
use crate::config::{Config, PerEngine};

/// PostgreSQL among the engines.
pub(crate) struct Kind;

impl open::Kind for Kind {
    type Store = Postgres;
    const NAME: &'static str = "postgres";

    fn on_sql(
        endpoint: Endpoint<Postgres>,
        pattern: &str,
        handler: SqlHandler,
    ) -> Endpoint<Postgres> {
        endpoint.on_sql(pattern, handler)
    }

    fn file(files: &PerEngine) -> Option<&PathBuf> {
        files.postgres.as_ref()
    }
}

/// The engine's settings from ours.
pub(crate) fn settings(config: &Config, url: &str) -> Result<postgres::Config, Problem> {
    let problem = |error: ichido::Error| Problem(format!("database: {error}"));
    let schema = Schema::new(&config.database.schema).map_err(problem)?;
    let mut settings = postgres::Config::new(url).map_err(problem)?.schema(schema);
    settings.receive_connections = config.database.receive_connections;
    // One for each handler, and two that claim and record failures meanwhile.
    settings.work_connections = config.work.concurrency + 2;
    settings.receive_wait = config.limits.receive_wait.0;
    Ok(settings)
}

/// Opens the engine without IO: the database may be away.
pub(crate) fn open(config: &Config, url: &str) -> Opened {
    let settings = settings(config, url).map_err(|problem| vec![problem])?;
    let store = Postgres::connect_lazy(&settings)
        .map_err(|error| vec![Problem(format!("database: {error}"))])?;
    open::inbox::<Kind>(config, store)
}

/// Applies what is missing, or with `plan` returns its text; with `app` also the application's
/// schema, in a transaction of its own.
pub(crate) async fn migrate(
    config: &Config,
    url: &str,
    plan: bool,
    app: bool,
) -> anyhow::Result<Vec<String>> {
    let settings = settings(config, url).map_err(|problem| anyhow::anyhow!("{problem}"))?;
    let file = config.app.schema.postgres.as_ref().filter(|_| app);
    let own = open::app_schema(config, file).map_err(|problem| anyhow::anyhow!("{problem}"))?;
    if app && own.is_none() {
        anyhow::bail!(
            "--app: name the file in the configuration: [app.schema] postgres = \"FILE\""
        );
    }
    let mut client = postgres::connect(&settings).await?;
    let steps = if plan {
        postgres::migrate::plan(&client, &settings.schema).await?
    } else {
        postgres::migrate::migrate(&mut client, &settings.schema).await?
    };
    let mut done: Vec<String> = if plan {
        steps.iter().map(ToString::to_string).collect()
    } else {
        steps.into_iter().map(|step| step.name).collect()
    };
    if let Some((name, text)) = own {
        if plan {
            done.push(format!("-- application schema {name}\n{text}"));
        } else {
            // Several statements in one message are one transaction.
            let applied = client.batch_execute(&text).await;
            applied.with_context(|| format!("app.schema: {name} was not applied"))?;
            done.push(format!("application schema {name}"));
        }
    }
    Ok(done)
}
