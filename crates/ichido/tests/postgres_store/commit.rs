//! COMMIT with the line cut, and a caller's own transaction: never a 2xx without a row, never
//! two effects.

use ichido::{
    ErrorKind, Event, Inbox, Intake, Mode, Outcome, ReceiveError, SqlHandler, Verified,
    postgres::{Postgres, Run, Tx, commit},
    verify::Timestamp,
};
use ichido_testkit::{Fault, Proxy};

use crate::support::{Billing, Db, deliver, open, signed};

fn book(endpoint: Billing) -> Billing {
    let sql = "INSERT INTO ledger (event_id, amount) VALUES (:event_id, 1)";
    endpoint.on_sql("*", SqlHandler::parse("book", sql).unwrap())
}

async fn insert(tx: &mut Tx, event: &Event) -> Result<(), tokio_postgres::Error> {
    tx.execute("INSERT INTO ledger VALUES ($1, 1)", &[&event.id]).await.map(drop)
}

/// The same in Rust: here only the guard and COMMIT are under way when the line is cut.
fn book_in_rust(endpoint: Billing) -> Billing {
    endpoint.on("*", insert)
}

/// Delivers over a line that is cut at COMMIT, twice more over a whole one, and checks that the
/// effect is there once and that no answer was a lie.
async fn cut(fault: Fault, book: fn(Billing) -> Billing) -> Vec<Option<Outcome>> {
    let db = Db::new().await;
    let proxy = Proxy::start(db.port()).await.unwrap();
    let inbox = open(&db.through(proxy.port()), book);
    let mut answers = Vec::new();
    for (id, fault) in [("warm", Fault::None), ("evt_1", fault), ("evt_1", Fault::None)] {
        proxy.set(fault);
        let answer = deliver(&inbox, id).await;
        answers.push(answer.ok().map(|taken| taken.outcome));
        let there = "ledger WHERE event_id = 'evt_1'";
        if id == "evt_1" && answers.last() != Some(&None) {
            assert_eq!(db.count(there).await, 1, "acknowledged and not there: {answers:?}");
        }
    }
    assert_eq!(proxy.cut(), u64::from(fault != Fault::None));
    assert_eq!(db.count("ledger").await, 2);
    assert_eq!(db.count("ichido.done").await, 2);
    answers.split_off(1)
}

#[tokio::test]
async fn a_commit_cut_before_the_server_is_not_acknowledged_and_the_retry_is_processed() {
    for book in [book, book_in_rust] {
        let answers = cut(Fault::CutBeforeCommit, book).await;
        assert_eq!(answers, [None, Some(Outcome::Processed)]);
    }
}

#[tokio::test]
async fn a_commit_cut_after_the_server_is_found_on_a_fresh_connection() {
    for book in [book, book_in_rust] {
        let answers = cut(Fault::CutAfterCommit, book).await;
        // The proxy cuts COMMIT only; asking again goes through.
        assert_eq!(answers, [Some(Outcome::Processed), Some(Outcome::Duplicate)]);
    }
}

fn take(inbox: &Inbox<Postgres>, id: &str) -> Intake<dyn Run> {
    match inbox.verify("billing", signed(inbox, id), Timestamp::now()).unwrap() {
        Verified::Delivery(intake) => intake,
        Verified::Handshake(answer) => panic!("a handshake: {answer:?}"),
    }
}

#[tokio::test]
async fn a_callers_own_transaction_holds_receipt_and_effect() {
    let mut db = Db::new().await;
    let inbox = db.inbox(|e| e);
    let intake = take(&inbox, "evt_1");
    let tx = db.client.transaction().await.unwrap();
    let token = inbox.record(&tx, &intake).await.unwrap().expect("new");
    tx.execute("INSERT INTO ledger VALUES ('evt_1', 1)", &[]).await.unwrap();
    commit(tx, token).await.unwrap();
    assert_eq!((db.count("ledger").await, db.count("ichido.done").await), (1, 1));

    let again = take(&inbox, "evt_1");
    let tx = db.client.transaction().await.unwrap();
    assert!(inbox.record(&tx, &again).await.unwrap().is_none());
}

#[tokio::test]
async fn a_callers_aborted_transaction_does_not_pass_for_committed() {
    let mut db = Db::new().await;
    let inbox = db.inbox(|e| e);
    let intake = take(&inbox, "evt_1");
    let tx = db.client.transaction().await.unwrap();
    let token = inbox.record(&tx, &intake).await.unwrap().expect("new");
    drop(tx.batch_execute("SELECT 1 / 0").await);
    let refused = commit(tx, token).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Handler);
    assert_eq!(db.count("ichido.event").await, 0);
}

#[tokio::test]
async fn an_async_delivery_whose_connection_was_ended_is_sent_again_on_a_fresh_one() {
    let db = Db::new().await;
    let inbox = db.inbox(|e| book(e).mode(Mode::Async));
    assert_eq!(deliver(&inbox, "warm").await.unwrap().outcome, Outcome::Accepted);
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    db.client.query(end, &[]).await.unwrap();
    assert_eq!(deliver(&inbox, "evt_1").await.unwrap().outcome, Outcome::Accepted);
    assert_eq!(db.count("ichido.work").await, 2);
}

#[tokio::test]
async fn an_async_delivery_over_a_line_that_dies_is_never_acknowledged_without_its_row() {
    let db = Db::new().await;
    let proxy = Proxy::start(db.port()).await.unwrap();
    let inbox = open(&db.through(proxy.port()), |e| book(e).mode(Mode::Async));
    assert_eq!(deliver(&inbox, "warm").await.unwrap().outcome, Outcome::Accepted);
    proxy.set(Fault::Down);
    let away = deliver(&inbox, "evt_1").await;
    assert!(matches!(away, Err(ReceiveError::Store(_))), "{away:?}");
    proxy.set(Fault::None);
    assert_eq!(deliver(&inbox, "evt_1").await.unwrap().outcome, Outcome::Accepted);
    assert_eq!(db.count("ichido.work").await, 2);
}
