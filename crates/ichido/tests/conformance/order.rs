//! Order by key: the events of one key are done one at a time, as their receipts committed; what
//! one of them does to those behind it is the endpoint's choice.

use std::time::Duration;

use ichido::{Claimed, Failed, Fault, Mode, OrderByKey, Outcome, Store, Then, Worked};

use crate::{
    engines::{BOOK, Engine, billing, outcome, sound},
    workers::{claim, claim_one, work_until},
};

const LEASE: Duration = Duration::from_mins(1);
const LIMIT: Duration = Duration::from_secs(2);

async fn ordered<E: Engine>(handler: &str, policy: OrderByKey) -> E {
    let endpoint = billing::<E>(&[("*", handler)]).mode(Mode::Async);
    E::open(vec![endpoint.order_by_key(policy).max_attempts(1000)]).await
}

/// Stores an event about `key`.
async fn put<E: Engine>(engine: &E, id: &str, key: &str) {
    let body = format!(
        r#"{{"id":"{id}","object":"event","type":"invoice.paid","created":1760000000,
            "data":{{"object":{{"id":"{key}"}}}}}}"#
    );
    assert_eq!(outcome(engine, "billing", body.as_bytes()).await, Outcome::Accepted);
}

/// The ids of what can be claimed now; what is claimed stays so.
async fn due<E: Engine>(engine: &E) -> Vec<String> {
    let claimed = claim(engine, 10, LEASE).await;
    let mut ids: Vec<_> = claimed.into_iter().map(|claimed| claimed.event.id).collect();
    ids.sort();
    ids
}

async fn process<E: Engine>(engine: &E, claimed: &Claimed) {
    let store = engine.inbox().store();
    let worked = store.process(claimed, &E::handler(BOOK), LIMIT).await.unwrap();
    assert_eq!(worked, Worked::Processed);
}

async fn to_review<E: Engine>(engine: &E, claimed: &Claimed) {
    let never = Fault { text: "no such customer".into(), then: Then::Review };
    assert_eq!(engine.inbox().store().fail(claimed, &never).await.unwrap(), Failed::Review);
}

pub(crate) async fn events_of_one_key_take_effect_in_the_order_of_their_receipts<E: Engine>() {
    // Each writes how many came before it.
    let count = "INSERT INTO ledger SELECT :event_id, count(*) FROM ledger";
    let engine = ordered::<E>(count, OrderByKey::Block).await;
    for n in 10..30 {
        put(&engine, &format!("evt_{n}"), "in_1").await;
    }
    let all = "SELECT n FROM (SELECT count(*) AS n FROM ichido.done) c WHERE n = 20";
    work_until(&engine, "all are done", all).await;
    let rows = engine.rows("SELECT event_id, amount FROM ledger ORDER BY event_id").await;
    let expected: Vec<_> = (0..20).map(|n| format!("evt_{}|{n}", n + 10)).collect();
    assert_eq!(rows, expected);
    sound(&engine).await;
}

pub(crate) async fn a_follower_is_due_when_its_head_is_done_and_other_keys_do_not_wait<
    E: Engine,
>() {
    let engine = ordered::<E>(BOOK, OrderByKey::Block).await;
    for (id, key) in [("evt_1", "in_1"), ("evt_2", "in_1"), ("evt_3", "in_1"), ("evt_4", "in_2")] {
        put(&engine, id, key).await;
    }
    let head = claim_one(&engine, LEASE).await;
    assert_eq!(head.event.id, "evt_1");
    assert_eq!(due(&engine).await, ["evt_4"]);
    process(&engine, &head).await;
    assert_eq!(due(&engine).await, ["evt_2"]);
    sound(&engine).await;
}

pub(crate) async fn a_head_that_fails_keeps_its_place<E: Engine>() {
    let engine = ordered::<E>(BOOK, OrderByKey::Skip).await;
    for id in ["evt_1", "evt_2"] {
        put(&engine, id, "in_1").await;
    }
    let head = claim_one(&engine, LEASE).await;
    let soon = Fault { text: "not yet".into(), then: Then::Later(Duration::ZERO) };
    assert_eq!(engine.inbox().store().fail(&head, &soon).await.unwrap(), Failed::Retry);
    let head = claim_one(&engine, LEASE).await;
    assert_eq!((head.event.id.as_str(), head.event.attempt), ("evt_1", 2));
    assert!(engine.inbox().store().release(&head, Duration::ZERO).await.unwrap());
    assert_eq!(due(&engine).await, ["evt_1"]);
    sound(&engine).await;
}

pub(crate) async fn a_head_in_review_blocks_its_key_where_the_endpoint_says_so<E: Engine>() {
    let engine = ordered::<E>(BOOK, OrderByKey::Block).await;
    for id in ["evt_1", "evt_2"] {
        put(&engine, id, "in_1").await;
    }
    to_review(&engine, &claim_one(&engine, LEASE).await).await;
    put(&engine, "evt_3", "in_1").await;
    put(&engine, "evt_4", "in_2").await;
    assert_eq!(due(&engine).await, ["evt_4"]);
    assert_eq!(engine.inbox().store().sweep().await.unwrap(), 0);
    assert!(due(&engine).await.is_empty());
    sound(&engine).await;
}

pub(crate) async fn a_head_in_review_is_skipped_where_the_endpoint_says_so<E: Engine>() {
    let engine = ordered::<E>(BOOK, OrderByKey::Skip).await;
    for id in ["evt_1", "evt_2"] {
        put(&engine, id, "in_1").await;
    }
    to_review(&engine, &claim_one(&engine, LEASE).await).await;
    put(&engine, "evt_3", "in_1").await;
    assert_eq!(due(&engine).await, ["evt_2"]);
    sound(&engine).await;
}

pub(crate) async fn a_head_whose_lease_ran_out_at_its_last_attempt_is_skipped<E: Engine>() {
    let endpoint = billing::<E>(&[("*", BOOK)]).mode(Mode::Async);
    let endpoint = endpoint.order_by_key(OrderByKey::Skip).max_attempts(1);
    let engine = E::open(vec![endpoint]).await;
    for id in ["evt_1", "evt_2"] {
        put(&engine, id, "in_1").await;
    }
    assert_eq!(claim_one(&engine, Duration::from_millis(1)).await.event.id, "evt_1");
    assert_eq!(claim_one(&engine, LEASE).await.event.id, "evt_2");
    assert_eq!(engine.rows("SELECT attempts FROM ichido.review").await, ["1"]);
    sound(&engine).await;
}

pub(crate) async fn a_late_worker_does_not_let_the_next_of_its_key_come<E: Engine>() {
    let engine = ordered::<E>(BOOK, OrderByKey::Block).await;
    for id in ["evt_1", "evt_2", "evt_3"] {
        put(&engine, id, "in_1").await;
    }
    let late = claim_one(&engine, Duration::from_millis(1)).await;
    let again = claim_one(&engine, LEASE).await;
    assert_eq!(late.event.id, again.event.id);
    let store = engine.inbox().store();
    let lost = store.process(&late, &E::handler(BOOK), LIMIT).await.unwrap();
    assert_eq!(lost, Worked::Lost);
    assert!(due(&engine).await.is_empty());
    process(&engine, &again).await;
    assert_eq!(due(&engine).await, ["evt_2"]);
    sound(&engine).await;
}
