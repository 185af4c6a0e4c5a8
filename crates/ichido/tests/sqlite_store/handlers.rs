//! Handlers that fail, take long, or break the transaction: each answers for itself alone.

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
    BoxError, ErrorKind, Event, Inbox, OnFailure, Outcome, ReceiveError, Taken,
    sqlite::{Sqlite, Tx},
    verify::Timestamp,
};
use rusqlite::Connection;

use crate::{Billing, PARENT_AND_CHILD, book, config, count, deliver, open, signed, sql};

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

const FOREVER: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";

/// Delivers ids at once, so that they share transactions; `bad_...` are of a type of their own.
async fn deliver_all(inbox: &Inbox<Sqlite>) -> Vec<(String, Result<Taken, ReceiveError>)> {
    let ids: Vec<_> =
        (0..30).map(|n| format!("{}_{n}", if n % 15 == 5 { "bad" } else { "good" })).collect();
    let all = futures_util::future::join_all(ids.iter().map(|id| deliver(inbox, id))).await;
    ids.into_iter().zip(all).collect()
}

/// The bad ones are kept for that reason, everyone else is processed, and nothing is left over.
fn only_the_bad_are_kept(all: &[(String, Result<Taken, ReceiveError>)], why: &str, at: &Path) {
    for (id, taken) in all {
        let taken = taken.as_ref().unwrap();
        if id.starts_with("bad") {
            assert_eq!(taken.outcome, Outcome::Accepted, "{id}");
            assert!(taken.error.as_deref().unwrap().contains(why), "{taken:?}");
        } else {
            assert_eq!(taken.outcome, Outcome::Processed, "{id}");
        }
    }
    assert_eq!(count(at, "ledger"), 28);
    assert_eq!(count(at, "ichido_done"), 28);
    assert_eq!(count(at, "ichido_work"), 2);
    assert_eq!(count(at, "ichido_attempt"), 2);
}

#[tokio::test]
async fn a_writing_statement_that_takes_too_long_is_kept_and_its_neighbours_are_done() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "INSERT INTO ledger VALUES (:event_id);
         INSERT INTO ledger {FOREVER} SELECT i FROM n WHERE :event_id LIKE 'bad%'"
    );
    let inbox = open(config(folder.path()), |e| e.on_sql("*", sql(&text))).await;
    let all = deliver_all(&inbox).await;
    only_the_bad_are_kept(&all, "handler_timeout", folder.path());
}

#[tokio::test]
async fn a_deferred_constraint_left_broken_is_its_own_handlers_failure_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = "INSERT INTO ledger VALUES (:event_id);
                INSERT INTO child SELECT 1 WHERE :event_id LIKE 'bad%'";
    let inbox = open(config(folder.path()), |e| e.on_sql("*", sql(text))).await;
    inbox.store().apply(PARENT_AND_CHILD).await.unwrap();
    let all = deliver_all(&inbox).await;
    only_the_bad_are_kept(&all, "FOREIGN KEY", folder.path());
}

/// Books, rolls everything back, and goes on as if nothing were.
fn roll_back(tx: &mut Tx<'_>, event: &Event) -> Result<(), BoxError> {
    book(tx, event)?;
    if event.id.starts_with("bad") {
        tx.execute_batch("CREATE TABLE t (n UNIQUE)")?;
        drop(tx.execute_batch("INSERT INTO t VALUES (1); INSERT OR ROLLBACK INTO t VALUES (1)"));
        // Would be a commit of its own, now that there is no transaction.
        drop(book(tx, event));
    }
    Ok(())
}

#[tokio::test]
async fn a_handler_that_rolls_everything_back_is_kept_and_its_neighbours_are_done() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = open(config(folder.path()), |e| e.on("*", roll_back)).await;
    only_the_bad_are_kept(&deliver_all(&inbox).await, "rolled the whole", folder.path());
}

#[tokio::test]
async fn where_failures_are_refused_a_lost_transaction_refuses_its_own_event_alone() {
    let folder = tempfile::tempdir().unwrap();
    let change = |e: Billing| e.on_failure(OnFailure::Refuse).on("*", roll_back);
    let inbox = open(config(folder.path()), change).await;
    for (id, taken) in deliver_all(&inbox).await {
        match taken {
            Ok(taken) => assert_eq!((taken.outcome, &id[..4]), (Outcome::Processed, "good")),
            Err(ReceiveError::Store(error)) => {
                assert_eq!((error.kind(), &id[..3]), (ErrorKind::Handler, "bad"));
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(count(folder.path(), "ledger"), 28);
    assert_eq!(count(folder.path(), "ichido_event"), 28);
}

#[tokio::test]
async fn a_handler_on_trial_cannot_commit_either() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = open(config(folder.path()), |e| e.on("*", book)).await;
    let event = ichido::verify::vouch("evt_1", "x", Bytes::from_static(b"{}"), None).unwrap();
    assert_eq!(inbox.vouch("billing", event).await.unwrap().outcome, Outcome::Processed);
    let mut file = Connection::open(folder.path().join("i.db")).unwrap();
    let request = signed(&inbox, "evt_2", 0);
    let verified = inbox.verify("billing", request, Timestamp::now()).unwrap();
    let ichido::Verified::Delivery(intake) = verified else { panic!("a delivery") };
    let commits = |tx: &mut Tx<'_>, event: &Event| {
        book(tx, event)?;
        tx.execute_batch("COMMIT")
    };
    let look = |_: &Connection| -> Result<(), BoxError> { panic!("it failed before") };
    let tried = ichido::sqlite::testing::try_handler(&mut file, &commits, &intake.event(0), look);
    assert!(tried.unwrap_err().to_string().contains("not authorized"));
    assert_eq!(count(folder.path(), "ledger"), 1);
    // The connection is the user's own again.
    file.execute_batch("BEGIN; COMMIT").unwrap();
}
