//! The roles with least rights: each can do its work, and no more. One test, since roles belong
//! to the whole cluster.

use crate::support::{Batch, Db, state};

#[tokio::test]
async fn each_role_can_do_its_work_and_no_more() {
    let db = Db::new().await;
    db.run("INSERT INTO ichido.route (destination) VALUES ('hook')").await;
    // Rolled back at the end: roles would outlive the database.
    db.run(&format!("BEGIN; {}", include_str!("../../sql/postgres/roles.sql"))).await;

    db.run("SET LOCAL ROLE ichido_receive").await;
    let batch = Batch::of("github", &[("a", "run"), ("b", "work"), ("c", "review")]);
    let back = batch.send(&db.client).await.unwrap();
    db.run(&format!("SELECT ichido.keep('{}', 'billing', 'boom')", back[0].receipt)).await;
    db.run("SELECT ichido.receive('billing', 'd', 't', '{}')").await;
    db.run("SELECT ichido.flag('billing', 'd', 'why'), ichido.version()").await;
    db.run("SELECT ichido.outbox_put('I', '1', 't', '{}')").await;
    let claim = "SELECT receipt, lease FROM ichido.claim(ARRAY['billing'], ARRAY['fresh'], 1, \
                 '1 min')";
    db.run("SAVEPOINT refused").await;
    assert_eq!(state(db.client.batch_execute(claim).await), "42501");

    db.run("ROLLBACK TO refused; SET LOCAL ROLE ichido_work").await;
    let (receipt, lease) = db.claim_one().await;
    db.run(&format!("SELECT ichido.fail('{receipt}', {lease}, 'boom', '0 s')")).await;
    let (receipt, lease) = db.claim_one().await;
    db.run(&format!("SELECT ichido.start('{receipt}', {lease})")).await;
    db.run("SAVEPOINT refused").await;
    let requeue = format!("SELECT ichido.requeue('{}')", back[2].receipt);
    assert_eq!(state(db.client.batch_execute(&requeue).await), "42501");

    db.run("ROLLBACK TO refused; SET LOCAL ROLE ichido_dispatch").await;
    let sent = "SELECT ichido.outbox_sent(message, destination, lease) FROM \
                ichido.outbox_claim(ARRAY['hook'], 1, '1 min')";
    assert_eq!(db.text(sent).await, "t");

    db.run("SET LOCAL ROLE ichido_read; SELECT ichido.audit(), ichido.stats()").await;
    db.run("SELECT * FROM ichido.webhook_inbox").await;
    assert_eq!(state(db.client.batch_execute("DELETE FROM ichido.flag").await), "42501");
    db.run("ROLLBACK").await;
}
