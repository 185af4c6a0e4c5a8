//! What is SQLite's own: one writer, one process, handlers that cannot leave their transaction.
//! The promise itself is in the conformance suite.
#![expect(clippy::unwrap_used, reason = "a test fails where its set-up fails")]

use std::{
    path::Path,
    sync::{
        Arc, Barrier,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use ichido::{
    BoxError, Endpoint, ErrorKind, Event, Inbox, Mode, Outcome, ReceiveError, Received, Taken,
    sqlite::{Config, Sqlite, Tx},
    verify::{Headers, Request, Timestamp},
};
use rusqlite::Connection;

type Billing = Endpoint<Sqlite>;

fn config(folder: &Path) -> Config {
    Config::new(folder.join("i.db"))
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

#[tokio::test]
async fn a_handler_cannot_leave_its_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let tries = [
        "COMMIT",
        "ROLLBACK",
        "BEGIN",
        "SAVEPOINT x",
        "RELEASE ichido_handler",
        "ATTACH 'other.db' AS other",
        "PRAGMA synchronous = off",
    ];
    let inbox = open(config(folder.path()), |e| {
        e.on("*", move |tx: &mut Tx<'_>, event: &Event| -> Result<(), BoxError> {
            book(tx, event)?;
            let number: usize = event.id.parse()?;
            tx.execute_batch(tries[number])?;
            Ok(())
        })
    })
    .await;
    for (number, statement) in tries.iter().enumerate() {
        let taken = deliver(&inbox, &number.to_string()).await.unwrap();
        assert_eq!(taken.outcome, Outcome::Accepted, "{statement}");
        assert!(taken.error.unwrap().contains("not authorized"), "{statement}");
    }
    assert_eq!(count(folder.path(), "ledger"), 0);
}

#[tokio::test]
async fn a_handler_that_panics_is_kept_and_the_writer_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = open(config(folder.path()), |e| {
        e.on("*", |tx: &mut Tx<'_>, event: &Event| {
            book(tx, event)?;
            assert_ne!(event.id, "bad", "on purpose");
            Ok::<_, rusqlite::Error>(())
        })
    })
    .await;
    let taken = deliver(&inbox, "bad").await.unwrap();
    assert_eq!(taken.outcome, Outcome::Accepted);
    assert!(taken.error.unwrap().contains("on purpose"));
    assert_eq!(deliver(&inbox, "good").await.unwrap().outcome, Outcome::Processed);
    assert_eq!(count(folder.path(), "ledger"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_a_handler_that_holds_the_writer_others_are_busy_in_time_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (held, ours) = (Arc::new(Barrier::new(2)), Arc::new(AtomicU32::new(0)));
    let (inside, runs) = (held.clone(), ours.clone());
    let mut config = config(folder.path());
    config.receive_wait = Duration::from_millis(500);
    let inbox = open(config, |e| {
        e.on("*", move |tx: &mut Tx<'_>, event: &Event| {
            runs.fetch_add(1, Ordering::SeqCst);
            if event.id == "slow" {
                inside.wait();
                inside.wait();
            }
            book(tx, event)
        })
    })
    .await;
    let slow = tokio::spawn({
        let inbox = inbox.clone();
        async move { deliver(&inbox, "slow").await }
    });
    let enter = held.clone();
    tokio::task::spawn_blocking(move || enter.wait()).await.unwrap();
    let busy = deliver(&inbox, "quick").await;
    let Err(ReceiveError::Store(error)) = busy else { panic!("{busy:?}") };
    assert_eq!(error.kind(), ErrorKind::Busy);
    tokio::task::spawn_blocking(move || held.wait()).await.unwrap();
    assert_eq!(slow.await.unwrap().unwrap().outcome, Outcome::Processed);
    // The one that was refused was not run behind the sender's back; its retry is.
    assert_eq!(deliver(&inbox, "quick").await.unwrap().outcome, Outcome::Processed);
    assert_eq!((ours.load(Ordering::SeqCst), count(folder.path(), "ledger")), (2, 2));
}

#[tokio::test]
async fn a_handler_that_rolls_everything_back_is_refused_alone() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = open(config(folder.path()), |e| {
        e.on("*", |tx: &mut Tx<'_>, event: &Event| -> Result<(), BoxError> {
            book(tx, event)?;
            if event.id.starts_with("bad") {
                tx.execute_batch("CREATE TABLE t (n UNIQUE)")?;
                let undo = "INSERT INTO t VALUES (1); INSERT OR ROLLBACK INTO t VALUES (1)";
                drop(tx.execute_batch(undo));
                // Would be a commit of its own, now that there is no transaction.
                drop(book(tx, event));
            }
            Ok(())
        })
    })
    .await;
    let ids: Vec<_> =
        (0..30).map(|n| format!("{}_{n}", if n % 10 == 5 { "bad" } else { "good" })).collect();
    let all = futures_util::future::join_all(ids.iter().map(|id| deliver(&inbox, id))).await;
    for (id, taken) in ids.iter().zip(all) {
        assert_eq!(taken.is_ok(), id.starts_with("good"), "{id}: {taken:?}");
    }
    assert_eq!(count(folder.path(), "ledger"), 27);
    assert_eq!(count(folder.path(), "ichido_event"), 27);
}

#[tokio::test]
async fn a_second_receiver_on_the_file_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let _first = open(config(folder.path()), |e| e).await;
    let refused = Sqlite::open(config(folder.path())).unwrap_err().to_string();
    let holder = format!("process {}", std::process::id());
    assert!(refused.contains("i.db") && refused.contains(&holder), "{refused}");
}

#[tokio::test]
async fn the_file_opens_again_after_its_receiver_has_gone() {
    use ichido::Store;
    let folder = tempfile::tempdir().unwrap();
    let inbox = open(config(folder.path()), |e| e.on("*", book)).await;
    assert_eq!(deliver(&inbox, "evt_1").await.unwrap().outcome, Outcome::Processed);
    inbox.store().close().await;
    drop(inbox);
    let inbox = open(config(folder.path()), |e| e.on("*", book)).await;
    assert_eq!(deliver(&inbox, "evt_1").await.unwrap().outcome, Outcome::Duplicate);
}

#[tokio::test]
async fn a_full_disk_acknowledges_nothing_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.pages_max = Some(100);
    let inbox = open(config, |e| e.mode(Mode::Async).on("*", book)).await;
    let (mut taken, mut refused) = (0, 0);
    for number in 0..60 {
        match inbox.receive("billing", signed(&inbox, &format!("evt_{number}"), 20_000)).await {
            Ok(_) => taken += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(taken > 0 && refused > 0, "{taken} taken, {refused} refused");
    assert_eq!(count(folder.path(), "ichido_event"), taken);
    assert_eq!(count(folder.path(), "ichido_delivery"), taken);
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(config(folder.path()), |e| e).await);
    let file = Connection::open(folder.path().join("i.db")).unwrap();
    let newer = "INSERT INTO ichido_migration VALUES (999, 'later', x'00', 'now')";
    file.execute(newer, []).unwrap();
    let refused = || Sqlite::open(config(folder.path())).err().map(|e| e.to_string());
    let deadline = Duration::from_secs(5);
    // The first receiver lets go of its lock when its writer has ended.
    let look = || async { refused().filter(|why| why.contains("upgrade")) };
    ichido_testkit::eventually("refused as newer", deadline, look).await.unwrap();
}

#[tokio::test]
async fn statistics_are_read_beside_a_running_receiver() {
    use ichido::Store;
    let folder = tempfile::tempdir().unwrap();
    let inbox = open(config(folder.path()), |e| e.mode(Mode::Async).on("*", book)).await;
    deliver(&inbox, "evt_1").await.unwrap();
    let reader = Sqlite::open_reader(folder.path().join("i.db")).unwrap();
    let stats = reader.stats().await.unwrap();
    assert_eq!(stats.unprocessed, 1);
    assert!(stats.oldest_age_seconds.is_some());
    assert_eq!(stats.received_last_hour.len(), 1);
}

#[tokio::test]
async fn a_handler_can_be_tried_without_leaving_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = open(config(folder.path()), |e| e.on("*", book)).await;
    let request = signed(&inbox, "evt_1", 0);
    let verified = inbox.verify("billing", request, Timestamp::now()).unwrap();
    let ichido::Verified::Delivery(intake) = verified else { panic!("a delivery") };
    let mut file = Connection::open(folder.path().join("i.db")).unwrap();
    let handler = ichido::SqlHandler::parse("h", "INSERT INTO ledger VALUES (:event_id)").unwrap();
    let look = |file: &Connection| -> Result<i64, BoxError> {
        Ok(file.query_row("SELECT count(*) FROM ledger", [], |row| row.get(0))?)
    };
    let seen = ichido::sqlite::testing::try_handler(&mut file, &handler, &intake.event(0), look);
    assert_eq!(seen.unwrap(), 1);
    assert_eq!(count(folder.path(), "ledger"), 0);
}
