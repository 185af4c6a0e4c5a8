//! Workers of the real binary: stopped, killed and frozen in the middle of a handler, their events
//! take effect once.

use std::time::Duration;

use ichido_testkit::{Database, eventually};
use tokio_postgres::Client;

use crate::common::{Server, Site, signed};

const DEADLINE: Duration = Duration::from_secs(30);

/// A migrated database with a ledger, and an async endpoint whose handler books and then sleeps.
struct World {
    site: Site,
    client: Client,
    _database: Database,
}

impl World {
    async fn new(sleep: f64) -> Self {
        let database = Database::fresh("workers").await.expect("a database");
        let config = r#"
            [endpoint.billing]
            provider = "stripe"
            secrets = ["env:SECRET"]
            mode = "async"
            handler_timeout = "3s"
            lease = "4s"
            [endpoint.billing.handlers]
            "invoice.paid" = "paid.sql"
        "#;
        let handler =
            format!("INSERT INTO ledger VALUES (:event_id);\nSELECT pg_sleep({sleep});\n");
        let site = Site::new(config).file("paid.sql", &handler).on(database.url());
        let client = database.client().await.expect("connects");
        client.batch_execute("CREATE TABLE ledger (event_id text)").await.expect("made");
        let (code, text) = site.run(&["migrate"]);
        assert_eq!(code, Some(0), "{text}");
        Self { site, client, _database: database }
    }

    fn serve(&self, roles: &str) -> Server {
        self.site.serve_with(&["--listen", "127.0.0.1:0", "--roles", roles])
    }

    async fn number(&self, sql: &str) -> i64 {
        self.client.query_one(sql, &[]).await.expect("a row").get(0)
    }

    async fn wait(&self, what: &str, sql: &str) {
        let is = async || (self.number(sql).await > 0).then_some(());
        eventually(what, DEADLINE, is).await.expect("in time");
    }

    /// Waits until a handler sleeps in its transaction.
    async fn handler_runs(&self) {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                   AND query LIKE '%pg_sleep%' AND pid <> pg_backend_pid() AND state = 'active'";
        self.wait("a handler runs", sql).await;
    }

    async fn done(&self) {
        self.wait("the event is done", "SELECT count(*) FROM ichido.done").await;
        assert_eq!(self.number("SELECT count(*) FROM ledger").await, 1);
        assert_eq!(self.number("SELECT count(*) FROM ichido.work").await, 0);
        let audit = self.number("SELECT count(*) FROM ichido.audit() WHERE count > 0").await;
        assert_eq!(audit, 0);
    }
}

/// Posts an event; it has to be stored for a worker.
fn post(server: &Server) {
    let body = br#"{"id":"evt_1","object":"event","type":"invoice.paid","created":1760000000}"#;
    let answer = server.raw(&signed(body));
    assert_eq!((answer.status, &*answer.body), (200, r#"{"outcome":"accepted"}"#));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_async_event_is_accepted_and_then_processed() {
    let world = World::new(0.0).await;
    let server = world.serve("receive, work");
    post(&server);
    world.done().await;
    let metrics = server.send("GET", "/metrics", &[], "").body;
    let counted = r#"ichido_attempts_total{endpoint="billing",outcome="processed"} 1"#;
    assert!(metrics.contains(counted), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_receives_and_another_works() {
    let world = World::new(0.0).await;
    let receiver = world.serve("receive");
    post(&receiver);
    assert_eq!(world.number("SELECT count(*) FROM ichido.work").await, 1);
    let worker = world.serve("work");
    world.done().await;
    assert_eq!(worker.raw(&signed(b"{}")).status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_lets_a_running_handler_finish() {
    let world = World::new(1.0).await;
    let mut server = world.serve("receive, work");
    post(&server);
    world.handler_runs().await;
    assert_eq!(server.terminate(), Some(0));
    world.done().await;
    assert_eq!(world.number("SELECT attempts::int8 FROM ichido.done").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_whose_worker_was_killed_in_its_handler_is_done_by_another_once() {
    let world = World::new(1.0).await;
    let mut first = world.serve("receive, work");
    post(&first);
    world.handler_runs().await;
    first.kill();
    // The backend of the dead worker is not what is tried here: it would end by itself.
    let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                 WHERE query LIKE '%pg_sleep%' AND datname = current_database() \
                 AND pid <> pg_backend_pid()";
    world.number(ended).await;
    let _second = world.serve("work");
    world.done().await;
    assert_eq!(world.number("SELECT attempts::int8 FROM ichido.done").await, 2);
    let error = "SELECT count(*) FROM ichido.attempt WHERE error LIKE '%lease ran out%'";
    assert_eq!(world.number(error).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_frozen_past_its_lease_has_one_effect_beside_another() {
    let world = World::new(1.0).await;
    let frozen = world.serve("receive, work");
    post(&frozen);
    world.handler_runs().await;
    frozen.signal("STOP");
    let _second = world.serve("work");
    world.done().await;
    frozen.signal("CONT");
    // It answers again, and whatever it still had to say changed nothing.
    assert_eq!(frozen.send("GET", "/livez", &[], "").status, 200);
    world.done().await;
}

#[test]
fn on_a_file_one_process_receives_and_works() {
    let config = r#"
        database.url = "sqlite:inbox.db"
        [app.schema]
        sqlite = "schema.sql"
        [endpoint.billing]
        provider = "stripe"
        secrets = ["env:SECRET"]
        mode = "async"
        [endpoint.billing.handlers]
        "invoice.paid" = "paid.sql"
    "#;
    let site = Site::new(config)
        .file("schema.sql", "CREATE TABLE IF NOT EXISTS ledger (event_id text)")
        .file("paid.sql", "INSERT INTO ledger VALUES (:event_id)");
    let mut server = site.serve();
    post(&server);
    let metrics = || server.send("GET", "/metrics", &[], "").body;
    let counted = r#"ichido_attempts_total{endpoint="billing",outcome="processed"} 1"#;
    let end = std::time::Instant::now() + DEADLINE;
    while !metrics().contains(counted) {
        assert!(std::time::Instant::now() < end, "{}", server.log());
        std::thread::yield_now();
    }
    assert_eq!(server.terminate(), Some(0));
    let file = rusqlite::Connection::open(site.path().join("inbox.db")).expect("opens");
    let booked: i64 =
        file.query_row("SELECT count(*) FROM ledger", [], |row| row.get(0)).expect("a row");
    assert_eq!(booked, 1);
}
