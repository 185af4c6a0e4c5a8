//! What is SQLite's own: one writer, one process, handlers that cannot leave their transaction.
//! The promise itself is in the conformance suite.
#![expect(clippy::unwrap_used, reason = "a test fails where its set-up fails")]

mod file;
mod handlers;

use std::{path::Path, time::Duration};

use bytes::Bytes;
use ichido::{
    Endpoint, Event, Inbox, ReceiveError, Received, SqlHandler, Taken,
    sqlite::{Config, Sqlite, Tx},
    verify::{Headers, Request, Timestamp},
};
use rusqlite::Connection;

type Billing = Endpoint<Sqlite>;

/// Waits long for the writer, as the machine may be busy with other tests.
fn config(folder: &Path) -> Config {
    let mut config = Config::new(folder.join("i.db"));
    config.receive_wait = Duration::from_secs(7);
    config
}

async fn open(config: Config, change: impl FnOnce(Billing) -> Billing) -> Inbox<Sqlite> {
    let store = Sqlite::open(config).unwrap();
    store.apply("CREATE TABLE IF NOT EXISTS ledger (event_id TEXT)").await.unwrap();
    Inbox::new(store, [change(Endpoint::new("billing", "stripe").secret("whsec_x"))]).unwrap()
}

fn signed(inbox: &Inbox<Sqlite>, id: &str, filler: usize) -> Request {
    let filler = "x".repeat(filler);
    let body = format!(r#"{{"id":"{id}","type":"invoice.paid","data":"{filler}"}}"#);
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

async fn deliver(inbox: &Inbox<Sqlite>, id: &str) -> Result<Taken, ReceiveError> {
    match inbox.receive("billing", signed(inbox, id, 0)).await? {
        Received::Events(mut taken) => Ok(taken.pop().unwrap()),
        Received::Handshake(answer) => panic!("a handshake: {answer:?}"),
    }
}

fn count(folder: &Path, table: &str) -> i64 {
    let file = Connection::open(folder.join("i.db")).unwrap();
    file.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

fn book(tx: &mut Tx<'_>, event: &Event) -> rusqlite::Result<()> {
    tx.execute("INSERT INTO ledger VALUES (?1)", [&event.id]).map(drop)
}

fn sql(text: &str) -> SqlHandler {
    SqlHandler::parse("h.sql", text).unwrap()
}

const PARENT_AND_CHILD: &str = "CREATE TABLE parent (id INTEGER PRIMARY KEY);
    CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)";
