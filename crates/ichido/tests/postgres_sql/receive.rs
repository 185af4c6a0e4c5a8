//! `receive` in a batch: who wins, what is stored, and that nothing is left behind.

use crate::support::{Batch, Db, state, text};

#[tokio::test]
async fn a_batch_comes_back_in_the_order_given() {
    let db = Db::new().await;
    let batch = Batch::of("billing", &[("c", "work"), ("a", "work"), ("b", "run")]);
    let back = batch.send(&db.client).await.unwrap();
    assert_eq!(back.iter().map(|b| b.n).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(back.iter().map(|b| b.receipt).collect::<Vec<_>>(), batch.e_receipt);
    assert!(back.iter().all(|b| b.taken && !b.differs));
}

#[tokio::test]
async fn every_route_leads_to_its_own_place() {
    let db = Db::new().await;
    let routes = [("w", "work"), ("r", "run"), ("i", "ignored"), ("u", "review")];
    Batch::of("billing", &routes).send(&db.client).await.unwrap();
    for (id, route) in routes {
        Batch::of("billing", &[(&format!("{id}2"), route)]).send(&db.client).await.unwrap();
    }
    let rows = db.rows("SELECT state, count(*) FROM ichido.webhook_inbox GROUP BY 1 ORDER BY 1");
    assert_eq!(rows.await, ["ignored|2", "processed|2", "review|2", "work|2"]);
    assert!(db.audit().await.is_empty());
}

#[tokio::test]
async fn the_first_of_two_equal_keys_in_a_batch_wins() {
    let db = Db::new().await;
    let batch = Batch::of("billing", &[("b", "work"), ("a", "work"), ("b", "work")]);
    let back = batch.send(&db.client).await.unwrap();
    assert_eq!(back.iter().map(|b| b.taken).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(back[2].receipt, batch.e_receipt[0]);
    assert_eq!(db.text("SELECT count(*) FROM ichido.delivery").await, "2");
}

#[tokio::test]
async fn a_duplicate_is_told_the_first_receipt_and_stores_nothing() {
    let db = Db::new().await;
    let first = Batch::of("billing", &[("a", "work")]);
    first.send(&db.client).await.unwrap();
    for events in [&[("a", "work")][..], &[("a", "work"), ("a", "run")]] {
        let back = Batch::of("billing", events).send(&db.client).await.unwrap();
        assert!(back.iter().all(|b| !b.taken && b.receipt == first.e_receipt[0]));
    }
    let rows = "SELECT (SELECT count(*) FROM ichido.event), (SELECT count(*) FROM \
                ichido.delivery), (SELECT count(*) FROM ichido.work)";
    assert_eq!(db.text(rows).await, "1|1|1");
}

#[tokio::test]
async fn one_event_id_at_two_endpoints_is_two_events() {
    let db = Db::new().await;
    for endpoint in ["billing", "github"] {
        let back = Batch::of(endpoint, &[("a", "work")]).send(&db.client).await.unwrap();
        assert!(back[0].taken);
    }
}

#[tokio::test]
async fn our_own_retry_after_an_unknown_commit_counts_as_taken() {
    let db = Db::new().await;
    for events in [&[("a", "work")][..], &[("b", "work"), ("c", "run")]] {
        let batch = Batch::of("github", events);
        let first = batch.send(&db.client).await.unwrap();
        let again = batch.send(&db.client).await.unwrap();
        for (first, again) in first.iter().zip(&again) {
            assert!(first.taken && again.taken && first.receipt == again.receipt);
        }
    }
    assert_eq!(db.text("SELECT count(*) FROM ichido.event").await, "3");
    assert_eq!(db.text("SELECT count(*) FROM ichido.delivery").await, "3");
    assert!(db.audit().await.is_empty());
}

#[tokio::test]
async fn a_delivery_is_stored_once_and_only_if_one_of_its_events_was_taken() {
    let db = Db::new().await;
    let mut batch = Batch::default();
    batch.delivery("billing", b"[1, 2]");
    batch.event("a", "work");
    batch.event("b", "work");
    batch.send(&db.client).await.unwrap();
    let mut mixed = Batch::default();
    mixed.delivery("billing", b"[2]");
    mixed.event("b", "work");
    mixed.delivery("billing", b"[2, 3]");
    mixed.event("b", "work");
    mixed.event("c", "work");
    mixed.send(&db.client).await.unwrap();
    let bodies = db.rows("SELECT convert_from(body, 'UTF8') FROM ichido.delivery ORDER BY 1");
    assert_eq!(bodies.await, ["[1, 2]", "[2, 3]"]);
    assert!(db.audit().await.is_empty());
}

#[tokio::test]
async fn two_signed_contents_under_one_key_differ_and_a_vouched_one_never_does() {
    let db = Db::new().await;
    Batch::of("billing", &[("a", "work")]).send(&db.client).await.unwrap();
    let mut other = Batch::of("billing", &[("a", "work")]);
    other.e_digest[0] = b"other".to_vec();
    assert!(other.send(&db.client).await.unwrap()[0].differs);
    other.e_signed[0] = false;
    assert!(!other.send(&db.client).await.unwrap()[0].differs);
}

#[tokio::test]
async fn a_conflict_keeps_both_digests_and_is_recorded_once() {
    let db = Db::new().await;
    let receipt = db.take("evt_1").await;
    let put = format!("SELECT ichido.conflict_put('{receipt}', 'other', 'POST', '/', '', 'b', 0)");
    db.run(&put).await;
    db.run(&put).await;
    let kept = "SELECT count(*), bool_and(first_digest = sha256('{\"a\": 1}') AND digest = \
                'other') FROM ichido.conflict";
    assert_eq!(db.text(kept).await, "1|t");
}

#[tokio::test]
async fn signed_bytes_under_a_fresh_id_are_marked_where_the_id_is_not_signed() {
    let db = Db::new().await;
    for (endpoint, repeats) in [("github", "2"), ("billing", "2")] {
        Batch::of(endpoint, &[("a", "run")]).send(&db.client).await.unwrap();
        Batch::of(endpoint, &[("b", "run"), ("c", "work")]).send(&db.client).await.unwrap();
        let marked = db.text("SELECT sum(repeats) FROM ichido.signed_digest").await;
        assert_eq!(marked, repeats, "{endpoint}");
    }
}

#[tokio::test]
async fn an_unknown_endpoint_is_refused_by_code() {
    let db = Db::new().await;
    for events in [&[("a", "work")][..], &[("a", "work"), ("b", "work")]] {
        assert_eq!(state(Batch::of("nope", events).send(&db.client).await), "IC002");
    }
}

#[tokio::test]
async fn receive_leaves_no_setting_behind() {
    let db = Db::new().await;
    db.run("BEGIN").await;
    Batch::of("billing", &[("a", "run")]).send(&db.client).await.unwrap();
    let settings = "SELECT current_setting('lock_timeout'), current_setting('enable_seqscan')";
    assert_eq!(db.text(settings).await, "0|on");
    db.run("COMMIT").await;
}

#[tokio::test]
async fn a_waiting_duplicate_takes_the_event_when_the_first_rolls_back() {
    let db = Db::new().await;
    let first = db.connect().await;
    first.batch_execute("BEGIN").await.unwrap();
    Batch::of("billing", &[("a", "run")]).send(&first).await.unwrap();
    let second = Batch::of("billing", &[("a", "run")]);
    let waits = async { second.send(&db.client).await.unwrap() };
    let rolls_back = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
                       AND datname = current_database()";
        while text(&first, waiting).await == "0" {
            tokio::task::yield_now().await;
        }
        first.batch_execute("ROLLBACK").await.unwrap();
    };
    let (back, ()) = tokio::join!(waits, rolls_back);
    assert!(back[0].taken);
}

#[tokio::test]
async fn overlapping_batches_in_any_order_do_not_deadlock() {
    let db = Db::new().await;
    let mut tasks = Vec::new();
    for worker in 0..6_usize {
        let client = db.connect().await;
        tasks.push(tokio::spawn(async move {
            let mut taken = 0;
            for round in 0..20 {
                let mut ids: Vec<_> = (0..20).map(|n| format!("{round}-{n}")).collect();
                ids.rotate_left(worker * 3);
                if worker % 2 == 0 {
                    ids.reverse();
                }
                let events: Vec<_> = ids.iter().map(|id| (id.as_str(), "work")).collect();
                let back = Batch::of("github", &events).send(&client).await.unwrap();
                taken += back.iter().filter(|b| b.taken).count();
            }
            taken
        }));
    }
    let mut taken = 0;
    for task in tasks {
        taken += task.await.unwrap();
    }
    assert_eq!(taken, 400);
    assert!(db.audit().await.is_empty());
}
