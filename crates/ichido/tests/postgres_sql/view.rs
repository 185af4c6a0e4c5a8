//! The view `webhook_inbox`: soft about bodies, and cheap beside a long history.

use crate::support::{Batch, Db};

const HISTORY: &str = "
    INSERT INTO ichido.event (received_at, body_from, body_to, endpoint_id, signed, id,
                              delivery_id, event_id, event_type, digest)
    SELECT now() - interval '1 day', 0, 2, 1, true, ichido.uuid7(), ichido.uuid7(),
           'evt_' || md5(g::text), 'invoice.paid', ''
      FROM generate_series(1, $ROWS) g;
    INSERT INTO ichido.done (processed_at, received_at, endpoint_id, attempts, run, id, outcome)
    SELECT received_at, received_at, 1, 1, 0, id, 'processed' FROM ichido.event;
    ANALYZE";

/// How many rows of history; a million when every slow test is asked for.
fn history() -> u32 {
    if std::env::var("ICHIDO_ALL").is_ok_and(|v| v == "1") { 1_000_000 } else { 20_000 }
}

/// Buffers that a query reads, planning not counted.
async fn buffers(db: &Db, sql: &str) -> u64 {
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF) {sql}");
    let plan = db.rows(&explain).await;
    let line = plan.iter().find(|line| line.contains("Buffers:")).expect("a plan with buffers");
    line.split(['=', ' ']).filter_map(|word| word.parse::<u64>().ok()).sum()
}

#[tokio::test]
async fn a_body_that_is_not_json_is_a_null_payload_and_fails_no_query() {
    let db = Db::new().await;
    let deep = "[".repeat(50_000).into_bytes();
    let bodies: [&[u8]; 5] = [b"{\"a\": 1}", b"\xff\xfe", b"{\"a\": \"\\u0000\"}", b"", &deep];
    for (n, body) in bodies.iter().enumerate() {
        let mut batch = Batch::default();
        batch.delivery("billing", body);
        batch.event(&n.to_string(), "work");
        batch.send(&db.client).await.unwrap();
    }
    let rows = db.rows("SELECT payload FROM ichido.webhook_inbox ORDER BY event_id").await;
    assert_eq!(rows, ["{\"a\": 1}", "null", "null", "null", "null"]);
}

#[tokio::test]
async fn an_event_of_a_batch_shows_its_own_bytes() {
    let db = Db::new().await;
    db.run(
        "SELECT ichido.receive('billing', 'a', 't', '[{\"a\": 1},{\"b\": 2}]', \
            queue => 'billing')",
    )
    .await;
    db.run("UPDATE ichido.event SET body_from = 10, body_to = 18").await;
    assert_eq!(db.text("SELECT payload FROM ichido.webhook_inbox").await, "{\"b\": 2}");
    let body = "SELECT convert_from(ichido.event_body(id), 'UTF8') FROM ichido.event";
    assert_eq!(db.text(body).await, "{\"b\": 2}");
    let claimed = "SELECT convert_from(body, 'UTF8') FROM ichido.claim(ARRAY['billing'], \
                   ARRAY['fresh'], 1, '1 min')";
    assert_eq!(db.text(claimed).await, "{\"b\": 2}");
}

#[tokio::test]
async fn a_question_about_open_events_reads_no_history() {
    let db = Db::new().await;
    db.run(&HISTORY.replace("$ROWS", &history().to_string())).await;
    for n in 0..50 {
        db.take(&n.to_string()).await;
    }
    db.run("ANALYZE").await;
    let open = "SELECT * FROM ichido.webhook_inbox WHERE processed_at IS NULL AND received_at < \
                now() + interval '5 min' ORDER BY received_at";
    let read = buffers(&db, open).await;
    assert!(read < 10 * 50, "{read} buffers for 50 open events");
    let read =
        buffers(&db, "SELECT count(*) FROM ichido.webhook_inbox WHERE processed_at IS NULL").await;
    assert!(read < 20, "{read} buffers to count 50 open events");
    let one = "SELECT * FROM ichido.webhook_inbox WHERE endpoint = 'billing' AND event_id = \
               'evt_' || md5('7')";
    let read = buffers(&db, one).await;
    assert!(read < 40, "{read} buffers for one event by its key");
}

#[tokio::test]
async fn a_claim_reads_as_little_beside_a_long_history_and_a_long_queue() {
    let db = Db::new().await;
    db.take("first").await;
    let idle = "SELECT * FROM ichido.claim(ARRAY['other'], ARRAY['fresh', 'retry'], 10, '1 min')";
    db.run(idle).await;
    let before = buffers(&db, idle).await;
    db.run(&HISTORY.replace("$ROWS", &history().to_string())).await;
    db.run(
        "INSERT INTO ichido.work (received_at, next_at, endpoint_id, id, queue, lane) \
            SELECT received_at, received_at, 1, ichido.uuid7(), 'billing', 'fresh' \
              FROM ichido.event",
    )
    .await;
    // The first call after a change of statistics plans again, and reads the catalogue for it.
    db.run(idle).await;
    let after = buffers(&db, idle).await;
    // An index grows by a level for each few hundred times as many rows.
    assert!(after <= before + 6, "{before} buffers before, {after} after");
}
