//! An engine under test: a fresh inbox with handlers in SQL, and a look at its tables.
//! Must hold no assertion about the promise.

use std::sync::Arc;

use bytes::Bytes;
use ichido::{
    Desk, Endpoint, Inbox, Outcome, ReceiveError, Received, SqlHandler, Store, Taken,
    postgres::{self, Postgres, Schema, migrate},
    sqlite::{self, Sqlite},
    verify::{Headers, Request, Timestamp},
};
use ichido_testkit::Database;
use tokio_postgres::{Client, SimpleQueryMessage};

pub(crate) const SECRET: &str = "whsec_conformance";
/// The business table of most tests, in SQL that both engines understand.
pub(crate) const LEDGER: &str = "CREATE TABLE ledger (event_id text NOT NULL, amount int)";
/// A handler that books.
pub(crate) const BOOK: &str = "INSERT INTO ledger (event_id, amount) VALUES (:event_id, 1)";

/// What differs between engines.
pub(crate) trait Engine: Sized + Send + Sync {
    type S: Store + Desk;
    /// A statement that runs far longer than any handler may.
    const FOREVER: &'static str;
    /// The same, and it writes: an interrupted write can undo more than itself.
    const FOREVER_WRITING: &'static str;
    /// A handler that puts up a flag.
    const FLAG: &'static str;
    /// `outbox` as a handler writes it.
    const OUTBOX: &'static str;
    async fn open(endpoints: Vec<Endpoint<Self::S>>) -> Self;
    fn inbox(&self) -> &Inbox<Self::S>;
    fn on_sql(e: Endpoint<Self::S>, pattern: &str, handler: SqlHandler) -> Endpoint<Self::S>;
    /// A handler in SQL as a worker has it.
    fn handler(sql: &str) -> Arc<<Self::S as Store>::Handler>;
    /// Rows as text, columns joined by `|`; says `ichido.` on both engines.
    async fn rows(&self, sql: &str) -> Vec<String>;
}

pub(crate) struct OnPostgres(Inbox<Postgres>, Client, #[expect(dead_code)] Database);

impl Engine for OnPostgres {
    type S = Postgres;
    const FOREVER: &'static str = "SELECT pg_sleep(30)";
    const FOREVER_WRITING: &'static str = "INSERT INTO ledger (event_id) SELECT pg_sleep(30)::text";
    const FLAG: &'static str = "SELECT ichido.flag(:endpoint, :event_id, 'look')";
    const OUTBOX: &'static str = "ichido.outbox";

    async fn open(endpoints: Vec<Endpoint<Postgres>>) -> Self {
        let database = Database::fresh("conformance").await.unwrap();
        let mut client = database.client().await.unwrap();
        migrate::migrate(&mut client, &Schema::default()).await.unwrap();
        client.batch_execute(LEDGER).await.unwrap();
        let config = postgres::Config::new(database.url()).unwrap();
        let store = Postgres::connect_lazy(&config).unwrap();
        Self(Inbox::new(store, endpoints).unwrap(), client, database)
    }

    fn inbox(&self) -> &Inbox<Postgres> {
        &self.0
    }

    fn on_sql(e: Endpoint<Postgres>, pattern: &str, handler: SqlHandler) -> Endpoint<Postgres> {
        e.on_sql(pattern, handler)
    }

    fn handler(sql: &str) -> Arc<dyn postgres::Run> {
        Arc::new(SqlHandler::parse("handler", sql).unwrap())
    }

    async fn rows(&self, sql: &str) -> Vec<String> {
        let mut rows = Vec::new();
        for message in self.1.simple_query(sql).await.unwrap() {
            if let SimpleQueryMessage::Row(row) = message {
                let texts: Vec<_> = (0..row.len()).map(|n| row.get(n).unwrap_or("-")).collect();
                rows.push(texts.join("|"));
            }
        }
        rows
    }
}

pub(crate) struct OnSqlite(Inbox<Sqlite>, tempfile::TempDir);

impl Engine for OnSqlite {
    type S = Sqlite;
    const FOREVER: &'static str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 \
                                   FROM n) SELECT count(*) FROM n";
    const FOREVER_WRITING: &'static str = "INSERT INTO ledger (event_id) WITH RECURSIVE n (i) AS \
                                           (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                                           SELECT i FROM n";
    const FLAG: &'static str = "INSERT INTO ichido_flag (endpoint, event_id, reason) \
                                VALUES (:endpoint, :event_id, 'look')";
    const OUTBOX: &'static str = "outbox";

    async fn open(endpoints: Vec<Endpoint<Sqlite>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Sqlite::open(sqlite::Config::new(folder.path().join("i.db"))).unwrap();
        store.apply(LEDGER).await.unwrap();
        Self(Inbox::new(store, endpoints).unwrap(), folder)
    }

    fn inbox(&self) -> &Inbox<Sqlite> {
        &self.0
    }

    fn on_sql(e: Endpoint<Sqlite>, pattern: &str, handler: SqlHandler) -> Endpoint<Sqlite> {
        e.on_sql(pattern, handler)
    }

    fn handler(sql: &str) -> Arc<dyn sqlite::Run> {
        Arc::new(SqlHandler::parse("handler", sql).unwrap())
    }

    async fn rows(&self, sql: &str) -> Vec<String> {
        let sql = sql.replace("ichido.outbox", "outbox").replace("ichido.webhook", "webhook");
        let sql = sql.replace("ichido.", "ichido_");
        let file = rusqlite::Connection::open(self.1.path().join("i.db")).unwrap();
        let mut statement = file.prepare(&sql).unwrap();
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| {
            let texts: Vec<_> = (0..columns).map(|n| text(row.get_ref_unwrap(n))).collect();
            Ok(texts.join("|"))
        });
        rows.unwrap().map(Result::unwrap).collect()
    }
}

fn text(value: rusqlite::types::ValueRef<'_>) -> String {
    use rusqlite::types::ValueRef::{Blob, Integer, Null, Real, Text};
    match value {
        Null => "-".into(),
        Integer(n) => n.to_string(),
        Real(n) => n.to_string(),
        Text(bytes) | Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// A Stripe endpoint `billing` with handlers in SQL.
pub(crate) fn billing<E: Engine>(handlers: &[(&str, &str)]) -> Endpoint<E::S> {
    endpoint::<E>("billing", handlers)
}

/// A Stripe endpoint with handlers in SQL.
pub(crate) fn endpoint<E: Engine>(name: &str, handlers: &[(&str, &str)]) -> Endpoint<E::S> {
    let endpoint = Endpoint::new(name, "stripe").secret(SECRET);
    handlers.iter().fold(endpoint, |endpoint, (pattern, sql)| {
        E::on_sql(endpoint, pattern, SqlHandler::parse(*pattern, sql).unwrap())
    })
}

/// A Stripe event.
pub(crate) fn event(id: &str, event_type: &str, amount: u32, pending: u32) -> Vec<u8> {
    format!(
        r#"{{"id":"{id}","object":"event","type":"{event_type}","created":1760000000,
            "pending_webhooks":{pending},"data":{{"object":{{"id":"in_1","amount":{amount}}}}}}}"#
    )
    .into_bytes()
}

/// A request signed as its provider would.
pub(crate) fn signed<S: Store>(inbox: &Inbox<S>, endpoint: &str, body: &[u8]) -> Request {
    signed_as(inbox, endpoint, body, "evt_in_header")
}

/// The same where the id is in a header.
pub(crate) fn signed_as<S: Store>(
    inbox: &Inbox<S>,
    endpoint: &str,
    body: &[u8],
    id: &str,
) -> Request {
    let mut request = Request {
        method: "POST".into(),
        url: format!("/webhooks/{endpoint}"),
        headers: Headers::new(),
        body: Bytes::copy_from_slice(body),
    };
    let verifier = inbox.verifier(endpoint).unwrap();
    verifier.sign(&mut request, id, "push", Timestamp::now()).unwrap();
    request
}

/// Delivers a body to an endpoint.
pub(crate) async fn deliver<E: Engine>(
    engine: &E,
    endpoint: &str,
    body: &[u8],
) -> Result<Taken, ReceiveError> {
    receive(engine, endpoint, signed(engine.inbox(), endpoint, body)).await
}

pub(crate) async fn receive<E: Engine>(
    engine: &E,
    endpoint: &str,
    request: Request,
) -> Result<Taken, ReceiveError> {
    match engine.inbox().receive(endpoint, request).await? {
        Received::Events(mut taken) => Ok(taken.pop().unwrap()),
        Received::Handshake(answer) => panic!("a handshake: {answer:?}"),
    }
}

/// The outcome of a delivery that is taken.
pub(crate) async fn outcome<E: Engine>(engine: &E, endpoint: &str, body: &[u8]) -> Outcome {
    deliver(engine, endpoint, body).await.unwrap().outcome
}

/// Every invariant holds.
pub(crate) async fn sound<E: Engine>(engine: &E) {
    assert_eq!(engine.inbox().store().audit().await.unwrap(), []);
}
