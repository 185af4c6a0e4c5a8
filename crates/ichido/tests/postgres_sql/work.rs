//! The life of work: claim, completion, failure, review, replay.

use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::support::{Db, state};

const CLAIM: &str = "SELECT event_id FROM ichido.claim(ARRAY['billing'], \
                     ARRAY['fresh', 'retry', 'backfill'], 10, '1 min')";

async fn fail(db: &Db, receipt: Uuid, lease: i64, delay: &str, permanent: bool) -> String {
    let sql = format!("SELECT ichido.fail('{receipt}', {lease}, 'boom', {delay}, {permanent})");
    db.text(&sql).await
}

async fn start(db: &Db, receipt: Uuid, lease: i64) -> usize {
    db.rows(&format!("SELECT xid FROM ichido.start('{receipt}', {lease})")).await.len()
}

async fn to_review(db: &Db, event_id: &str) -> Uuid {
    db.take(event_id).await;
    let (receipt, lease) = db.claim_one().await;
    assert_eq!(fail(db, receipt, lease, "NULL", true).await, "review");
    receipt
}

/// Waits until a lease of a millisecond is over, by the database's clock.
async fn until_due(db: &Db) {
    let deadline = Instant::now() + Duration::from_secs(10);
    let due = "SELECT count(*) FROM ichido.work WHERE next_at > clock_timestamp()";
    while db.text(due).await != "0" {
        assert!(Instant::now() < deadline, "the lease does not end");
    }
}

#[tokio::test]
async fn an_attempt_is_counted_when_it_is_claimed() {
    let db = Db::new().await;
    db.take("a").await;
    db.claim_one().await;
    assert_eq!(db.text("SELECT attempts FROM ichido.work").await, "1");
    assert!(db.rows(CLAIM).await.is_empty(), "a leased event is invisible");
}

#[tokio::test]
async fn a_claim_brings_what_a_worker_needs_in_the_order_received() {
    let db = Db::new().await;
    db.take("a").await;
    db.take("b").await;
    let sql = "SELECT event_id, endpoint, provider, event_type, queue, lane, attempts, run, \
               convert_from(body, 'UTF8') FROM ichido.claim(ARRAY['x', 'billing'], \
               ARRAY['fresh'], 10, '1 min')";
    let row = |id| format!("{id}|billing|stripe|invoice.paid|billing|fresh|1|0|{{\"a\": 1}}");
    assert_eq!(db.rows(sql).await, [row("a"), row("b")]);
}

#[tokio::test]
async fn two_workers_never_claim_the_same_event() {
    let db = Db::new().await;
    for n in 0..40 {
        db.take(&n.to_string()).await;
    }
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let client = db.connect().await;
        tasks.push(tokio::spawn(async move {
            let sql = "SELECT event_id FROM ichido.claim(ARRAY['billing'], ARRAY['fresh'], 3, \
                       '1 min')";
            let mut mine = Vec::new();
            loop {
                let rows = client.query(sql, &[]).await.unwrap();
                if rows.is_empty() {
                    return mine;
                }
                mine.extend(rows.iter().map(|row| row.get::<_, String>(0)));
            }
        }));
    }
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    let claimed = all.len();
    all.sort();
    all.dedup();
    assert_eq!(claimed, all.len());
    assert_eq!(db.text("SELECT count(*) FROM ichido.work WHERE attempts > 1").await, "0");
}

#[tokio::test]
async fn the_completion_takes_only_the_holder_of_the_lease() {
    let db = Db::new().await;
    db.take("a").await;
    let (receipt, lease) = db.claim_one().await;
    assert_eq!(start(&db, receipt, lease + 1).await, 0);
    assert_eq!(start(&db, receipt, 0).await, 0);
    assert_eq!(start(&db, receipt, lease).await, 1);
    assert_eq!(start(&db, receipt, lease).await, 0);
    assert_eq!(db.text("SELECT state FROM ichido.webhook_inbox").await, "processed");
}

#[tokio::test]
async fn nobody_holds_a_lease_of_zero() {
    let db = Db::new().await;
    let receipt = db.take("a").await;
    assert_eq!(start(&db, receipt, 0).await, 0);
    assert_eq!(fail(&db, receipt, 0, "NULL", false).await, "lost");
}

#[tokio::test]
async fn the_completion_waits_for_a_rival_and_then_finds_the_event_gone() {
    let db = Db::new().await;
    db.take("a").await;
    let (receipt, lease) = db.claim_one().await;
    let rival = db.connect().await;
    let sql = format!("SELECT xid FROM ichido.start('{receipt}', {lease})");
    rival.batch_execute(&format!("BEGIN; {sql}")).await.unwrap();
    let waits = start(&db, receipt, lease);
    let commits = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
                       AND datname = current_database()";
        while crate::support::text(&rival, waiting).await == "0" {
            tokio::task::yield_now().await;
        }
        rival.batch_execute("COMMIT").await.unwrap();
    };
    assert_eq!(tokio::join!(waits, commits).0, 0);
}

#[tokio::test]
async fn a_failed_event_comes_back_and_its_last_attempt_ends_in_review() {
    let db = Db::new().await;
    db.take("a").await;
    let mut ends = Vec::new();
    for _ in 0..3 {
        let (receipt, lease) = db.claim_one().await;
        ends.push(fail(&db, receipt, lease, "'0 s'", false).await);
        assert_eq!(fail(&db, receipt, lease, "'0 s'", false).await, "lost");
    }
    assert_eq!(ends, ["retry", "retry", "review"]);
    let row = "SELECT state, attempts, last_error FROM ichido.webhook_inbox";
    assert_eq!(db.rows(row).await, ["review|3|boom"]);
    assert_eq!(db.text("SELECT count(*) FROM ichido.attempt").await, "3");
    assert!(db.audit().await.is_empty());
}

#[tokio::test]
async fn a_delay_given_or_drawn_is_kept() {
    let db = Db::new().await;
    db.take("a").await;
    let (receipt, lease) = db.claim_one().await;
    fail(&db, receipt, lease, "'1 hour'", false).await;
    let within = "SELECT next_at - clock_timestamp() BETWEEN '59 min' AND '1 hour', lane FROM \
                  ichido.work";
    assert_eq!(db.text(within).await, "t|retry");
    db.take("b").await;
    let (receipt, lease) = db.claim_one().await;
    fail(&db, receipt, lease, "NULL", false).await;
    let within = format!(
        "SELECT next_at - clock_timestamp() < '2 s' FROM ichido.work WHERE id = '{receipt}'"
    );
    assert_eq!(db.text(&within).await, "t");
}

#[tokio::test]
async fn an_event_whose_lease_ran_out_is_claimed_alone_and_stops_at_the_limit() {
    let db = Db::new().await;
    for id in ["a", "b", "c"] {
        db.take(id).await;
    }
    let short = "SELECT event_id FROM ichido.claim(ARRAY['billing'], ARRAY['fresh'], 10, \
                 '1 ms', 0.25)";
    assert_eq!(db.rows(short).await.len(), 3);
    let mut alone = 0;
    for _ in 0..9 {
        until_due(&db).await;
        let claimed = db.rows(short).await.len();
        assert!(claimed <= 1, "an expired event came with {claimed} others");
        alone += claimed;
    }
    assert_eq!(alone, 6, "three events with two attempts left each");
    let row = "SELECT state, attempts FROM ichido.webhook_inbox";
    assert_eq!(db.rows(row).await, ["review|3", "review|3", "review|3"]);
    assert_eq!(db.text("SELECT count(*) FROM ichido.attempt").await, "9");
    assert!(db.audit().await.is_empty());
}

#[tokio::test]
async fn lease_ends_are_spread() {
    let db = Db::new().await;
    for n in 0..10 {
        db.take(&n.to_string()).await;
    }
    db.run(CLAIM).await;
    let spread = "SELECT count(DISTINCT next_at) > 5, min(next_at - claimed_at) >= '1 min', \
                  max(next_at - claimed_at) <= '75 s' FROM ichido.work";
    assert_eq!(db.text(spread).await, "t|t|t");
}

#[tokio::test]
async fn a_released_event_is_due_again_and_its_attempt_is_not_counted() {
    let db = Db::new().await;
    db.take("a").await;
    let (receipt, lease) = db.claim_one().await;
    let release = format!("SELECT ichido.release('{receipt}', {lease})");
    assert_eq!(db.text(&release).await, "t");
    assert_eq!(db.text(&release).await, "f");
    let (_, next) = db.claim_one().await;
    assert!(next > lease, "a lease number is never used again");
    assert_eq!(db.text("SELECT attempts FROM ichido.work").await, "1");
}

#[tokio::test]
async fn a_lease_is_renewed_by_its_holder_only() {
    let db = Db::new().await;
    db.take("a").await;
    let (receipt, lease) = db.claim_one().await;
    let renew = |lease| format!("SELECT ichido.renew('{receipt}', {lease}, '1 hour')");
    assert_eq!(db.text(&renew(lease)).await, "t");
    assert_eq!(db.text(&renew(lease + 1)).await, "f");
    let far = "SELECT next_at > clock_timestamp() + interval '50 min' FROM ichido.work";
    assert_eq!(db.text(far).await, "t");
}

#[tokio::test]
async fn requeue_gives_fresh_attempts_and_keeps_the_history() {
    let db = Db::new().await;
    let receipt = to_review(&db, "a").await;
    let requeue = format!("SELECT ichido.requeue('{receipt}')");
    assert_eq!(db.text(&requeue).await, "t");
    assert_eq!(db.text(&requeue).await, "f");
    let row = "SELECT state, attempts, last_error FROM ichido.webhook_inbox";
    assert_eq!(db.rows(row).await, ["work|0|boom"]);
    assert_eq!(db.text("SELECT count(*) FROM ichido.attempt").await, "1");
    let (receipt, lease) = db.claim_one().await;
    assert_eq!(start(&db, receipt, lease).await, 1);
}

#[tokio::test]
async fn a_discarded_event_needs_a_reason_and_stays_visible() {
    let db = Db::new().await;
    let receipt = to_review(&db, "a").await;
    let blank = format!("SELECT ichido.discard('{receipt}', ' ')");
    assert_eq!(state(db.client.batch_execute(&blank).await), "IC004");
    let discard = format!("SELECT ichido.discard('{receipt}', 'a test event')");
    assert_eq!(db.text(&discard).await, "t");
    assert_eq!(db.text(&discard).await, "f");
    let row = "SELECT state, processed_at IS NULL FROM ichido.webhook_inbox";
    assert_eq!(db.rows(row).await, ["discarded|f"]);
    let note = db.text("SELECT note FROM ichido.done").await;
    assert!(note.starts_with("a test event") && note.contains("boom"), "{note}");
}

#[tokio::test]
async fn a_replay_is_a_new_run_with_a_name_and_a_reason_to_it() {
    let db = Db::new().await;
    db.run("SELECT ichido.receive('billing', 'a', 'invoice.paid', '{}')").await;
    let receipt = db.text("SELECT id FROM ichido.event").await;
    let replay = format!("SELECT ichido.replay('{receipt}', 'ada', 'handler was wrong')");
    assert_eq!(db.text(&replay).await, "1");
    assert_eq!(state(db.client.batch_execute(&replay).await), "IC004");
    let row = "SELECT state FROM ichido.webhook_inbox";
    assert_eq!(db.rows(row).await, ["work"], "one row an event");
    let (receipt, lease) = db.claim_one().await;
    assert_eq!(start(&db, receipt, lease).await, 1);
    assert_eq!(db.rows(row).await, ["processed"]);
    assert_eq!(db.rows("SELECT run FROM ichido.done ORDER BY 1").await, ["0", "1"]);
    assert_eq!(db.text(&replay).await, "2");
    let who = "SELECT run, replayed_by, reason FROM ichido.replay ORDER BY run LIMIT 1";
    assert_eq!(db.text(who).await, "1|ada|handler was wrong");
    assert!(db.audit().await.is_empty());
}
