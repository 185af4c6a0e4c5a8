//! The billing example as it stands, served by the real binary, over HTTP, on both engines.

use std::thread;

use ichido_testkit::Database;
use serde_json::{Value, json};

use crate::common::{Server, Site, signed};

/// The example on a database of its own, with the servers that share it.
struct World {
    site: Site,
    servers: Vec<Server>,
    /// `None`: a file.
    database: Option<Database>,
}

impl World {
    fn sqlite() -> Self {
        Self::start(None, 1)
    }

    /// Two servers that share one database.
    async fn postgres() -> Self {
        Self::start(Some(Database::fresh("billing").await.expect("a database")), 2)
    }

    fn start(database: Option<Database>, servers: usize) -> Self {
        let site = Site::billing(database.as_ref().map(|database| database.url().to_owned()));
        if database.is_some() {
            let (code, text) = site.run(&["migrate", "--app"]);
            assert_eq!(code, Some(0), "{text}");
        }
        let servers = (0..servers).map(|_| site.serve()).collect();
        Self { site, servers, database }
    }

    /// The file, to look into it.
    fn file(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.site.path().join("billing.db")).expect("opens")
    }

    /// Posts a body, signed, to one of the servers; gives status and body.
    fn post(&self, server: usize, body: &[u8]) -> (u16, String) {
        let raw = signed(body);
        let answer = self.servers[server % self.servers.len()].raw(&raw);
        (answer.status, answer.body)
    }

    /// Posts an invoice event; it has to be answered 200. Gives the outcome.
    fn take(&self, event_type: &str, id: &str, invoice: &str) -> String {
        let (status, body) = self.post(0, event(event_type, id, invoice).to_string().as_bytes());
        assert_eq!(status, 200, "{body}");
        outcome(&body)
    }

    /// A number from the tables. `{i}` is what the inbox's tables begin with.
    async fn count(&self, from: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {from}");
        match &self.database {
            None => {
                let sql = sql.replace("{i}outbox", "outbox").replace("{i}", "ichido_");
                let database = self.file();
                database.query_row(&sql, [], |row| row.get(0)).expect(&sql)
            }
            Some(database) => {
                let client = database.client().await.expect("connects");
                let sql = sql.replace("{i}", "ichido.");
                client.query_one(&sql, &[]).await.expect(&sql).get(0)
            }
        }
    }

    /// The stored bodies, sorted.
    async fn bodies(&self) -> Vec<Vec<u8>> {
        let mut bodies: Vec<Vec<u8>> = match &self.database {
            None => {
                let database = self.file();
                let mut all = database.prepare("SELECT body FROM ichido_delivery").expect("SQL");
                let rows = all.query_map([], |row| row.get(0)).expect("reads");
                rows.map(|body| body.expect("bytes")).collect()
            }
            Some(database) => {
                let client = database.client().await.expect("connects");
                let sql = "SELECT body FROM ichido.delivery";
                let rows = client.query(sql, &[]).await.expect("reads");
                rows.iter().map(|row| row.get(0)).collect()
            }
        };
        bodies.sort();
        bodies
    }

    /// What `stats --json` says.
    fn stats(&self) -> Value {
        let (code, text) = self.site.run(&["stats", "--json"]);
        assert_eq!(code, Some(0), "{text}");
        serde_json::from_str(&text).expect("JSON")
    }

    /// The audit has to hold whatever was done.
    fn audit(&self) {
        let (code, text) = self.site.run(&["audit"]);
        assert_eq!(code, Some(0), "{text}");
    }
}

fn event(event_type: &str, id: &str, invoice: &str) -> Value {
    let object = json!({ "id": invoice, "customer": "cus_1", "amount_paid": 1200 });
    json!({
        "id": id, "type": event_type, "created": 1_767_225_600, "pending_webhooks": 1,
        "data": { "object": object },
    })
}

fn outcome(body: &str) -> String {
    let value: Value = serde_json::from_str(body).expect("JSON");
    value["outcome"].as_str().expect("an outcome").to_owned()
}

async fn eight_deliveries_at_once_are_one_processed_and_seven_duplicates(world: World) {
    let body = event("invoice.paid", "evt_1", "in_1").to_string();
    let mut outcomes = thread::scope(|scope| {
        let send = |server| world.post(server, body.as_bytes());
        let all: Vec<_> = (0..8).map(|n| scope.spawn(move || send(n))).collect();
        let answers = all.into_iter().map(|one| one.join().expect("no panic"));
        answers.map(|(status, body)| (status, outcome(&body))).collect::<Vec<_>>()
    });
    outcomes.sort();
    let duplicate = (200, "duplicate".to_owned());
    let mut must = vec![duplicate; 7];
    must.push((200, "processed".to_owned()));
    assert_eq!(outcomes, must);
    assert_eq!(world.count("ledger_entries WHERE amount = 1200").await, 1);
    assert_eq!(world.count("{i}outbox").await, 1);
    world.audit();
}

async fn paid_may_come_before_created_and_under_two_event_ids(world: World) {
    for (event_type, id) in
        [("invoice.paid", "evt_1"), ("invoice.created", "evt_2"), ("invoice.paid", "evt_3")]
    {
        assert_eq!(world.take(event_type, id, "in_1"), "processed");
    }
    assert_eq!(world.count("invoices WHERE status = 'paid' AND amount_paid = 1200").await, 1);
    assert_eq!((world.count("ledger_entries").await, world.count("{i}outbox").await), (1, 1));
    assert_eq!(world.count("{i}flag").await, 0);
    world.audit();
}

async fn a_payment_for_a_void_invoice_books_nothing_and_raises_a_flag(world: World) {
    for (event_type, id) in
        [("invoice.created", "evt_1"), ("invoice.voided", "evt_2"), ("invoice.paid", "evt_3")]
    {
        assert_eq!(world.take(event_type, id, "in_1"), "processed");
    }
    assert_eq!(world.count("invoices WHERE status = 'void' AND amount_paid = 0").await, 1);
    assert_eq!((world.count("ledger_entries").await, world.count("{i}outbox").await), (0, 0));
    assert_eq!(world.stats()["flags"], 1);
    world.audit();
}

async fn a_retry_is_no_conflict_and_another_amount_is_one(world: World) {
    let mut event = event("invoice.paid", "evt_1", "in_1");
    let mut send = |pointer: &str, value: i64| {
        *event.pointer_mut(pointer).expect("there") = value.into();
        outcome(&world.post(0, event.to_string().as_bytes()).1)
    };
    assert_eq!(send("/pending_webhooks", 3), "processed");
    assert_eq!(send("/pending_webhooks", 2), "duplicate");
    assert_eq!(world.stats()["conflicts"], 0);
    assert_eq!(send("/data/object/amount_paid", 9_900), "duplicate");
    assert_eq!(world.stats()["conflicts"], 1);
    assert_eq!(world.count("ledger_entries WHERE amount = 1200").await, 1);
    world.audit();
}

async fn bodies_that_no_parser_likes_are_stored_and_acknowledged(world: World) {
    let head = r#"{"id":"evt_ID","type":"invoice.paid","data":{"object":{"id":"in_ID","x":"#;
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let values: [&[u8]; 6] = [
        br#""\u0000""#,
        br#""\ud800""#,
        b"12345678901234567890123",
        br#"1,"x":2"#,
        b"\"\xff\xfe\"",
        nested.as_bytes(),
    ];
    let mut bodies: Vec<Vec<u8>> = vec![Vec::new(), b"payload=a&b=%7B".to_vec(), b"[]".to_vec()];
    for (n, value) in values.iter().enumerate() {
        let head = head.replace("ID", &n.to_string());
        bodies.push([head.as_bytes(), value, b"}}}"].concat());
    }
    for (n, body) in bodies.iter().enumerate() {
        let (status, answer) = world.post(n, body);
        assert_eq!(status, 200, "body {n}: {answer}");
    }
    bodies.sort();
    assert_eq!(world.bodies().await, bodies);
    assert_eq!(world.count("{i}event").await, i64::try_from(bodies.len()).expect("few"));
    world.audit();
}

macro_rules! on_both_engines {
    ($($fact:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $fact() {
                super::$fact(super::World::sqlite()).await;
            })*
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $fact() {
                super::$fact(super::World::postgres().await).await;
            })*
        }
    };
}

on_both_engines! {
    eight_deliveries_at_once_are_one_processed_and_seven_duplicates,
    paid_may_come_before_created_and_under_two_event_ids,
    a_payment_for_a_void_invoice_books_nothing_and_raises_a_flag,
    a_retry_is_no_conflict_and_another_amount_is_one,
    bodies_that_no_parser_likes_are_stored_and_acknowledged,
}
