//! A sync event's transaction: the guard of COMMIT, keep after a failure, flags, and the contract
//! for other languages.

use crate::support::{Batch, Db, state};

#[tokio::test]
async fn the_guard_passes_the_transaction_that_took_the_event() {
    let db = Db::new().await;
    db.run("BEGIN").await;
    let back = Batch::of("billing", &[("a", "run")]).send(&db.client).await.unwrap();
    let guard =
        format!("SET CONSTRAINTS ALL IMMEDIATE; SELECT ichido.sound('{}'); COMMIT", back[0].xid);
    db.run(&guard).await;
    assert_eq!(db.text("SELECT state FROM ichido.webhook_inbox").await, "processed");
}

#[tokio::test]
async fn the_guard_catches_what_a_handler_must_not_do() {
    let db = Db::new().await;
    for misdeed in ["COMMIT", "COMMIT; BEGIN", "SET LOCAL synchronous_commit = off"] {
        db.run("BEGIN").await;
        let back = Batch::of("billing", &[(misdeed, "run")]).send(&db.client).await.unwrap();
        db.run(misdeed).await;
        let guard = format!("SELECT ichido.sound('{}'); COMMIT", back[0].xid);
        assert_eq!(state(db.client.batch_execute(&guard).await), "IC003", "{misdeed}");
        db.run("ROLLBACK").await;
    }
}

#[tokio::test]
async fn an_aborted_transaction_never_reaches_commit() {
    let db = Db::new().await;
    db.run("BEGIN").await;
    let back = Batch::of("billing", &[("a", "run")]).send(&db.client).await.unwrap();
    assert_eq!(state(db.client.batch_execute("SELECT 1 / 0").await), "22012");
    let guard =
        format!("SET CONSTRAINTS ALL IMMEDIATE; SELECT ichido.sound('{}'); COMMIT", back[0].xid);
    assert_eq!(state(db.client.batch_execute(&guard).await), "25P02");
    db.run("ROLLBACK").await;
    assert_eq!(db.text("SELECT count(*) FROM ichido.event").await, "0");
}

#[tokio::test]
async fn a_deferred_constraint_speaks_before_commit() {
    let db = Db::new().await;
    db.run("CREATE TABLE t (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)").await;
    db.run("BEGIN").await;
    let back = Batch::of("billing", &[("a", "run")]).send(&db.client).await.unwrap();
    db.run("INSERT INTO t VALUES (1), (1)").await;
    let guard =
        format!("SET CONSTRAINTS ALL IMMEDIATE; SELECT ichido.sound('{}'); COMMIT", back[0].xid);
    assert_eq!(state(db.client.batch_execute(&guard).await), "23505");
}

#[tokio::test]
async fn a_kept_event_is_work_with_its_error_and_its_effect_is_gone() {
    let db = Db::new().await;
    db.run("CREATE TABLE effect (a int)").await;
    db.run("BEGIN").await;
    let back = Batch::of("billing", &[("a", "run")]).send(&db.client).await.unwrap();
    db.run("SAVEPOINT handler; INSERT INTO effect VALUES (1)").await;
    assert_eq!(state(db.client.batch_execute("SELECT 1 / 0").await), "22012");
    db.run(&format!(
        "ROLLBACK TO handler; SELECT ichido.keep('{}', 'billing', 'boom'); COMMIT",
        back[0].receipt
    ))
    .await;
    let row = "SELECT state, attempts, last_error FROM ichido.webhook_inbox";
    assert_eq!(db.rows(row).await, ["work|0|boom"]);
    assert_eq!(db.text("SELECT lane FROM ichido.work").await, "retry");
    assert_eq!(db.text("SELECT count(*) FROM effect").await, "0");
    assert!(db.audit().await.is_empty());
}

#[tokio::test]
async fn only_an_event_of_this_transaction_can_be_kept() {
    let db = Db::new().await;
    let receipt = db.take("a").await;
    let sql = format!("SELECT ichido.keep('{receipt}', 'billing', 'boom')");
    assert_eq!(state(db.client.batch_execute(&sql).await), "IC004");
}

#[tokio::test]
async fn another_language_takes_an_event_in_its_own_transaction() {
    let db = Db::new().await;
    let take = "SELECT taken FROM ichido.receive('billing', 'evt_1', 'invoice.paid', '{}')";
    assert_eq!(db.text(take).await, "t");
    assert_eq!(db.text(take).await, "f");
    let row = "SELECT provider, endpoint, event_id, event_type, payload, processed_at IS NULL \
               FROM ichido.webhook_inbox";
    assert_eq!(db.rows(row).await, ["stripe|billing|evt_1|invoice.paid|{}|f"]);
    assert_eq!(db.text("SELECT signed FROM ichido.event").await, "f");
}

#[tokio::test]
async fn an_unusable_event_id_is_refused_by_code() {
    let db = Db::new().await;
    for id in ["", "a\u{1}b", &"x".repeat(256)] {
        let sql = "SELECT * FROM ichido.receive('billing', $1, 't', '{}')";
        assert_eq!(state(db.client.query(sql, &[&id]).await), "IC004", "{id:?}");
    }
}

#[tokio::test]
async fn a_receipt_id_is_a_uuid_v7_that_ends_in_the_lane_byte() {
    let db = Db::new().await;
    let receipt = db.take("evt_1").await;
    assert_eq!(receipt.get_version_num(), 7);
    assert_eq!(receipt.as_bytes()[15], ichido::lane_byte("billing", "evt_1"));
}

#[tokio::test]
async fn a_flag_shows_until_a_human_closes_it_and_the_event_stays_processed() {
    let db = Db::new().await;
    db.run("SELECT ichido.receive('billing', 'evt_1', 'invoice.paid', '{}')").await;
    let flag = db.text("SELECT ichido.flag('billing', 'evt_1', 'paid a void invoice')").await;
    let open = "SELECT value FROM ichido.stats() WHERE name = 'flags'";
    assert_eq!(db.text(open).await, "1");
    assert_eq!(db.text("SELECT state FROM ichido.webhook_inbox").await, "processed");
    let close = format!("SELECT ichido.flag_close('{flag}', 'refunded')");
    assert_eq!(db.text(&close).await, "t");
    assert_eq!(db.text(&close).await, "f");
    assert_eq!(db.text(open).await, "0");
}

#[tokio::test]
async fn a_flag_needs_an_event() {
    let db = Db::new().await;
    let sql = "SELECT ichido.flag('billing', 'evt_x', 'why')";
    assert_eq!(state(db.client.batch_execute(sql).await), "IC004");
}

#[tokio::test]
async fn an_endpoint_belongs_to_one_provider() {
    let db = Db::new().await;
    let again = "SELECT ichido.endpoint_put('billing', 'stripe', '{\"max_attempts\": 4}') = \
                 (SELECT id FROM ichido.endpoint WHERE name = 'billing' AND max_attempts = 4)";
    db.run(again).await;
    assert_eq!(db.text(again).await, "t");
    let other = "SELECT ichido.endpoint_put('billing', 'github', '{}')";
    assert_eq!(state(db.client.batch_execute(other).await), "IC004");
}
