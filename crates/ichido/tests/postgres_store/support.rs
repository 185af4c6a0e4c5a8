//! An inbox on a fresh database with one endpoint `billing`, and events for it.

use bytes::Bytes;
use ichido::{
    Endpoint, Inbox, ReceiveError, Received, Taken,
    postgres::{Config, Postgres, Schema, migrate},
    verify::{Headers, Request, Timestamp},
};
use ichido_testkit::Database;
use tokio_postgres::Client;

pub(crate) type Billing = Endpoint<Postgres>;

/// A migrated database with a ledger.
pub(crate) struct Db {
    pub(crate) database: Database,
    pub(crate) client: Client,
}

impl Db {
    pub(crate) async fn new() -> Self {
        let database = Database::fresh("store").await.unwrap();
        let mut client = database.client().await.unwrap();
        migrate::migrate(&mut client, &Schema::default()).await.unwrap();
        let ledger = "CREATE TABLE ledger (event_id text NOT NULL, amount int)";
        client.batch_execute(ledger).await.unwrap();
        Self { database, client }
    }

    pub(crate) fn inbox(&self, change: impl FnOnce(Billing) -> Billing) -> Inbox<Postgres> {
        open(self.database.url(), change)
    }

    /// The same database on another port, as through a proxy or a pooler.
    pub(crate) fn through(&self, port: u16) -> String {
        let name = self.database.url().rsplit('/').next().unwrap();
        format!("postgres://postgres@127.0.0.1:{port}/{name}")
    }

    pub(crate) fn port(&self) -> u16 {
        let config: tokio_postgres::Config = self.database.url().parse().unwrap();
        config.get_ports()[0]
    }

    pub(crate) async fn count(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        self.client.query_one(&sql, &[]).await.unwrap().get(0)
    }
}

pub(crate) fn open(url: &str, change: impl FnOnce(Billing) -> Billing) -> Inbox<Postgres> {
    let store = Postgres::connect_lazy(&Config::new(url).unwrap()).unwrap();
    Inbox::new(store, [change(Endpoint::new("billing", "stripe").secret("whsec_x"))]).unwrap()
}

pub(crate) fn signed(inbox: &Inbox<Postgres>, id: &str) -> Request {
    let body = format!(r#"{{"id":"{id}","object":"event","type":"invoice.paid","data":{{}}}}"#);
    signed_body(inbox, id, body)
}

/// A request with this body.
pub(crate) fn signed_body(inbox: &Inbox<Postgres>, id: &str, body: String) -> Request {
    let mut request = Request {
        method: "POST".into(),
        url: "/webhooks/billing".into(),
        headers: Headers::new(),
        body: Bytes::from(body),
    };
    let verifier = inbox.verifier("billing").unwrap();
    verifier.sign(&mut request, id, "invoice.paid", Timestamp::now()).unwrap();
    request
}

pub(crate) async fn deliver(inbox: &Inbox<Postgres>, id: &str) -> Result<Taken, ReceiveError> {
    match inbox.receive("billing", signed(inbox, id)).await? {
        Received::Events(mut taken) => Ok(taken.pop().unwrap()),
        Received::Handshake(answer) => panic!("a handshake: {answer:?}"),
    }
}
