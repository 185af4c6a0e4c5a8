//! A server with a few endpoints on a database of its own, and deliveries that are signed here.
//!
//! It must never mend what a test sends: bytes and headers travel as they are.

use std::fs;

use ichido_testkit::Database;
use ichido_verify::{Request, Secret, Settings, Timestamp, Verifier};
use serde_json::Value;

use crate::common::{Answer, SECRET, Server, Site};

/// Endpoints that tests share. `billing` writes the body down; `reading` reads it as JSON;
/// `cards` takes each card once; `later` is async; `github` has an id that nobody signs.
const ENDPOINTS: &str = r#"
[limits]
body_bytes_max = 33_554_432
requests_max = 2_000
connections_max = 2_000
receive_wait = "8s"
[app.schema]
sqlite = "schema.sql"
postgres = "schema.sql"
[endpoint.billing]
provider = "stripe"
secrets = ["env:SECRET"]
handlers = { "*" = "take.sql" }
[endpoint.second]
provider = "stripe"
secrets = ["env:SECRET"]
handlers = { "*" = "take.sql" }
[endpoint.reading]
provider = "stripe"
secrets = ["env:SECRET"]
handlers = { "*" = { sqlite = "read.sqlite.sql", postgres = "read.postgres.sql" } }
[endpoint.cards]
provider = "stripe"
secrets = ["env:SECRET"]
handlers = { "*" = "card.sql" }
[endpoint.later]
provider = "stripe"
secrets = ["env:SECRET"]
mode = "async"
handlers = { "*" = { queue = "later" } }
[endpoint.github]
provider = "github"
secrets = ["env:SECRET"]
handlers = { "*" = "take.sql" }
"#;

const FILES: [(&str, &str); 5] = [
    (
        "schema.sql",
        "CREATE TABLE IF NOT EXISTS taken (event_id text, event_type text, body bytea);\n\
         CREATE TABLE IF NOT EXISTS cards (card text UNIQUE);",
    ),
    ("take.sql", "INSERT INTO taken VALUES (:event_id, :event_type, :body);"),
    (
        "read.sqlite.sql",
        "INSERT INTO taken SELECT :event_id, json_extract(:payload, '$.type'), NULL;",
    ),
    ("card.sql", "INSERT INTO cards SELECT :payload ->> 'card';"),
    ("read.postgres.sql", "INSERT INTO taken SELECT :event_id, :payload ->> 'type', NULL;"),
];

/// A server on a database of its own.
pub(crate) struct World {
    pub(crate) site: Site,
    pub(crate) server: Server,
    /// `None`: a file.
    pub(crate) database: Option<Database>,
}

/// What became of an event, as `webhook_inbox` shows it, and its bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) event_id: String,
    pub(crate) event_type: String,
    pub(crate) state: String,
    /// For an event in review, its reason.
    pub(crate) why: Option<String>,
    pub(crate) shown: bool,
    pub(crate) body: Vec<u8>,
}

/// The events of an engine, oldest first. `{i}` is what the inbox's names begin with.
const FOUND: &str = "SELECT v.event_id, v.event_type, v.state, v.last_error, \
     v.payload IS NOT NULL, d.body \
     FROM {view} v JOIN {i}event e ON e.id = v.receipt JOIN {i}delivery d ON d.id = e.delivery_id \
     ORDER BY e.received_at, e.id";

impl World {
    /// The embedded engine, with more lines of configuration.
    pub(crate) fn sqlite(more: &str) -> Self {
        Self::sqlite_with(more, &[])
    }

    /// The same with more files.
    pub(crate) fn sqlite_with(more: &str, files: &[(&str, &str)]) -> Self {
        let site = site("sqlite:inbox.db", more, files);
        Self { server: site.serve(), site, database: None }
    }

    /// PostgreSQL, with more lines of configuration.
    pub(crate) async fn postgres(more: &str) -> Self {
        Self::postgres_with(more, &[]).await
    }

    /// The same with more files.
    pub(crate) async fn postgres_with(more: &str, files: &[(&str, &str)]) -> Self {
        let database = fresh().await;
        let site = site(database.url(), more, files);
        Self { server: site.serve(), site, database: Some(database) }
    }

    /// The same through another address than the database's own, such as a proxy's.
    pub(crate) fn through(url: &str, database: Database) -> Self {
        let site = site(url, "", &[]);
        Self { server: site.serve(), site, database: Some(database) }
    }

    /// Runs SQL on PostgreSQL.
    pub(crate) async fn sql(&self, sql: &str) {
        let client = self.database.as_ref().expect("on PostgreSQL").client().await;
        client.expect("connects").batch_execute(sql).await.expect(sql);
    }

    /// Ends the server and starts it again with the first `from` of its
    /// configuration, which is in `billing`, made `to`.
    pub(crate) fn restart_with(&mut self, from: &str, to: &str) {
        assert_eq!(self.server.terminate(), Some(0));
        let file = self.site.path().join("ichido.toml");
        let config = fs::read_to_string(&file).expect("the file");
        assert!(config.contains(from), "no {from} in {config}");
        fs::write(&file, config.replacen(from, to, 1)).expect("written");
        self.server = self.site.serve();
    }

    /// Posts a body to an endpoint of Stripe's, signed now.
    pub(crate) fn post(&self, endpoint: &str, body: impl AsRef<[u8]>) -> Answer {
        let headers = stripe(body.as_ref(), SECRET, Timestamp::now());
        post(&self.server, endpoint, &headers, body.as_ref())
    }

    /// Posts to `billing`; it has to be answered 200. Gives the outcome.
    pub(crate) fn take(&self, body: impl AsRef<[u8]>) -> String {
        outcome(&self.post("billing", body))
    }

    /// All events.
    pub(crate) async fn found(&self) -> Vec<Found> {
        match &self.database {
            None => {
                let sql = FOUND.replace("{view}", "webhook_inbox").replace("{i}", "ichido_");
                let file = self.file();
                let mut all = file.prepare(&sql).expect("SQL");
                let read = all.query_map([], |row| {
                    Ok(Found {
                        event_id: row.get(0)?,
                        event_type: row.get(1)?,
                        state: row.get(2)?,
                        why: row.get(3)?,
                        shown: row.get(4)?,
                        body: row.get(5)?,
                    })
                });
                read.expect("reads").map(|row| row.expect("a row")).collect()
            }
            Some(database) => {
                let sql = FOUND.replace("{view}", "{i}webhook_inbox").replace("{i}", "ichido.");
                let client = database.client().await.expect("connects");
                let rows = client.query(&sql, &[]).await.expect("reads");
                let read = |row: &tokio_postgres::Row| Found {
                    event_id: row.get(0),
                    event_type: row.get(1),
                    state: row.get(2),
                    why: row.get(3),
                    shown: row.get(4),
                    body: row.get(5),
                };
                rows.iter().map(read).collect()
            }
        }
    }

    /// The one event that there is.
    pub(crate) async fn only(&self) -> Found {
        let mut found = self.found().await;
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    /// A number from the tables. `{i}` is what the inbox's tables begin with.
    pub(crate) async fn count(&self, from: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {from}");
        match &self.database {
            None => {
                let sql = sql.replace("{i}", "ichido_");
                self.file().query_row(&sql, [], |row| row.get(0)).expect(&sql)
            }
            Some(database) => {
                let client = database.client().await.expect("connects");
                let sql = sql.replace("{i}", "ichido.");
                client.query_one(&sql, &[]).await.expect(&sql).get(0)
            }
        }
    }

    fn file(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.site.path().join("inbox.db")).expect("opens")
    }

    /// What `stats --json` says.
    pub(crate) fn stats(&self) -> Value {
        let (code, text) = self.site.run(&["stats", "--json"]);
        assert_eq!(code, Some(0), "{text}");
        serde_json::from_str(&text).expect("JSON")
    }

    /// The metrics page.
    pub(crate) fn metrics(&self) -> String {
        self.server.send("GET", "/metrics", &[], "").body
    }

    /// The audit has to hold whatever was done.
    pub(crate) fn audit(&self) {
        let (code, text) = self.site.run(&["audit"]);
        assert_eq!(code, Some(0), "{text}");
    }
}

/// A database with our schema and the one of [`FILES`].
pub(crate) async fn fresh() -> Database {
    fresh_after("").await
}

/// The same, where somebody has run this SQL before us.
pub(crate) async fn fresh_after(sql: &str) -> Database {
    let database = Database::fresh("badcontent").await.expect("a database");
    let client = database.client().await.expect("connects");
    client.batch_execute(sql).await.expect(sql);
    let (code, text) = site(database.url(), "", &[]).run(&["migrate", "--app"]);
    assert_eq!(code, Some(0), "{text}");
    database
}

fn site(url: &str, more: &str, files: &[(&str, &str)]) -> Site {
    // Nothing works beside them: what is kept stays to be looked at.
    let config = format!("roles = \"receive\"\n[database]\nurl = \"{url}\"\n{more}\n{ENDPOINTS}");
    let files = FILES.iter().chain(files);
    files.fold(Site::new(&config), |site, (name, text)| site.file(name, text))
}

/// The headers that sign a body as Stripe does.
pub(crate) fn stripe(body: &[u8], secret: &str, at: Timestamp) -> Vec<(String, String)> {
    signed("stripe", secret, "-", body, at)
}

/// The headers that sign a body as a provider does.
pub(crate) fn signed(
    provider: &str,
    secret: &str,
    id: &str,
    body: &[u8],
    at: Timestamp,
) -> Vec<(String, String)> {
    let secrets = [Secret::new(secret)];
    let verifier = Verifier::new(provider, &Settings::default(), &secrets).expect("good");
    let mut request =
        Request { method: "POST".into(), body: body.to_vec().into(), ..Request::default() };
    verifier.sign(&mut request, id, "a.b", at).expect("signed");
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).expect("ASCII");
    request.headers.iter().map(|(name, value)| (name.to_owned(), text(value))).collect()
}

/// A request as bytes.
pub(crate) fn request(endpoint: &str, headers: &[(String, String)], body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut raw =
        format!("POST /webhooks/{endpoint} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n")
            .into_bytes();
    for (name, value) in headers {
        raw.extend([name.as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    raw.extend(b"\r\n");
    raw.extend(body);
    raw
}

/// Posts a body with these headers, on a connection of its own.
pub(crate) fn post(
    server: &Server,
    endpoint: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> Answer {
    let mut headers = headers.to_vec();
    headers.push(("connection".into(), "close".into()));
    server.raw(&request(endpoint, &headers, body))
}

/// The outcome of a delivery that has to be acknowledged.
pub(crate) fn outcome(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{answer:?}");
    let value: Value = serde_json::from_str(&answer.body).expect("JSON");
    value["outcome"].as_str().expect("an outcome").to_owned()
}

/// Each fact on SQLite and on PostgreSQL.
macro_rules! on_both_engines {
    ($($fact:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $fact() {
                super::$fact(crate::support::World::sqlite("")).await;
            })*
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $fact() {
                super::$fact(crate::support::World::postgres("").await).await;
            })*
        }
    };
}
pub(crate) use on_both_engines;
