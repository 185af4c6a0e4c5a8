//! Order by key under a storm: many writers and workers, leases that run out, handlers that fail
//! and workers that die; and a worker of another kind that forgets to move the line.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use ichido::{
    Claim, Endpoint, Fault, Inbox, Lane, Mode, OrderByKey, Received, SqlHandler, Store, Then,
    Worked,
    postgres::{Config, Postgres, Run},
};
use ichido_testkit::eventually;

use crate::support::{Db, signed_body};

const DEADLINE: Duration = Duration::from_secs(40);
const LIMIT: Duration = Duration::from_secs(5);
const KEYS: usize = 40;
const WRITERS: usize = 12;
const EACH: usize = 60;
const WORKERS: usize = 32;

fn ordered(db: &Db) -> Inbox<Postgres> {
    let mut config = Config::new(db.database.url()).unwrap();
    config.work_connections = WORKERS + 2;
    let endpoint: Endpoint<Postgres> = Endpoint::new("billing", "stripe");
    let endpoint = endpoint.secret("whsec_x").mode(Mode::Async);
    let endpoint = endpoint.on_sql("*", SqlHandler::parse("none", "SELECT 1").unwrap());
    let endpoint = endpoint.order_by_key(OrderByKey::Block).max_attempts(1000);
    Inbox::new(Postgres::connect_lazy(&config).unwrap(), [endpoint]).unwrap()
}

async fn put(inbox: &Inbox<Postgres>, id: &str, key: &str) {
    let body = format!(
        r#"{{"id":"{id}","object":"event","type":"invoice.paid",
            "data":{{"object":{{"id":"{key}"}}}}}}"#
    );
    let received = inbox.receive("billing", signed_body(inbox, id, body)).await.unwrap();
    assert!(matches!(received, Received::Events(_)));
}

/// Works until everything is written and done, and dies, fails or dawdles now and then.
async fn work(
    inbox: Inbox<Postgres>,
    handler: Arc<dyn Run>,
    written: Arc<AtomicBool>,
    until: Instant,
) -> usize {
    let (queues, lanes) = (["billing".into()], [Lane::Retry, Lane::Fresh]);
    let mut done = 0;
    while Instant::now() < until {
        let lease = Duration::from_millis(15);
        let claim = Claim { queues: &queues, lanes: &lanes, most: 2, lease };
        let store = inbox.store();
        let claimed = store.claim(&claim).await.unwrap();
        if claimed.is_empty() && written.load(Ordering::Acquire) {
            let stats = store.stats().await.unwrap();
            if stats.unprocessed == 0 {
                break;
            }
        }
        for claimed in claimed {
            match fastrand::u32(..10) {
                // Dies before its handler starts.
                0 => {}
                // Dies within it.
                1 => {
                    let work = store.process(&claimed, &handler, LIMIT);
                    let short = Duration::from_micros(fastrand::u64(..20_000));
                    drop(tokio::time::timeout(short, work).await);
                }
                2 => {
                    let soon = Fault { text: "no".into(), then: Then::Later(Duration::ZERO) };
                    store.fail(&claimed, &soon).await.unwrap();
                }
                _ => {
                    let worked = store.process(&claimed, &handler, LIMIT).await;
                    done += usize::from(matches!(worked, Ok(Worked::Processed)));
                }
            }
        }
    }
    done
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_a_storm_no_event_overtakes_another_of_its_key_and_no_key_gets_stuck() {
    let db = Db::new().await;
    // What the order is, written down as places are given; and what came of it.
    let watch = "CREATE TABLE line (id uuid PRIMARY KEY, key text, seq bigint);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
          'BEGIN INSERT INTO public.line VALUES (NEW.id, NEW.order_key, NEW.order_seq);
                 RETURN NEW; END';
        CREATE TRIGGER note AFTER INSERT ON ichido.work FOR EACH ROW EXECUTE FUNCTION note();
        CREATE SEQUENCE step;
        CREATE TABLE trail (event_id text PRIMARY KEY, n bigint)";
    db.client.batch_execute(watch).await.unwrap();
    let inbox = ordered(&db);
    let sql = "SELECT pg_sleep(random() * 0.003);
               INSERT INTO trail VALUES (:event_id, nextval('step'))";
    let handler: Arc<dyn Run> = Arc::new(SqlHandler::parse("storm", sql).unwrap());
    // Each on its own connections, and no faster than the workers: lines that run empty just as
    // an event comes are where it would go wrong.
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let inbox = ordered(&db);
        writers.spawn(async move {
            for n in 0..EACH {
                tokio::time::sleep(Duration::from_micros(fastrand::u64(..30_000))).await;
                put(&inbox, &format!("evt_{writer}_{n}"), &format!("in_{}", n % KEYS)).await;
            }
        });
    }
    let written = Arc::new(AtomicBool::new(false));
    let until = Instant::now() + DEADLINE;
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| tokio::spawn(work(inbox.clone(), handler.clone(), written.clone(), until)))
        .collect();
    writers.join_all().await;
    written.store(true, Ordering::Release);
    let mut done = 0;
    for worker in workers {
        done += worker.await.unwrap();
    }
    assert!(done > WRITERS * EACH / 2, "{done} were done");
    assert_eq!(db.count("trail").await, i64::try_from(WRITERS * EACH).unwrap());
    let overtaken = "(SELECT t.n < lag(t.n) OVER (PARTITION BY l.key ORDER BY l.seq) AS early
        FROM line l JOIN ichido.event e USING (id) JOIN trail t USING (event_id)) o WHERE early";
    assert_eq!(db.count(overtaken).await, 0);
    assert_eq!(inbox.store().audit().await.unwrap(), []);
}

#[tokio::test]
async fn a_line_that_nobody_moved_goes_on_after_a_sweep() {
    let db = Db::new().await;
    let inbox = ordered(&db);
    for id in ["evt_1", "evt_2"] {
        put(&inbox, id, "in_1").await;
    }
    // A worker in another language that tells the guard no event.
    let done = "DO $$ DECLARE v record; x text; BEGIN
          SELECT * INTO v FROM ichido.claim('{billing}', '{fresh}', 1, '1 min');
          SELECT xid INTO x FROM ichido.start(v.receipt, v.lease);
          PERFORM ichido.sound(x); END $$";
    db.client.batch_execute(done).await.unwrap();
    let found = inbox.store().audit().await.unwrap();
    assert!(found.iter().any(|finding| finding.invariant == "line_without_head"), "{found:?}");
    assert_eq!(inbox.store().sweep().await.unwrap(), 1);
    assert_eq!(db.count("ichido.work WHERE next_at IS NOT NULL").await, 1);
    assert_eq!(inbox.store().sweep().await.unwrap(), 0);
}

#[tokio::test]
async fn where_order_is_asked_for_no_more_nothing_waits_for_its_turn() {
    let db = Db::new().await;
    let inbox = ordered(&db);
    for id in ["evt_1", "evt_2", "evt_3"] {
        put(&inbox, id, "in_1").await;
    }
    let unordered = db.inbox(|endpoint| {
        let handler = SqlHandler::parse("book", "INSERT INTO ledger VALUES (:event_id, 1)");
        endpoint.mode(Mode::Async).on_sql("*", handler.unwrap())
    });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = tokio::spawn(unordered.worker().run(async {
        drop(stopped.await);
    }));
    let all = async || (db.count("ledger").await == 3).then_some(());
    eventually("all three are booked", DEADLINE, all).await.unwrap();
    drop(stop);
    worker.await.unwrap();
}

#[tokio::test]
async fn a_human_moves_the_line_that_an_event_in_review_blocked() {
    let db = Db::new().await;
    let inbox = ordered(&db);
    for id in ["evt_1", "evt_2", "evt_3"] {
        put(&inbox, id, "in_1").await;
    }
    let head = "SELECT e.event_id FROM ichido.work w JOIN ichido.event e USING (id)
                 WHERE w.next_at IS NOT NULL";
    let head = async || db.client.query_one(head, &[]).await.unwrap().get::<_, String>(0);
    let fail = "SELECT ichido.fail(c.receipt, c.lease, 'no', NULL, true)
        FROM ichido.claim('{billing}', '{fresh,retry}', 1, '1 min') c";
    db.client.batch_execute(fail).await.unwrap();
    assert_eq!(db.count("ichido.work WHERE next_at IS NOT NULL").await, 0);
    let requeue = "SELECT ichido.requeue(id) FROM ichido.review";
    db.client.batch_execute(requeue).await.unwrap();
    assert_eq!(head().await, "evt_1");
    db.client.batch_execute(fail).await.unwrap();
    let discard = "SELECT ichido.discard(id, 'a test event') FROM ichido.review";
    db.client.batch_execute(discard).await.unwrap();
    assert_eq!(head().await, "evt_2");
    assert_eq!(inbox.store().audit().await.unwrap(), []);
}
