//! Brings the schema to the version of this build: numbered migrations, forward only, and
//! functions that are applied again when their text changed. Must never change a schema that is
//! newer than this build, nor leave half a step behind: all of it is one transaction.

use std::{
    collections::HashMap,
    fmt::{self, Write as _},
};

use sha2::{Digest, Sha256};
use tokio_postgres::{Client, GenericClient, SimpleQueryMessage, Transaction};

use super::schema::Schema;
use crate::{Error, ErrorKind};

/// Numbered, in order. A number that was released never changes its text.
const MIGRATIONS: &[(i32, &str, &str)] = &[
    (1, "inbox", include_str!("../../sql/postgres/migrations/0001_inbox.sql")),
    (2, "order", include_str!("../../sql/postgres/migrations/0002_order.sql")),
];

const BOOTSTRAP: &str = include_str!("../../sql/postgres/bootstrap.sql");

/// The schema version of this build.
pub const VERSION: i32 = MIGRATIONS[MIGRATIONS.len() - 1].0;

/// Two processes that migrate at once take turns. One fixed number of ours ("ichido").
const LOCK: i64 = 0x6963_6869_646f;

macro_rules! functions {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../sql/postgres/functions/", $name, ".sql")))),+]
    };
}

/// In an order in which each finds what it needs.
const FUNCTIONS: &[(&str, &str)] = functions![
    "uuid7",
    "version",
    "sound",
    "order_slot",
    "order_lock",
    "order_blocked",
    "order_put",
    "order_next",
    "order_sweep",
    "sound_next",
    "endpoint_put",
    "mark_digests",
    "receive_batch",
    "receive_one",
    "event_body",
    "keep",
    "claim",
    "start",
    "fail",
    "release",
    "renew",
    "flag",
    "flag_close",
    "requeue",
    "discard",
    "replay",
    "conflict_put",
    "route_matches",
    "outbox_put",
    "outbox_route",
    "outbox_claim",
    "outbox_sent",
    "outbox_fail",
    "outbox_requeue",
    "json_or_null",
    "webhook_inbox",
    "stats",
    "stats_types",
    "audit",
];

/// One thing that a migration does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it is, for a person: `migration 1: inbox`, `function receive_batch`.
    pub name: String,
    /// The statements, the record of the step included.
    pub sql: String,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "-- {}\n{}", self.name, self.sql)
    }
}

/// What is in a database.
#[derive(Debug, Default)]
struct Applied {
    /// The schema itself exists.
    schema: bool,
    /// Migrations by version, with the hash of their text.
    migrations: HashMap<i32, String>,
    /// Functions by name, with the hash of their text.
    functions: HashMap<String, String>,
}

/// What [`migrate`] would do now, in order. Reads only. Empty: nothing to do.
///
/// # Errors
/// [`ErrorKind::Schema`] when the schema is newer than this build or a released migration has
/// another text there; [`ErrorKind::Unavailable`] when the database is away.
pub async fn plan(client: &Client, schema: &Schema) -> Result<Vec<Step>, Error> {
    steps(&applied(client, schema).await?, schema)
}

/// Applies every missing step in one transaction, under a lock, and returns what was done.
///
/// # Errors
/// As [`plan`], or the statement that failed; nothing is changed then.
///
/// Cancel safety: dropping the future rolls back.
pub async fn migrate(client: &mut Client, schema: &Schema) -> Result<Vec<Step>, Error> {
    let tx = client.transaction().await.map_err(away)?;
    // Read committed, so that what is read after the lock holds what its last holder committed.
    let opening = format!(
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock({LOCK}); \
         SET LOCAL lock_timeout = '5s'; SET LOCAL client_min_messages = 'warning'; \
         SET LOCAL search_path = pg_catalog, pg_temp"
    );
    tx.batch_execute(&opening).await.map_err(away)?;
    let steps = steps(&applied(&tx, schema).await?, schema)?;
    for step in &steps {
        run(&tx, step).await?;
    }
    tx.commit().await.map_err(away)?;
    Ok(steps)
}

/// Fails unless the schema can serve this build, and names the fix.
///
/// # Errors
/// [`ErrorKind::Schema`] when it is missing, older, newer, or lacks a function of ours;
/// [`ErrorKind::Unavailable`] when the database is away.
pub async fn check(client: &Client, schema: &Schema) -> Result<(), Error> {
    let applied = applied(client, schema).await?;
    refuse_newer(&applied, schema)?;
    let problem = match applied.migrations.keys().max() {
        None => "is missing".to_owned(),
        Some(&found) if found < VERSION => {
            format!("is at version {found} and this build needs {VERSION}")
        }
        Some(_) => {
            // Another text under the same name is fine: signatures never change, and during a
            // rolling deploy two builds share the functions.
            match FUNCTIONS.iter().find(|(name, _)| !applied.functions.contains_key(*name)) {
                Some((name, _)) => format!("lacks the function {name}"),
                None => return Ok(()),
            }
        }
    };
    Err(Error::new(ErrorKind::Schema, format!("schema {schema} {problem}: run `ichido migrate`")))
}

async fn run(tx: &Transaction<'_>, step: &Step) -> Result<(), Error> {
    tx.batch_execute(&step.sql).await.map_err(|error| {
        let what = format!("{} failed and nothing was changed", step.name);
        Error::new(ErrorKind::Schema, what).because(error)
    })
}

fn steps(applied: &Applied, schema: &Schema) -> Result<Vec<Step>, Error> {
    refuse_newer(applied, schema)?;
    let mut steps = Vec::new();
    if !applied.schema {
        let sql = format!("CREATE SCHEMA {schema};\n");
        steps.push(Step { name: format!("schema {schema}"), sql });
    }
    if applied.migrations.is_empty() {
        steps.push(Step { name: "bookkeeping".into(), sql: schema.sql(BOOTSTRAP) });
    }
    for (version, name, text) in MIGRATIONS {
        let hash = sha256(text);
        match applied.migrations.get(version) {
            Some(found) if *found == hash => continue,
            Some(_) => {
                let what = format!(
                    "migration {version} was applied to schema {schema} with another text: use \
                     the build that made it, or a fresh schema"
                );
                return Err(Error::new(ErrorKind::Schema, what));
            }
            None => {}
        }
        let record = format!(
            "INSERT INTO ichido.migration (version, name, sha256) \
             VALUES ({version}, '{name}', '{hash}');\n"
        );
        let sql = schema.sql(&format!("{text}{record}"));
        steps.push(Step { name: format!("migration {version}: {name}"), sql });
    }
    for (name, text) in FUNCTIONS {
        let hash = sha256(text);
        if applied.functions.get(*name) == Some(&hash) {
            continue;
        }
        let record = format!(
            "INSERT INTO ichido.migration_function AS f (name, sha256) \
             VALUES ('{name}', '{hash}')\nON CONFLICT (name) DO UPDATE \
             SET sha256 = excluded.sha256, applied_at = now();\n"
        );
        let sql = schema.sql(&format!("{text}{record}"));
        steps.push(Step { name: format!("function {name}"), sql });
    }
    Ok(steps)
}

fn refuse_newer(applied: &Applied, schema: &Schema) -> Result<(), Error> {
    match applied.migrations.keys().max() {
        Some(&found) if found > VERSION => {
            let what = format!(
                "schema {schema} is at version {found} and this build knows {VERSION}: use a \
                 newer ichido"
            );
            Err(Error::new(ErrorKind::Schema, what))
        }
        _ => Ok(()),
    }
}

/// Simple queries only: they need no prepared statement, so a pooler cannot be in the way.
async fn applied<C: GenericClient>(client: &C, schema: &Schema) -> Result<Applied, Error> {
    let there = format!(
        "SELECT to_regnamespace('{schema}'), to_regclass('{schema}.migration'), \
         to_regclass('{schema}.migration_function')"
    );
    let row = rows(client, &there).await?.into_iter().next().unwrap_or_default();
    let exists = |column: usize| row.get(column).is_some_and(Option::is_some);
    let mut applied = Applied { schema: exists(0), ..Applied::default() };
    if exists(1) && exists(2) {
        let sql = schema.sql("SELECT version::text, sha256 FROM ichido.migration");
        for row in rows(client, &sql).await? {
            if let [Some(version), Some(hash)] = row.as_slice() {
                let unreadable = || Error::new(ErrorKind::Schema, "unreadable migration version");
                let version: i32 = version.parse().map_err(|_| unreadable())?;
                applied.migrations.insert(version, hash.clone());
            }
        }
        let sql = schema.sql("SELECT name, sha256 FROM ichido.migration_function");
        for row in rows(client, &sql).await? {
            if let [Some(name), Some(hash)] = row.as_slice() {
                applied.functions.insert(name.clone(), hash.clone());
            }
        }
    }
    Ok(applied)
}

async fn rows<C: GenericClient>(client: &C, sql: &str) -> Result<Vec<Vec<Option<String>>>, Error> {
    let messages = client.simple_query(sql).await.map_err(away)?;
    Ok(messages
        .into_iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|n| row.get(n).map(str::to_owned)).collect())
            }
            _ => None,
        })
        .collect())
}

fn sha256(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        write!(hex, "{byte:02x}").expect("a String takes every write");
    }
    hex
}

/// An SQLSTATE is the database's word about the schema; anything else means it is away.
fn away(error: tokio_postgres::Error) -> Error {
    let kind = if error.code().is_some() { ErrorKind::Schema } else { ErrorKind::Unavailable };
    Error::new(kind, "the schema could not be read or changed").because(error)
}
