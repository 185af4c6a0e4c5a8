//! Opening the file: durability, migrations, and the lock that keeps a second receiver out.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior};
use sha2::{Digest, Sha256};

use super::Config;
use crate::{Error, ErrorKind};

/// Numbered and forward only.
const MIGRATIONS: [(i64, &str, &str); 4] = [
    (1, "inbox", include_str!("../../sql/sqlite/migrations/0001_inbox.sql")),
    (2, "view", include_str!("../../sql/sqlite/migrations/0002_view.sql")),
    (3, "repeats", include_str!("../../sql/sqlite/migrations/0003_repeats.sql")),
    (4, "order", include_str!("../../sql/sqlite/migrations/0004_order.sql")),
];
/// Commands write beside the server; they wait for it, and it for them.
const BUSY: Duration = Duration::from_secs(5);
/// Compiled statements kept: all of ours, and some of the handlers'.
const STATEMENTS_KEPT: usize = 128;

/// Held by the one process that receives into a file.
pub(super) struct Lock(#[expect(dead_code, reason = "dropping the file releases the lock")] File);

impl Lock {
    pub(super) fn take(database: &Path) -> Result<Self, Error> {
        let path = beside(database, "lock");
        let failed = |e: std::io::Error| {
            Error::new(ErrorKind::Unavailable, format!("{}: {e}", path.display()))
        };
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            // Not held by anyone: the file system knows no locks, or the like.
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                drop(file.read_to_string(&mut holder));
                return Err(Error::new(
                    ErrorKind::Unavailable,
                    format!(
                        "{} is in use by process {}: one process receives into a file; stop it, \
                         or use another file or PostgreSQL",
                        database.display(),
                        holder.trim()
                    ),
                ));
            }
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(failed)?;
        write!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self(file))
    }
}

fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// The writing connection, migrated.
pub(super) fn open(config: &Config) -> Result<Connection, Error> {
    let named = |e: &rusqlite::Error| {
        Error::new(ErrorKind::Unavailable, format!("{}: {e}", config.path.display()))
    };
    let mut connection = Connection::open(&config.path).map_err(|e| named(&e))?;
    let setup = |c: &Connection| {
        c.busy_timeout(BUSY)?;
        c.pragma_update(None, "journal_mode", "wal")?;
        // FULL: a commit is on the disk before it is acknowledged, power cuts included.
        c.pragma_update(None, "synchronous", "full")?;
        // Where a plain fsync stops at the drive's cache; elsewhere it changes nothing.
        c.pragma_update(None, "fullfsync", "on")?;
        c.pragma_update(None, "foreign_keys", "on")?;
        c.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
        Ok(())
    };
    setup(&connection).map_err(|e| named(&e))?;
    migrate(&mut connection)?;
    if let Some(pages) = config.pages_max {
        connection.pragma_update(None, "max_page_count", pages).map_err(|e| named(&e))?;
    }
    Ok(connection)
}

/// A connection that only reads.
pub(super) fn reader(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags).and_then(|connection| {
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "query_only", "on")?;
        Ok(connection)
    });
    opened.map_err(|e| Error::new(ErrorKind::Unavailable, format!("{}: {e}", path.display())))
}

/// Fails when the file's schema is not ours.
pub(super) fn check(connection: &Connection) -> Result<(), Error> {
    let version = version(connection).map_err(|e| error(&e))?;
    let known = MIGRATIONS[MIGRATIONS.len() - 1].0;
    match version {
        Some(version) if version == known => Ok(()),
        Some(version) if version > known => Err(newer(version)),
        Some(version) => {
            let why = format!(
                "the file has schema version {version}, this one knows {known}: start \
                 `ichido serve`, which migrates it"
            );
            Err(Error::new(ErrorKind::Schema, why))
        }
        None => {
            Err(Error::new(ErrorKind::Schema, "no inbox in this file yet: start `ichido serve`"))
        }
    }
}

fn newer(version: i64) -> Error {
    let why = format!("the file has schema version {version} of a newer ichido: upgrade this one");
    Error::new(ErrorKind::Schema, why)
}

fn version(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let exists: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'ichido_migration')",
        [],
        |row| row.get(0),
    )?;
    if !exists {
        return Ok(None);
    }
    connection.query_row("SELECT max(version) FROM ichido_migration", [], |row| row.get(0))
}

fn migrate(connection: &mut Connection) -> Result<(), Error> {
    let failed = |e: rusqlite::Error| {
        Error::new(ErrorKind::Schema, "the file cannot be migrated").because(e)
    };
    let tx =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let have = version(&tx).map_err(failed)?.unwrap_or_default();
    if have > MIGRATIONS[MIGRATIONS.len() - 1].0 {
        return Err(newer(have));
    }
    tx.execute_batch(
        "CREATE TABLE IF NOT EXISTS ichido_migration (version INTEGER PRIMARY KEY, \
         name TEXT NOT NULL, sha256 BLOB NOT NULL, applied_at TEXT NOT NULL) STRICT",
    )
    .map_err(failed)?;
    for (version, name, sql) in MIGRATIONS {
        let hash = Sha256::digest(sql.as_bytes()).to_vec();
        let applied: Option<Vec<u8>> = tx
            .query_row("SELECT sha256 FROM ichido_migration WHERE version = ?1", [version], |r| {
                r.get(0)
            })
            .optional()
            .map_err(failed)?;
        match applied {
            Some(applied) if applied == hash => {}
            Some(_) => {
                let why = format!("migration {version} was changed after this file applied it");
                return Err(Error::new(ErrorKind::Schema, why));
            }
            None => {
                tx.execute_batch(sql).map_err(failed)?;
                let row = rusqlite::params![version, name, hash, super::time::now()];
                tx.execute("INSERT INTO ichido_migration VALUES (?1, ?2, ?3, ?4)", row)
                    .map_err(failed)?;
            }
        }
    }
    tx.commit().map_err(failed)
}

/// An error of the driver, told apart as callers need it.
pub(super) fn error(error: &rusqlite::Error) -> Error {
    use rusqlite::ErrorCode::{
        ConstraintViolation, DatabaseBusy, DatabaseLocked, TooBig, TypeMismatch,
    };
    let kind = match error.sqlite_error_code() {
        Some(ConstraintViolation | TooBig | TypeMismatch) => ErrorKind::Data,
        Some(DatabaseBusy | DatabaseLocked) => ErrorKind::Busy,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, error.to_string())
}
