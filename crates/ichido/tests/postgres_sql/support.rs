//! A migrated database for a test, and a batch for `receive`. Must hold no assertion.

use std::{sync::Arc, time::SystemTime};

use ichido::postgres::{Schema, migrate};
use ichido_testkit::Database;
use tokio_postgres::{Client, Error, NoTls, Row, types::ToSql};
use uuid::Uuid;

/// A fresh database with the schema of this build.
pub(crate) struct Db {
    url: String,
    pub(crate) client: Client,
}

impl Db {
    /// Without a schema.
    pub(crate) async fn empty() -> Self {
        let database = Database::fresh("sql").await.unwrap();
        let url = database.url().to_owned();
        Self { client: connect(&url).await, url }
    }

    /// Migrated, with the endpoint `billing` (3 attempts) and `github` (ids unsigned).
    pub(crate) async fn new() -> Self {
        let mut db = Self::empty().await;
        migrate::migrate(&mut db.client, &Schema::default()).await.unwrap();
        db.run(
            "SELECT ichido.endpoint_put('billing', 'stripe', '{\"max_attempts\": 3}'), \
             ichido.endpoint_put('github', 'github', '{\"id_signed\": false}')",
        )
        .await;
        db
    }

    /// One connection more to the same database.
    pub(crate) async fn connect(&self) -> Client {
        connect(&self.url).await
    }

    /// Runs statements that return nothing of interest.
    pub(crate) async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap();
    }

    /// A single value as text; NULL is "null".
    pub(crate) async fn text(&self, sql: &str) -> String {
        text(&self.client, sql).await
    }

    /// Rows as text, columns joined by `|`.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<String> {
        rows(&self.client, sql).await
    }

    /// Takes one event of `billing` as work, vouched, and returns its receipt.
    pub(crate) async fn take(&self, event_id: &str) -> Uuid {
        let sql = "SELECT receipt FROM ichido.receive('billing', $1, 'invoice.paid', \
                   '{\"a\": 1}', NULL, 'billing')";
        self.client.query_one(sql, &[&event_id]).await.unwrap().get(0)
    }

    /// Claims one event of the queue `billing` for a minute.
    pub(crate) async fn claim_one(&self) -> (Uuid, i64) {
        let sql = "SELECT receipt, lease FROM ichido.claim(ARRAY['billing'], \
                   ARRAY['fresh', 'retry', 'backfill'], 1, '1 min')";
        let row = self.client.query_one(sql, &[]).await.unwrap();
        (row.get(0), row.get(1))
    }

    /// The broken invariants.
    pub(crate) async fn audit(&self) -> Vec<String> {
        self.rows("SELECT invariant, count FROM ichido.audit()").await
    }
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub(crate) async fn text(client: &Client, sql: &str) -> String {
    rows(client, sql).await.into_iter().next().unwrap_or_default()
}

pub(crate) async fn rows(client: &Client, sql: &str) -> Vec<String> {
    let messages = client.simple_query(sql).await.unwrap();
    let mut rows = Vec::new();
    for message in messages {
        if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
            let columns: Vec<_> = (0..row.len()).map(|n| row.get(n).unwrap_or("null")).collect();
            rows.push(columns.join("|"));
        }
    }
    rows
}

/// The SQLSTATE of an error.
pub(crate) fn state<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().code().expect("an error of the database").code().to_owned()
}

/// The arrays of one call of `receive`.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) d_id: Vec<Uuid>,
    pub(crate) d_endpoint: Vec<String>,
    pub(crate) d_body: Vec<Vec<u8>>,
    pub(crate) e_receipt: Vec<Uuid>,
    pub(crate) e_delivery: Vec<i32>,
    pub(crate) e_id: Vec<String>,
    pub(crate) e_digest: Vec<Vec<u8>>,
    pub(crate) e_signed: Vec<bool>,
    pub(crate) e_route: Vec<String>,
}

/// What came back for one event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Back {
    pub(crate) n: i32,
    pub(crate) receipt: Uuid,
    pub(crate) taken: bool,
    pub(crate) differs: bool,
    pub(crate) xid: String,
}

impl Batch {
    /// A delivery of its own for each event; `(event id, route)`.
    pub(crate) fn of(endpoint: &str, events: &[(&str, &str)]) -> Self {
        let mut batch = Self::default();
        for (id, route) in events {
            batch.delivery(endpoint, b"{\"a\": 1}");
            batch.event(id, route);
        }
        batch
    }

    /// Opens a delivery; the events that follow belong to it.
    pub(crate) fn delivery(&mut self, endpoint: &str, body: &[u8]) {
        self.d_id.push(Uuid::now_v7());
        self.d_endpoint.push(endpoint.into());
        self.d_body.push(body.to_vec());
    }

    /// Adds a signed event to the delivery that was opened last.
    pub(crate) fn event(&mut self, id: &str, route: &str) {
        self.e_receipt.push(Uuid::now_v7());
        self.e_delivery.push(i32::try_from(self.d_id.len()).unwrap());
        self.e_id.push(id.into());
        self.e_digest.push(b"digest".to_vec());
        self.e_signed.push(true);
        self.e_route.push(route.into());
    }

    pub(crate) async fn send(&self, client: &Client) -> Result<Vec<Back>, Error> {
        let sql = "SELECT * FROM ichido.receive($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, \
                   $12, $13, $14, $15, $16, $17, $18, $19, $20)";
        let d = self.d_id.len();
        let e = self.e_id.len();
        let to: Vec<i32> = self
            .e_delivery
            .iter()
            .map(|d| self.d_body[usize::try_from(d - 1).unwrap()].len().try_into().unwrap())
            .collect();
        let params: Vec<Arc<dyn ToSql + Sync + Send>> = vec![
            Arc::new(self.d_id.clone()),
            Arc::new(self.d_endpoint.clone()),
            Arc::new(vec!["POST"; d]),
            Arc::new(vec!["/webhooks/x"; d]),
            Arc::new(vec![b"a: b".to_vec(); d]),
            Arc::new(self.d_body.clone()),
            Arc::new(vec![0_i16; d]),
            Arc::new(self.e_receipt.clone()),
            Arc::new(self.e_delivery.clone()),
            Arc::new(self.e_id.clone()),
            Arc::new(vec!["invoice.paid"; e]),
            Arc::new(vec![0_i32; e]),
            Arc::new(to),
            Arc::new(self.e_digest.clone()),
            Arc::new(vec![None::<SystemTime>; e]),
            Arc::new(vec![None::<String>; e]),
            Arc::new(self.e_signed.clone()),
            Arc::new(self.e_route.clone()),
            Arc::new(vec!["billing"; e]),
            Arc::new(vec![None::<String>; e]),
        ];
        let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(|p| &**p as _).collect();
        let rows = client.query(sql, &params).await?;
        Ok(rows.iter().map(back).collect())
    }
}

fn back(row: &Row) -> Back {
    Back {
        n: row.get(0),
        receipt: row.get(1),
        taken: row.get(2),
        differs: row.get(3),
        xid: row.get(4),
    }
}
