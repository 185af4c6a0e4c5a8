//! Sync deliveries that share a commit: who is bad costs its neighbours time, never an outcome.

use futures_util::future::join_all;
use ichido::{
    Inbox,
    Outcome::{self, Accepted, Duplicate, Processed},
    SqlHandler, Taken,
    postgres::Postgres,
};

use crate::support::{Db, deliver};

async fn inbox(setup: &str, sql: &str) -> (Db, Inbox<Postgres>) {
    let db = Db::new().await;
    db.client.batch_execute(setup).await.unwrap();
    let sql = SqlHandler::parse("shared", sql).unwrap();
    let inbox = db.inbox(|e| e.on_sql("*", sql));
    (db, inbox)
}

/// Delivers all at once: they wait together, and so are taken together.
async fn deliver_all(inbox: &Inbox<Postgres>, ids: &[&str]) -> Vec<Taken> {
    let all = ids.iter().map(|id| deliver(inbox, id));
    join_all(all).await.into_iter().map(Result::unwrap).collect()
}

fn outcomes(taken: &[Taken]) -> Vec<Outcome> {
    taken.iter().map(|taken| taken.outcome).collect()
}

/// Transactions that wrote to the ledger.
const TRANSACTIONS: &str = "(SELECT DISTINCT xmin::text FROM ledger) AS t";

#[tokio::test]
async fn deliveries_that_wait_together_share_a_commit() {
    let (db, inbox) = inbox("", "INSERT INTO ledger (event_id) VALUES (:event_id)").await;
    let taken = deliver_all(&inbox, &["a", "b", "c", "d", "e"]).await;
    assert_eq!(outcomes(&taken), [Processed; 5]);
    assert_eq!((db.count("ledger").await, db.count(TRANSACTIONS).await), (5, 1));
}

#[tokio::test]
async fn a_handler_that_fails_is_kept_alone_and_its_neighbours_are_processed() {
    let sql = "INSERT INTO ledger (event_id, amount) \
               SELECT :event_id, 1 / CASE WHEN :event_id = 'bad' THEN 0 ELSE 1 END";
    let (db, inbox) = inbox("", sql).await;
    let taken = deliver_all(&inbox, &["a", "bad", "c"]).await;
    assert_eq!(outcomes(&taken), [Processed, Accepted, Processed]);
    assert!(taken[1].error.as_deref().unwrap().contains("division by zero"), "{:?}", taken[1]);
    assert_eq!((db.count("ledger").await, db.count("ichido.work").await), (2, 1));
}

#[tokio::test]
async fn a_handler_that_made_a_shared_commit_fail_runs_alone_for_a_while() {
    let sql = "INSERT INTO ledger (event_id, amount) \
               SELECT :event_id, 1 / CASE WHEN :event_id = 'bad' THEN 0 ELSE 1 END";
    let (db, inbox) = inbox("", sql).await;
    deliver_all(&inbox, &["bad"]).await;
    deliver_all(&inbox, &["a", "b", "c"]).await;
    assert_eq!(db.count(TRANSACTIONS).await, 3);
}

#[tokio::test]
async fn a_handler_that_is_slow_does_not_hold_its_neighbours_back_for_long() {
    let sql = "INSERT INTO ledger (event_id) VALUES (:event_id); \
               SELECT pg_sleep(1) WHERE :event_id = 'slow'";
    let (db, inbox) = inbox("", sql).await;
    let slow = deliver(&inbox, "slow");
    let quick = async {
        deliver_all(&inbox, &["a", "b"]).await;
        db.count("ledger").await
    };
    let (slow, seen) = tokio::join!(slow, quick);
    assert_eq!(slow.unwrap().outcome, Processed);
    assert_eq!((seen, db.count("ledger").await), (2, 3));
}

#[tokio::test]
async fn a_handler_that_can_run_but_once_a_transaction_is_processed_each_time() {
    let sql = "CREATE TEMP TABLE scratch ON COMMIT DROP AS SELECT :event_id AS id; \
               INSERT INTO ledger (event_id) VALUES (:event_id)";
    let (db, inbox) = inbox("", sql).await;
    let taken = deliver_all(&inbox, &["a", "b", "c"]).await;
    assert_eq!(outcomes(&taken), [Processed; 3]);
    assert_eq!(db.count("ledger").await, 3);
}

#[tokio::test]
async fn a_deferred_constraint_that_one_breaks_is_its_own_failure() {
    let setup = "CREATE TABLE known (id text PRIMARY KEY); INSERT INTO known VALUES ('a'), ('c'); \
                 ALTER TABLE ledger ADD FOREIGN KEY (event_id) REFERENCES known \
                 DEFERRABLE INITIALLY DEFERRED";
    let (db, inbox) = inbox(setup, "INSERT INTO ledger (event_id) VALUES (:event_id)").await;
    let taken = deliver_all(&inbox, &["a", "b", "c"]).await;
    assert_eq!(outcomes(&taken), [Processed, Accepted, Processed]);
    assert_eq!(db.count("ledger").await, 2);
}

#[tokio::test]
async fn handlers_that_lock_rows_in_opposite_orders_are_all_processed() {
    let setup = "INSERT INTO ledger VALUES ('x', 0), ('y', 0)";
    let sql = "UPDATE ledger SET amount = amount + 1 WHERE event_id = left(:event_id, 1); \
               SELECT pg_sleep(0.05)";
    let (db, here) = inbox(setup, sql).await;
    let there = db.inbox(|e| e.on_sql("*", SqlHandler::parse("shared", sql).unwrap()));
    let (one, other) =
        tokio::join!(deliver_all(&here, &["x1", "y1"]), deliver_all(&there, &["y2", "x2"]));
    assert_eq!(outcomes(&[one, other].concat()), [Processed; 4]);
    assert_eq!(db.count("ledger WHERE amount = 2").await, 2);
}

#[tokio::test]
async fn one_event_that_is_delivered_many_times_at_once_is_processed_once() {
    let (db, inbox) = inbox("", "INSERT INTO ledger (event_id) VALUES (:event_id)").await;
    let mut outcomes = outcomes(&deliver_all(&inbox, &["a", "a", "a", "a"]).await);
    outcomes.sort_unstable();
    assert_eq!(outcomes, [Processed, Duplicate, Duplicate, Duplicate]);
    assert_eq!(db.count("ledger").await, 1);
}
