//! Handlers that break the rules: each is refused or failed, and nothing is acknowledged that is
//! not there.

use ichido::{
    BoxError, Event, OnFailure, Outcome, Permanent, ReceiveError, SqlHandler,
    postgres::{Handle, Tx},
};

use crate::support::{Db, deliver};

const BOOK: &str = "INSERT INTO ledger VALUES ('evt_1', 1)";

async fn commits(tx: &mut Tx, _: &Event) -> Result<(), BoxError> {
    tx.batch_execute(&format!("{BOOK}; COMMIT")).await?;
    Ok(())
}

async fn begins_again(tx: &mut Tx, _: &Event) -> Result<(), BoxError> {
    tx.batch_execute(&format!("ROLLBACK; BEGIN; {BOOK}")).await?;
    Ok(())
}

async fn swallows(tx: &mut Tx, _: &Event) -> Result<(), BoxError> {
    tx.batch_execute(BOOK).await?;
    drop(tx.batch_execute("SELECT 1 / 0").await);
    Ok(())
}

async fn perishable(tx: &mut Tx, _: &Event) -> Result<(), BoxError> {
    tx.batch_execute(&format!("{BOOK}; SET LOCAL synchronous_commit = off")).await?;
    Ok(())
}

async fn panics(tx: &mut Tx, event: &Event) -> Result<(), BoxError> {
    tx.batch_execute(BOOK).await?;
    assert_eq!(event.id, "another", "on purpose");
    Ok(())
}

#[tokio::test]
async fn a_handler_that_commits_is_not_acknowledged_and_a_human_is_told() {
    for on_failure in [OnFailure::Keep, OnFailure::Refuse] {
        let db = Db::new().await;
        let inbox = db.inbox(|e| e.on("*", commits).on_failure(on_failure));
        let refused = deliver(&inbox, "evt_1").await;
        assert!(matches!(refused, Err(ReceiveError::Store(_))), "{refused:?}");
        assert_eq!(db.count("ichido.flag").await, 1, "{on_failure:?}");
    }
}

#[tokio::test]
async fn a_handler_that_begins_again_leaves_nothing_and_is_not_acknowledged() {
    let db = Db::new().await;
    let inbox = db.inbox(|e| e.on("*", begins_again));
    let refused = deliver(&inbox, "evt_1").await;
    assert!(matches!(refused, Err(ReceiveError::Store(_))), "{refused:?}");
    assert_eq!((db.count("ledger").await, db.count("ichido.event").await), (0, 0));
}

#[tokio::test]
async fn a_handler_that_swallows_an_error_is_kept_and_its_writes_are_undone() {
    let db = Db::new().await;
    let taken = deliver(&db.inbox(|e| e.on("*", swallows)), "evt_1").await.unwrap();
    assert_eq!(taken.outcome, Outcome::Accepted);
    assert_eq!((db.count("ledger").await, db.count("ichido.work").await), (0, 1));
}

#[tokio::test]
async fn a_handler_that_turns_durability_off_is_kept_and_its_writes_are_undone() {
    let db = Db::new().await;
    let taken = deliver(&db.inbox(|e| e.on("*", perishable)), "evt_1").await.unwrap();
    assert_eq!(taken.outcome, Outcome::Accepted);
    assert!(taken.error.unwrap().contains("synchronous_commit"));
    assert_eq!((db.count("ledger").await, db.count("ichido.work").await), (0, 1));
}

#[tokio::test]
async fn a_handler_that_panics_is_kept_and_the_inbox_goes_on() {
    let db = Db::new().await;
    let inbox = db.inbox(|e| e.on("*", panics));
    let taken = deliver(&inbox, "evt_1").await.unwrap();
    assert_eq!(taken.outcome, Outcome::Accepted);
    assert!(taken.error.unwrap().contains("on purpose"));
    assert_eq!(db.count("ledger").await, 0);
    assert_eq!(deliver(&inbox, "another").await.unwrap().outcome, Outcome::Processed);
}

const DEFERRED: &str = "CREATE TABLE parent (id text PRIMARY KEY); \
    CREATE TABLE child (id text REFERENCES parent DEFERRABLE INITIALLY DEFERRED)";

#[tokio::test]
async fn a_deferred_constraint_left_broken_is_a_failed_handler() {
    for on_failure in [OnFailure::Keep, OnFailure::Refuse] {
        let db = Db::new().await;
        db.client.batch_execute(DEFERRED).await.unwrap();
        let sql = SqlHandler::parse("h", "INSERT INTO child VALUES (:event_id)").unwrap();
        let inbox = db.inbox(|e| e.on_sql("*", sql).on_failure(on_failure));
        let kept = i64::from(on_failure == OnFailure::Keep);
        assert_eq!(deliver(&inbox, "evt_1").await.is_ok(), kept == 1);
        assert_eq!((db.count("child").await, db.count("ichido.event").await), (0, kept));
    }
}

#[tokio::test]
async fn a_deferred_constraint_that_holds_in_the_end_is_no_failure() {
    let db = Db::new().await;
    db.client.batch_execute(DEFERRED).await.unwrap();
    let text = "INSERT INTO child VALUES (:event_id); INSERT INTO parent VALUES (:event_id)";
    let sql = SqlHandler::parse("h", text).unwrap();
    let taken = deliver(&db.inbox(|e| e.on_sql("*", sql)), "evt_1").await.unwrap();
    assert_eq!(taken.outcome, Outcome::Processed);
}

async fn leaves_a_trail(tx: &mut Tx, event: &Event) -> Result<(), BoxError> {
    let path = tx.query_one("SHOW search_path", &[]).await?.get::<_, String>(0);
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' \
                 AND pid = pg_backend_pid()";
    let locks = tx.query_one(locks, &[]).await?.get::<_, i64>(0);
    let trail = format!("{path} {locks}");
    tx.execute("INSERT INTO seen VALUES ($1, $2)", &[&event.id, &trail]).await?;
    tx.batch_execute("SET search_path = elsewhere; SELECT pg_advisory_lock(7)").await?;
    Ok(())
}

#[tokio::test]
async fn what_a_handler_leaves_in_the_session_does_not_meet_the_next_one() {
    let db = Db::new().await;
    db.client.batch_execute("CREATE TABLE public.seen (event_id text, path text)").await.unwrap();
    let inbox = db.inbox(|e| e.on("*", leaves_a_trail));
    for n in 0..20 {
        let taken = deliver(&inbox, &format!("evt_{n}")).await.unwrap();
        assert_eq!(taken.outcome, Outcome::Processed, "{:?}", taken.error);
    }
    let sql = "SELECT count(DISTINCT path), count(*) FROM seen";
    let row = db.client.query_one(sql, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1, 20));
}

struct Book {
    amount: i32,
}

impl Handle for Book {
    async fn handle(&self, tx: &mut Tx, event: &Event) -> Result<(), BoxError> {
        let sql = "INSERT INTO ledger VALUES ($1, $2)";
        tx.execute(sql, &[&event.id, &self.amount]).await?;
        tx.outbox("Invoice", "in_1", "Booked", &serde_json::json!({"amount": 3})).await?;
        tx.flag(event, "look").await?;
        Ok(())
    }
}

#[tokio::test]
async fn a_handler_with_state_books_flags_and_sends_in_one_transaction() {
    let db = Db::new().await;
    let inbox = db.inbox(|e| e.on("*", Book { amount: 3 }));
    assert_eq!(deliver(&inbox, "evt_1").await.unwrap().outcome, Outcome::Processed);
    for table in ["ledger", "ichido.outbox", "ichido.flag"] {
        assert_eq!(db.count(table).await, 1, "{table}");
    }
}

#[tokio::test]
async fn an_error_of_the_database_is_kept_without_the_row_it_quotes() {
    let db = Db::new().await;
    let unique = "CREATE UNIQUE INDEX ON ledger (event_id); INSERT INTO ledger VALUES ('s3cret')";
    db.client.batch_execute(unique).await.unwrap();
    let sql = SqlHandler::parse("h", "INSERT INTO ledger VALUES ('s3cret')").unwrap();
    let taken = deliver(&db.inbox(|e| e.on_sql("*", sql)), "evt_1").await.unwrap();
    let error = taken.error.unwrap();
    assert!(error.contains("23505") && !error.contains("s3cret"), "{error}");
}

#[tokio::test]
async fn a_handler_can_be_tried_without_leaving_a_trace() {
    let db = Db::new().await;
    let inbox = db.inbox(|e| {
        e.on("*", async |_: &mut Tx, _: &Event| -> Result<(), BoxError> {
            Err(Permanent::new("not today").into())
        })
    });
    let request = crate::support::signed(&inbox, "evt_1");
    let verified = inbox.verify("billing", request, ichido::verify::Timestamp::now()).unwrap();
    let ichido::Verified::Delivery(intake) = verified else { panic!("a delivery") };
    let event = intake.event(0);
    let seen = inbox.store().try_handler(
        async |tx: &mut Tx, _: &Event| tx.batch_execute(BOOK).await,
        &event,
        async |client| {
            Ok(client.query_one("SELECT count(*) FROM ledger", &[]).await?.get::<_, i64>(0))
        },
    );
    assert_eq!(seen.await.unwrap(), 1);
    assert_eq!(db.count("ledger").await, 0);
}
