//! What surrounds the inbox in production: other people's locks, poolers, a misconfigured or
//! absent server, callers that hang up.

use std::time::Duration;

use futures_util::{FutureExt, future::join_all};
use ichido::{ErrorKind, Mode, Outcome, ReceiveError, SqlHandler, Store};
use ichido_testkit::{Cluster, Fault, PgBouncer, Proxy, StopMode};

use crate::support::{Billing, Db, deliver, open, signed};

fn book(endpoint: Billing) -> Billing {
    let sql = "INSERT INTO ledger (event_id, amount) VALUES (:event_id, 1)";
    endpoint.on_sql("*", SqlHandler::parse("book", sql).unwrap())
}

#[tokio::test]
async fn somebody_elses_lock_does_not_fail_the_handler_with_the_receipts_lock_timeout() {
    let mut db = Db::new().await;
    db.client.batch_execute("INSERT INTO ledger VALUES ('held', 1)").await.unwrap();
    let sql = SqlHandler::parse("h", "UPDATE ledger SET amount = 2").unwrap();
    let inbox = db.inbox(|e| e.on_sql("*", sql).handler_timeout(Duration::from_millis(6_500)));
    let tx = db.client.transaction().await.unwrap();
    tx.batch_execute("SELECT FROM ledger FOR UPDATE").await.unwrap();
    let delivery = tokio::spawn(async move { deliver(&inbox, "evt_1").await.unwrap() });
    // Longer than the receipt's two seconds: the point of this test.
    tokio::time::sleep(Duration::from_secs(5)).await;
    tx.commit().await.unwrap();
    assert_eq!(delivery.await.unwrap().outcome, Outcome::Processed);
}

/// PostgreSQL signals a cancelled backend twice, and the second signal may meet the next statement.
#[tokio::test]
async fn a_cancellation_that_comes_twice_does_not_lose_what_its_handler_left_behind() {
    let db = Db::new().await;
    let once = "CREATE SEQUENCE cancellation; \
        CREATE FUNCTION cancel_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
          IF nextval('public.cancellation') = 1 THEN \
            RAISE 'again' USING ERRCODE = '57014'; END IF; \
          RETURN NEW; END $$; \
        CREATE TRIGGER cancel_once BEFORE INSERT ON ichido.work \
          FOR EACH ROW EXECUTE FUNCTION cancel_once()";
    db.client.batch_execute(once).await.unwrap();
    let sql = SqlHandler::parse("forever", "SELECT pg_sleep(30)").unwrap();
    let inbox = db.inbox(|e| e.on_sql("*", sql).handler_timeout(Duration::from_millis(200)));
    let taken = deliver(&inbox, "evt_1").await.unwrap();
    assert_eq!(taken.outcome, Outcome::Accepted);
    assert_eq!((db.count("cancellation").await, db.count("ichido.work").await), (1, 1));
}

#[tokio::test]
async fn a_pooler_in_transaction_mode_carries_both_ways_of_receiving() {
    let db = Db::new().await;
    db.client.batch_execute("CREATE TYPE mood AS ENUM ('well')").await.unwrap();
    let bouncer = PgBouncer::start(db.database.url()).await.unwrap();
    let name = db.database.url().rsplit('/').next().unwrap();
    for mode in [Mode::Sync, Mode::Async] {
        // A type that no client knows, in a row that the handler returns.
        let sql = "INSERT INTO ledger (event_id, amount) VALUES (:event_id, 1) \
                   RETURNING 'well'::mood";
        let sql = SqlHandler::parse("book", sql).unwrap();
        let inbox = open(&bouncer.url(name), |e| e.on_sql("*", sql).mode(mode));
        let ids: Vec<_> = (0..200).map(|n| format!("{mode:?}_{n}")).collect();
        let all = join_all(ids.iter().map(|id| deliver(&inbox, id))).await;
        assert!(all.iter().all(Result::is_ok), "{:?}", all.iter().find(|a| a.is_err()));
    }
    assert_eq!((db.count("ledger").await, db.count("ichido.work").await), (200, 200));
}

#[tokio::test]
async fn a_server_that_would_lose_what_it_acknowledged_is_refused_with_the_fix() {
    let db = Db::new().await;
    let name = db.database.url().rsplit('/').next().unwrap().to_owned();
    let off = format!("ALTER DATABASE {name} SET synchronous_commit = off");
    db.client.batch_execute(&off).await.unwrap();
    let inbox = db.inbox(book);
    let refused = inbox.store().check().await.unwrap_err();
    assert!(refused.to_string().contains("set it on"), "{refused}");
    assert!(deliver(&inbox, "evt_1").await.is_err());
    assert_eq!(db.count("ichido.event").await, 0);
}

#[tokio::test]
async fn a_database_without_our_schema_names_the_command_that_makes_it() {
    let database = ichido_testkit::Database::fresh("empty").await.unwrap();
    let refused = open(database.url(), book).store().check().await.unwrap_err();
    assert!(refused.to_string().contains("ichido migrate"), "{refused}");
}

#[tokio::test]
async fn the_first_delivery_after_the_database_returns_is_processed() {
    let db = Db::new().await;
    let proxy = Proxy::start(db.port()).await.unwrap();
    proxy.set(Fault::Down);
    let inbox = open(&db.through(proxy.port()), book);
    let away = deliver(&inbox, "evt_1").await;
    let Err(ReceiveError::Store(error)) = away else { panic!("{away:?}") };
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    proxy.set(Fault::None);
    assert_eq!(deliver(&inbox, "evt_1").await.unwrap().outcome, Outcome::Processed);
}

#[tokio::test]
async fn what_was_acknowledged_survives_an_immediate_stop_of_the_server() {
    let mut cluster = Cluster::start(&[]).await.unwrap();
    let url = cluster.url("postgres");
    let config = ichido::postgres::Config::new(&url).unwrap();
    let mut client = ichido::postgres::connect(&config).await.unwrap();
    ichido::postgres::migrate::migrate(&mut client, &config.schema).await.unwrap();
    client.batch_execute("CREATE TABLE ledger (event_id text, amount int)").await.unwrap();
    let inbox = open(&url, book);
    let ids: Vec<_> = (0..40).map(|n| format!("evt_{n}")).collect();
    let burst = join_all(ids.iter().map(|id| deliver(&inbox, id)));
    let stop = async {
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(30)).await;
        cluster.stop(StopMode::Immediate).unwrap();
    };
    let (answers, ()) = futures_util::future::join(burst, stop).await;
    cluster.run().await.unwrap();
    // A sender goes on until it has its 2xx.
    for (id, answer) in ids.iter().zip(answers) {
        if answer.is_err() {
            let sent = || async { deliver(&inbox, id).await.ok() };
            ichido_testkit::eventually("a 2xx", Duration::from_secs(20), sent).await.unwrap();
        }
    }
    let client = ichido::postgres::connect(&config).await.unwrap();
    let sql = "SELECT count(*), count(DISTINCT event_id) FROM ledger";
    let row = client.query_one(sql, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (40, 40));
}

#[tokio::test]
async fn a_store_that_is_dropped_at_any_await_leaves_no_open_transaction() {
    let db = Db::new().await;
    let inbox = db.inbox(book);
    deliver(&inbox, "warm").await.unwrap();
    for polls in 0..12 {
        let id = format!("evt_{polls}");
        let request = signed(&inbox, &id);
        let now = ichido::verify::Timestamp::now();
        let ichido::Verified::Delivery(intake) = inbox.verify("billing", request, now).unwrap()
        else {
            panic!("a delivery")
        };
        let mut receive = Box::pin(inbox.store().receive(intake));
        for _ in 0..polls {
            if receive.as_mut().now_or_never().is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(receive);
        deliver(&inbox, &id).await.unwrap();
    }
    let idle = || async {
        let open = "pg_stat_activity WHERE state LIKE 'idle in transaction%' \
                    AND datname = current_database()";
        (db.count(open).await == 0).then_some(())
    };
    let deadline = Duration::from_secs(5);
    ichido_testkit::eventually("no open transaction", deadline, idle).await.unwrap();
    assert_eq!(db.count("ledger").await, 13);
    assert!(inbox.store().audit().await.unwrap().is_empty());
}
