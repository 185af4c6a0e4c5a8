//! Rule 10: a client that hangs up, at any point and in any way, cancels nothing half-way. Its
//! event is there with its effect, or not there at all, and no transaction stays open.

use std::time::Duration;

use ichido_testkit::eventually;
use ichido_verify::Timestamp;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    common::SECRET,
    support::{World, on_both_engines, outcome, request, stripe},
};

const DEADLINE: Duration = Duration::from_secs(20);

/// A sync endpoint and an async one, with the outcome of a first delivery at each.
const ENDPOINTS: [(&str, &str); 2] = [("billing", "processed"), ("later", "accepted")];

/// How a client leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leave {
    /// It closes.
    Close,
    /// It says that it has sent all, then closes.
    HalfClose,
    /// It is gone without a word.
    Reset,
    /// It closes when the answer begins, and reads no more of it.
    InAnswer,
}

fn event(id: &str) -> String {
    format!(r#"{{"id":"{id}","type":"a.b","card":"{id}"}}"#)
}

/// A signed request of event `id`.
fn delivery(endpoint: &str, id: &str) -> Vec<u8> {
    let body = event(id);
    request(endpoint, &stripe(body.as_bytes(), SECRET, Timestamp::now()), body.as_bytes())
}

async fn send_and_leave(world: &World, bytes: &[u8], leave: Leave) {
    let mut stream = TcpStream::connect(world.server.address).await.expect("connects");
    stream.set_nodelay(true).expect("set");
    stream.write_all(bytes).await.expect("sent");
    match leave {
        Leave::Close => {}
        Leave::HalfClose => stream.shutdown().await.expect("shut"),
        Leave::Reset => stream.set_zero_linger().expect("set"),
        Leave::InAnswer => {
            assert_eq!(stream.read_u8().await.expect("an answer"), b'H');
        }
    }
}

/// Waits until the server has noticed that no client is there but the one who asks.
async fn all_are_gone(world: &World) {
    let alone = async || {
        let metrics = world.metrics();
        metrics.contains("\nichido_http_connections 1\n").then_some(())
    };
    eventually("the server sees that they are gone", DEADLINE, alone).await.expect("in time");
}

/// Waits until all is done, and fails where a transaction stays open.
async fn no_transaction_is_open(world: &World) {
    let Some(database) = &world.database else {
        let file = rusqlite::Connection::open(world.site.path().join("inbox.db")).expect("opens");
        file.busy_timeout(DEADLINE).expect("set");
        return file.execute_batch("BEGIN IMMEDIATE; ROLLBACK").expect("nobody writes");
    };
    let client = database.client().await.expect("connects");
    let idle = async || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                   AND pid <> pg_backend_pid() AND state <> 'idle'";
        let row = client.query_one(sql, &[]).await.expect("a row");
        (row.get::<_, i64>(0) == 0).then_some(())
    };
    eventually("every session is idle, in no transaction", DEADLINE, idle).await.expect("in time");
}

/// How many events are there without their effect, seen at one moment.
async fn halves(world: &World) -> i64 {
    world
        .count(
            "{i}event e WHERE NOT EXISTS (SELECT 1 FROM taken t WHERE t.event_id = e.event_id) \
             AND NOT EXISTS (SELECT 1 FROM {i}work w WHERE w.id = e.id)",
        )
        .await
}

async fn a_client_that_hangs_up_within_its_request_leaves_nothing(world: World) {
    for (endpoint, first) in ENDPOINTS {
        let id = format!("evt_{endpoint}");
        let whole = delivery(endpoint, &id);
        let head = whole.len() - event(&id).len();
        let points = [1, 10, head - 2, head, head + 1, whole.len() - 20, whole.len() - 1];
        for leave in [Leave::Close, Leave::HalfClose, Leave::Reset] {
            for point in points {
                send_and_leave(&world, &whole[..point], leave).await;
            }
        }
        all_are_gone(&world).await;
        for table in ["{i}event", "{i}delivery", "taken"] {
            let sql = format!("{table} WHERE 1 = 1");
            let before = i64::from(endpoint == "later");
            assert_eq!(world.count(&sql).await, before, "{endpoint}: {table}");
        }
        no_transaction_is_open(&world).await;
        assert_eq!(outcome(&world.post(endpoint, event(&id))), first, "the retry is no duplicate");
    }
    world.audit();
}

async fn a_client_that_hangs_up_after_its_request_is_served_whole_or_not_at_all(world: World) {
    const ROUNDS: usize = 8;
    let leaves = [Leave::Close, Leave::HalfClose, Leave::Reset, Leave::InAnswer];
    let mut sent = Vec::new();
    for round in 0..ROUNDS {
        for leave in leaves {
            for (endpoint, first) in ENDPOINTS {
                let id = format!("evt_{round}_{leave:?}_{endpoint}");
                send_and_leave(&world, &delivery(endpoint, &id), leave).await;
                assert_eq!(halves(&world).await, 0, "{id}");
                sent.push((id, endpoint, first, leave));
            }
        }
    }
    all_are_gone(&world).await;
    no_transaction_is_open(&world).await;
    for (id, endpoint, first, leave) in &sent {
        let retry = outcome(&world.post(endpoint, event(id)));
        // Answered is stored. Else either, and the retry completes what is missing.
        let good = retry == "duplicate" || (*leave != Leave::InAnswer && retry == *first);
        assert!(good, "{id}: {retry}");
    }
    let events = i64::try_from(sent.len()).expect("few");
    assert_eq!(world.count("{i}event").await, events);
    assert_eq!(world.count("{i}delivery").await, events);
    assert_eq!(world.count("taken").await, events / 2, "one effect each");
    assert_eq!(world.count("{i}work").await, events / 2);
    assert_eq!(halves(&world).await, 0);
    world.audit();
}

/// Where a receive stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its receipt is being written; the handler is still to come.
    Receipt,
    /// Its handler runs.
    Handler,
}

/// Makes receipts wait as long as there is a row in `gate`, as a slow disk would.
const GATE: &str = "CREATE TABLE IF NOT EXISTS gate (closed boolean); \
     CREATE OR REPLACE FUNCTION wait_at_the_gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
       WHILE EXISTS (SELECT FROM public.gate) LOOP PERFORM pg_sleep(0.005); END LOOP; \
       RETURN NEW; END $$; \
     CREATE OR REPLACE TRIGGER gate BEFORE INSERT ON ichido.event \
       FOR EACH ROW EXECUTE FUNCTION wait_at_the_gate(); \
     INSERT INTO gate VALUES (true)";

/// Holds what a receive needs: on PostgreSQL the gate, or the card that its handler inserts; on
/// SQLite the one place of a writer.
enum Held {
    Postgres(tokio_postgres::Client, Stage),
    Sqlite(rusqlite::Connection),
}

impl Held {
    async fn new(world: &World, stage: Stage, card: &str) -> Self {
        let Some(database) = &world.database else {
            let file = world.site.path().join("inbox.db");
            let file = rusqlite::Connection::open(file).expect("opens");
            file.busy_timeout(DEADLINE).expect("set");
            file.execute_batch("BEGIN IMMEDIATE").expect("begun");
            return Self::Sqlite(file);
        };
        let client = database.client().await.expect("connects");
        let sql = match stage {
            Stage::Receipt => GATE.to_owned(),
            Stage::Handler => format!("BEGIN; INSERT INTO cards VALUES ('{card}')"),
        };
        client.batch_execute(&sql).await.expect(&sql);
        Self::Postgres(client, stage)
    }

    /// Waits until a receive stands still, on PostgreSQL in a statement that is so old.
    async fn wait_for_one(world: &World, old: &str) {
        // Not the connection that holds: within a transaction the activity never changes.
        let watcher = match &world.database {
            Some(database) => Some(database.client().await.expect("connects")),
            None => None,
        };
        let stands = async || match &watcher {
            Some(watcher) => {
                let sql = format!(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                     AND (wait_event_type = 'Lock' OR wait_event = 'PgSleep') \
                     AND clock_timestamp() - query_start > '{old}'"
                );
                let row = watcher.query_one(&sql, &[]).await.expect("a row");
                (row.get::<_, i64>(0) > 0).then_some(())
            }
            // The one that asks, and the one that stands.
            None => world.metrics().contains("\nichido_http_in_flight 2\n").then_some(()),
        };
        let stands = eventually("a receive stands still", DEADLINE, stands).await;
        stands.unwrap_or_else(|error| panic!("{error}, old {old}:\n{}", world.server.log()));
    }

    async fn release(self) {
        match self {
            Self::Postgres(client, Stage::Receipt) => {
                client.batch_execute("DELETE FROM gate").await.expect("opened");
            }
            Self::Postgres(client, Stage::Handler) => {
                client.batch_execute("ROLLBACK").await.expect("rolled back");
            }
            Self::Sqlite(file) => file.execute_batch("ROLLBACK").expect("rolled back"),
        }
    }
}

async fn cancels_nothing(world: &World, stage: Stage) {
    // In a transaction that others may share, and after it was given up for one of its own.
    let (shared, own) = ("0 ms", "500 ms");
    for (leave, old) in
        [(Leave::Close, shared), (Leave::HalfClose, own), (Leave::Reset, own), (Leave::Close, own)]
    {
        let id = format!("evt_{leave:?}_{}", old.len());
        let before = world.count("cards").await;
        let held = Held::new(world, stage, &id).await;
        let mut stream = TcpStream::connect(world.server.address).await.expect("connects");
        stream.write_all(&delivery("cards", &id)).await.expect("sent");
        Held::wait_for_one(world, old).await;
        match leave {
            Leave::HalfClose => stream.shutdown().await.expect("shut"),
            Leave::Reset => stream.set_zero_linger().expect("set"),
            _ => {}
        }
        drop(stream);
        all_are_gone(world).await;
        assert_eq!(world.count("cards").await, before, "{id}: too early");
        held.release().await;
        let there = async || (world.count("cards").await == before + 1).then_some(());
        eventually("the effect is there", DEADLINE, there).await.expect(&id);
        assert_eq!(outcome(&world.post("cards", event(&id))), "duplicate", "{id}");
        no_transaction_is_open(world).await;
        assert_eq!(world.count("cards").await, before + 1, "{id}");
        assert_eq!(world.count(&format!("{{i}}event WHERE event_id = '{id}'")).await, 1);
    }
    assert_eq!(world.count("{i}work").await, 0, "none was kept as failed");
    world.audit();
}

async fn a_client_that_hangs_up_while_its_receipt_is_written_cancels_nothing(world: World) {
    cancels_nothing(&world, Stage::Receipt).await;
}

async fn a_client_that_hangs_up_while_its_handler_runs_cancels_nothing(world: World) {
    cancels_nothing(&world, Stage::Handler).await;
}

on_both_engines! {
    a_client_that_hangs_up_within_its_request_leaves_nothing,
    a_client_that_hangs_up_after_its_request_is_served_whole_or_not_at_all,
    a_client_that_hangs_up_while_its_receipt_is_written_cancels_nothing,
    a_client_that_hangs_up_while_its_handler_runs_cancels_nothing,
}
