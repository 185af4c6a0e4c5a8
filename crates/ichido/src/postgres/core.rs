//! What every part of the engine shares: the pool, the schema, and small statements of our own.
//! It must never keep a connection beyond one call.

use std::sync::{
    Arc, RwLock,
    atomic::{AtomicBool, Ordering},
};

use deadpool_postgres::{Object, Pool};
use tokio::sync::watch;
use tokio_postgres::{
    Client,
    types::{ToSql, Type},
};
use tokio_postgres_rustls::MakeRustlsConnect;
use uuid::Uuid;

use super::{
    Config, Schema,
    batch::{Batch, RECEIVE, Suspect},
    connect,
    duplicates::Duplicates,
    prepared::{Prepared, Sql},
    shared::Resting,
};
use crate::{EndpointSpec, Error, Mode, OnFailure, OrderByKey};

const START: &str = include_str!("../../sql/postgres/start.sql");
const IS_STORED: &str = include_str!("../../sql/postgres/is_stored.sql");
const FLAG: &str = include_str!("../../sql/postgres/flag.sql");
const ENDPOINT_PUT: &str = include_str!("../../sql/postgres/endpoint_put.sql");
const EVENT_BODY: &str = include_str!("../../sql/postgres/event_body.sql");
const CONFLICT_PUT: &str = include_str!("../../sql/postgres/conflict_put.sql");
/// An endpoint that the database does not know (any more).
const UNKNOWN_ENDPOINT: &str = "IC002";

pub(super) type Params<'p> = [(&'p (dyn ToSql + Sync), Type)];

pub(super) struct Core {
    pool: Pool,
    /// The workers'. Long handlers must never keep a receive waiting.
    work_pool: Pool,
    place: String,
    pub(super) schema: Schema,
    pub(super) prepared: Prepared,
    /// The statement of a receive, for our schema.
    receive: String,
    /// The one that opens a worker's transaction.
    start: String,
    pub(super) tls: MakeRustlsConnect,
    endpoints: RwLock<Vec<Arc<EndpointSpec>>>,
    registered: AtomicBool,
    pub(super) duplicates: Duplicates,
    pub(super) resting: Resting,
    /// Told when something was stored for a worker.
    pub(super) arrivals: watch::Sender<()>,
}

impl Core {
    pub(super) fn new(config: &Config) -> Result<Self, Error> {
        let prepared = Prepared::new(config.prepared_statements);
        Ok(Self {
            pool: connect::pool(config, &prepared, config.receive_connections)?,
            work_pool: connect::pool(config, &prepared, config.work_connections)?,
            place: config.place(),
            receive: config.schema.sql(RECEIVE),
            start: config.schema.sql(START),
            prepared,
            schema: config.schema.clone(),
            tls: connect::connector(config)?,
            endpoints: RwLock::default(),
            registered: AtomicBool::new(false),
            duplicates: Duplicates::default(),
            resting: Resting::default(),
            arrivals: watch::Sender::new(()),
        })
    }

    pub(super) fn configure(&self, endpoints: Vec<Arc<EndpointSpec>>) {
        *self.endpoints.write().expect("nothing panics while it holds this lock") = endpoints;
        self.registered.store(false, Ordering::Release);
    }

    /// A checked connection.
    pub(super) async fn get(&self) -> Result<Object, Error> {
        connect::get(&self.pool, &self.place).await
    }

    /// A checked connection to a database that knows our endpoints.
    pub(super) async fn connection(&self) -> Result<Object, Error> {
        self.known_to(self.get().await?).await
    }

    /// The same for a worker.
    pub(super) async fn work_connection(&self) -> Result<Object, Error> {
        self.known_to(connect::get(&self.work_pool, &self.place).await?).await
    }

    pub(super) fn close(&self) {
        self.pool.close();
        self.work_pool.close();
    }

    pub(super) fn start(&self) -> &str {
        &self.start
    }

    async fn known_to(&self, connection: Object) -> Result<Object, Error> {
        if !self.registered.load(Ordering::Acquire) {
            self.register(&connection).await?;
        }
        Ok(connection)
    }

    /// Registers our endpoints if that is still to be done.
    pub(super) async fn ensure_registered(&self) -> Result<(), Error> {
        if self.registered.load(Ordering::Acquire) {
            return Ok(());
        }
        self.connection().await.map(drop)
    }

    /// Whether this endpoint asks for order by key.
    pub(super) fn is_ordered(&self, endpoint: &str) -> bool {
        let endpoints = self.endpoints.read().expect("nothing panics while it holds this lock");
        let mut endpoints = endpoints.iter();
        endpoints.any(|spec| *spec.name == *endpoint && spec.order_by_key.is_some())
    }

    /// Called after [`is_unknown_endpoint`].
    pub(super) fn forget_registration(&self) {
        self.registered.store(false, Ordering::Release);
    }

    async fn register(&self, client: &Client) -> Result<(), Error> {
        let endpoints =
            self.endpoints.read().expect("nothing panics while it holds this lock").clone();
        for spec in &endpoints {
            let (name, provider) = (&*spec.name, &*spec.provider);
            let settings = settings(spec);
            let params: [(&(dyn ToSql + Sync), Type); 3] =
                [(&name, Type::TEXT), (&provider, Type::TEXT), (&settings, Type::JSONB)];
            self.query(client, ENDPOINT_PUT, &params).await?;
        }
        self.registered.store(true, Ordering::Release);
        Ok(())
    }

    /// The statement of a receive on this connection: by name where that is safe.
    pub(super) async fn receiving(
        &self,
        connection: &Object,
    ) -> Result<Sql<'_>, tokio_postgres::Error> {
        self.prepared.sql(connection, &self.receive, &Batch::TYPES).await
    }

    /// Whether our receipt is stored.
    pub(super) async fn is_stored(&self, receipt: Uuid) -> Result<bool, Error> {
        let client = self.get().await?;
        let rows = self.query(&client, IS_STORED, &[(&receipt, Type::UUID)]).await?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    /// Puts a note for a human on an event, outside its transaction.
    pub(super) async fn flag(&self, event: &crate::Event, reason: &str) -> Result<(), Error> {
        let client = self.get().await?;
        let params: [(&(dyn ToSql + Sync), Type); 3] =
            [(&&*event.endpoint, Type::TEXT), (&event.id, Type::TEXT), (&reason, Type::TEXT)];
        self.query(&client, FLAG, &params).await.map(drop)
    }

    /// Judges a duplicate whose bytes differ, and records it where its content differs too.
    pub(super) async fn judge(&self, suspect: &Suspect) -> Result<bool, Error> {
        let client = self.get().await?;
        let rows = self.query(&client, EVENT_BODY, &[(&suspect.receipt, Type::UUID)]).await?;
        let first: Option<Vec<u8>> = rows.first().and_then(|row| row.get(0));
        let again = &suspect.body[suspect.range.clone()];
        // Where the first bytes are no longer kept, only the digests can speak.
        if first.is_some_and(|first| suspect.verifier.same_content(&first, again)) {
            return Ok(false);
        }
        let (digest, body) = (&suspect.digest[..], &suspect.body[..]);
        let params: [(&(dyn ToSql + Sync), Type); 7] = [
            (&suspect.receipt, Type::UUID),
            (&digest, Type::BYTEA),
            (&suspect.method, Type::TEXT),
            (&suspect.url, Type::TEXT),
            (&suspect.headers, Type::BYTEA),
            (&body, Type::BYTEA),
            (&suspect.secret, Type::INT4),
        ];
        self.query(&client, CONFLICT_PUT, &params).await?;
        Ok(true)
    }

    /// Runs a rare statement of ours, unnamed, which every pooler can carry.
    pub(super) async fn query(
        &self,
        client: &Client,
        sql: &str,
        params: &Params<'_>,
    ) -> Result<Vec<tokio_postgres::Row>, Error> {
        let sql = self.schema.sql(sql);
        client.query_typed(&sql, params).await.map_err(|e| connect::database(&e))
    }
}

/// The database was restored or emptied behind us: register again.
pub(super) fn is_unknown_endpoint(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| code.code() == UNKNOWN_ENDPOINT)
}

/// What SQL and other processes need to know of an endpoint.
fn settings(spec: &EndpointSpec) -> serde_json::Value {
    serde_json::json!({
        "mode": match spec.mode { Mode::Sync => "sync", Mode::Async => "async" },
        "on_failure": match spec.on_failure {
            OnFailure::Keep => "keep",
            OnFailure::Refuse => "refuse",
        },
        "repeated_body": spec.repeated_body.as_str(),
        "order_by_key": spec.order_by_key.map(OrderByKey::as_str),
        "handler_timeout_ms": spec.handler_timeout.as_millis(),
        "lease_ms": spec.lease.as_millis(),
        "max_attempts": spec.max_attempts,
        "keep_identity_hours": spec.keep_identity.as_secs() / 3600,
        "id_signed": spec.id_signed,
        "types": spec.patterns,
    })
}
