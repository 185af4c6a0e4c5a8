//! The pool, TLS, and what is checked on every new connection.
//!
//! A connection that could lose what it acknowledged is never handed out: it is refused with the
//! fix named. Nothing here connects before it is asked to.

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer, pki_types::pem::PemObject};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{CONNECT_TIMEOUT, Config, migrate, prepared::Prepared};
use crate::{Error, ErrorKind};

/// What makes a database unfit, in one round trip.
const FITNESS: &str = include_str!("../../sql/postgres/fitness.sql");

/// What `ichido.mark_digests` raises at an endpoint that refuses.
const REPEATED_BODY: &str = "IC005";

/// A pool for one role. Opens nothing yet.
pub(super) fn pool(config: &Config, prepared: &Prepared, size: usize) -> Result<Pool, Error> {
    let manager = Manager::from_config(
        config.driver.clone(),
        connector(config)?,
        ManagerConfig { recycling_method: RecyclingMethod::Fast },
    );
    let (schema, prepared) = (config.schema.clone(), prepared.clone());
    let fit = Hook::async_fn(move |client, _| {
        let (schema, prepared) = (schema.clone(), prepared.clone());
        Box::pin(async move {
            let checked = async {
                check_fitness(client).await?;
                migrate::check(client, &schema).await?;
                prepared.look_at(client).await.map_err(|error| database(&error))
            };
            checked.await.map_err(|error| HookError::message(error.to_string()))
        })
    });
    Pool::builder(manager)
        .max_size(size)
        .wait_timeout(Some(config.receive_wait))
        .create_timeout(Some(CONNECT_TIMEOUT))
        .recycle_timeout(Some(config.receive_wait))
        .runtime(Runtime::Tokio1)
        .post_create(fit)
        .build()
        .map_err(|error| Error::new(ErrorKind::Unavailable, "no pool").because(error))
}

/// A connection outside the pool, for migrations. Not checked for its schema.
///
/// # Errors
/// [`ErrorKind::Unavailable`] when the database is away or unfit.
pub async fn connect(config: &Config) -> Result<tokio_postgres::Client, Error> {
    let connecting = config.driver.connect(connector(config)?).await;
    let (client, connection) = connecting.map_err(|e| away(&config.place(), &e))?;
    tokio::spawn(connection);
    check_fitness(&client).await?;
    Ok(client)
}

/// A connection from the pool of the server at `place`.
pub(super) async fn get(pool: &Pool, place: &str) -> Result<Object, Error> {
    pool.get().await.map_err(|error| match error {
        PoolError::Timeout(deadpool_postgres::TimeoutType::Wait) => Error::new(
            ErrorKind::Busy,
            "no database connection came free in time: raise the number of connections",
        ),
        PoolError::PostCreateHook(HookError::Message(why)) => {
            Error::new(ErrorKind::Unavailable, why)
        }
        PoolError::Backend(error) => away(place, &error),
        error => {
            let why = format!("the database at {place} is away");
            Error::new(ErrorKind::Unavailable, why).because(error)
        }
    })
}

/// No connection came about.
fn away(place: &str, error: &tokio_postgres::Error) -> Error {
    let error = database(error);
    Error::new(error.kind(), format!("database at {place}: {error}"))
}

async fn check_fitness(client: &tokio_postgres::Client) -> Result<(), Error> {
    let rows = client.query_typed(FITNESS, &[]).await.map_err(|e| database(&e))?;
    match rows.first() {
        None => Ok(()),
        Some(row) => Err(Error::new(ErrorKind::Unavailable, row.get::<_, String>(0))),
    }
}

/// An error of the driver without DETAIL, which would quote rows.
pub(super) fn database(error: &tokio_postgres::Error) -> Error {
    let kind = match error.code() {
        Some(code) if is_data(code.code()) => ErrorKind::Data,
        Some(code) if code.code() == REPEATED_BODY => ErrorKind::RepeatedBody,
        Some(code) if code.code() == "55P03" => ErrorKind::Busy,
        Some(code) if matches!(code.code(), "42P01" | "3F000" | "42883") => ErrorKind::Schema,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, text(error))
}

/// The line is gone, or the server went away in the middle (57P01 to 57P03): whatever was under
/// way may have happened or not.
pub(super) fn is_lost(error: &tokio_postgres::Error) -> bool {
    error.code().is_none_or(|code| code.code().starts_with("57P"))
}

/// SQLSTATE classes that blame the row and not the database: data exception, integrity
/// constraint, program limit.
pub(super) fn is_data(code: &str) -> bool {
    ["22", "23", "54"].iter().any(|class| code.starts_with(class))
}

/// The error's message and SQLSTATE, never its DETAIL. A data exception quotes the value that it
/// is about, which may be somebody's: that is left out.
pub(super) fn text(error: &tokio_postgres::Error) -> String {
    if let Some(db) = error.as_db_error() {
        let code = db.code().code();
        let message = db.message();
        return match (message.find('"'), message.rfind('"')) {
            (Some(from), Some(to)) if from < to && code.starts_with("22") => {
                format!("{}...{} (SQLSTATE {code})", &message[..=from], &message[to..])
            }
            _ => format!("{message} (SQLSTATE {code})"),
        };
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// TLS for the driver; unused where the URL asks for none.
pub(super) fn connector(config: &Config) -> Result<MakeRustlsConnect, Error> {
    Ok(MakeRustlsConnect::new(tls(config)?))
}

fn tls(config: &Config) -> Result<ClientConfig, Error> {
    let bad = |why: String| Error::new(ErrorKind::Unavailable, why);
    let mut roots = RootCertStore::empty();
    match &config.root_cert {
        Some(file) => {
            let failed = |e| bad(format!("sslrootcert {}: {e}", file.display()));
            for cert in CertificateDer::pem_file_iter(file).map_err(failed)? {
                let cert = cert.map_err(failed)?;
                roots.add(cert).map_err(|e| bad(format!("{}: {e}", file.display())))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| bad(e.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth())
}
