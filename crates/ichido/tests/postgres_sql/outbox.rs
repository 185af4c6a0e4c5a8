//! Messages: a plain insert is enough, every one has a destination or is a finding, and who
//! holds the lease has the say.

use crate::support::Db;

const PLAIN: &str = "INSERT INTO ichido.outbox (aggregate_type, aggregate_id, event_type, \
                     payload) VALUES ('Invoice', 'in_1', 'InvoicePaid', '{\"amount\": 1}')";
const CLAIM: &str = "SELECT message, destination, lease FROM ichido.outbox_claim(\
                     ARRAY['hook', 'bus'], 10, '1 min')";

async fn claim_one(db: &Db) -> String {
    let row = db.text(CLAIM).await;
    let parts: Vec<_> = row.split('|').collect();
    format!("'{}', '{}', {}", parts[0], parts[1], parts[2])
}

#[tokio::test]
async fn a_plain_insert_goes_once_to_every_destination_that_a_route_names() {
    let db = Db::new().await;
    db.run(
        "INSERT INTO ichido.route (event_type, destination) VALUES ('InvoicePaid', 'hook'), \
            ('*', 'hook'), ('*', 'bus'), ('InvoicePaid.*', 'none'), ('Other', 'none')",
    )
    .await;
    db.run(PLAIN).await;
    let rows = db.rows("SELECT destination FROM ichido.dispatch ORDER BY 1").await;
    assert_eq!(rows, ["bus", "hook"]);
}

#[tokio::test]
async fn a_prefix_route_takes_what_begins_with_it() {
    let db = Db::new().await;
    db.run("INSERT INTO ichido.route (event_type, destination) VALUES ('invoice.*', 'hook')").await;
    for event_type in ["invoice.paid", "invoiced.paid", "invoice"] {
        db.run(&format!("SELECT ichido.outbox_put('Invoice', '1', '{event_type}', '{{}}')")).await;
    }
    let rows = db.rows("SELECT destination, count(*) FROM ichido.dispatch GROUP BY 1 ORDER BY 1");
    assert_eq!(rows.await, ["|2", "hook|1"]);
}

#[tokio::test]
async fn a_message_without_a_route_is_a_finding_until_it_is_routed() {
    let db = Db::new().await;
    db.run(PLAIN).await;
    assert_eq!(db.audit().await, ["message_without_route|1"]);
    let unrouted = "SELECT value FROM ichido.stats() WHERE name = 'outbox_without_route'";
    assert_eq!(db.text(unrouted).await, "1");
    let requeue = "SELECT ichido.outbox_requeue(message, destination) FROM ichido.dispatch";
    assert_eq!(db.text(requeue).await, "f");
    db.run("INSERT INTO ichido.route (destination) VALUES ('hook')").await;
    assert_eq!(db.text(requeue).await, "t");
    assert!(db.audit().await.is_empty());
    assert_eq!(db.rows(CLAIM).await.len(), 1);
}

#[tokio::test]
async fn a_message_that_names_its_destination_needs_no_route() {
    let db = Db::new().await;
    db.run("INSERT INTO ichido.route (destination) VALUES ('bus')").await;
    db.run("SELECT ichido.outbox_put('Invoice', '1', 'x', '{}', 'hook', 'webhook:evt_1:x')").await;
    let sql = "SELECT destination, key, attempts FROM ichido.outbox_claim(ARRAY['hook', 'bus'], \
               10, '1 min')";
    assert_eq!(db.rows(sql).await, ["hook|webhook:evt_1:x|1"]);
}

#[tokio::test]
async fn a_rolled_back_handler_leaves_no_message() {
    let db = Db::new().await;
    db.run(&format!("BEGIN; {PLAIN}; ROLLBACK")).await;
    let rows = "SELECT (SELECT count(*) FROM ichido.outbox) + (SELECT count(*) FROM \
                ichido.dispatch)";
    assert_eq!(db.text(rows).await, "0");
}

#[tokio::test]
async fn a_message_is_sent_by_the_holder_of_its_lease_only() {
    let db = Db::new().await;
    db.run("INSERT INTO ichido.route (destination) VALUES ('hook')").await;
    db.run(PLAIN).await;
    let message = claim_one(&db).await;
    assert!(db.rows(CLAIM).await.is_empty(), "a leased message is invisible");
    let sent = |lease: &str| format!("SELECT ichido.outbox_sent({lease})");
    assert_eq!(db.text(&sent(&message.replace("'hook', ", "'hook', 1000 + "))).await, "f");
    assert_eq!(db.text(&sent(&message)).await, "t");
    assert_eq!(db.text(&sent(&message)).await, "f");
    assert_eq!(db.text("SELECT count(*) FROM ichido.dispatch").await, "0");
    assert!(db.audit().await.is_empty());
}

#[tokio::test]
async fn a_message_is_not_retried_without_limit() {
    let db = Db::new().await;
    db.run("INSERT INTO ichido.route (destination) VALUES ('hook')").await;
    db.run(PLAIN).await;
    let mut ends = Vec::new();
    for _ in 0..2 {
        let message = claim_one(&db).await;
        let sql = format!("SELECT ichido.outbox_fail({message}, 'gone', '0 s', max_attempts => 2)");
        ends.push(db.text(&sql).await);
    }
    assert_eq!(ends, ["retry", "review"]);
    let waits = "SELECT value FROM ichido.stats() WHERE name = 'outbox_needs_review'";
    assert_eq!(db.text(waits).await, "1");
    assert!(db.rows(CLAIM).await.is_empty());
    db.run("SELECT ichido.outbox_requeue(message, destination) FROM ichido.dispatch").await;
    assert_eq!(db.rows(CLAIM).await.len(), 1);
}

#[tokio::test]
async fn a_message_waits_until_its_time() {
    let db = Db::new().await;
    let put = "SELECT ichido.outbox_put('I', '1', 'x', '{}', 'hook', not_before => now() + \
               interval '1 hour')";
    db.run(put).await;
    assert!(db.rows(CLAIM).await.is_empty());
}
