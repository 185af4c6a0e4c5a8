//! What a human decides: nothing is dropped, and of two who decide at once one does.

use std::time::Duration;

use ichido::{Desk, Failed, Fault, Mode, OrderByKey, Store, Then};

use crate::{
    engines::{BOOK, Engine, billing, deliver, event, sound},
    workers::{claim_one, waiting, work_until},
};

const LEASE: Duration = Duration::from_mins(1);

async fn to_review<E: Engine>(engine: &E) {
    let claimed = claim_one(engine, LEASE).await;
    let never = Fault { text: "no such customer".into(), then: Then::Review };
    assert_eq!(engine.inbox().store().fail(&claimed, &never).await.unwrap(), Failed::Review);
}

/// An event that needs review.
async fn reviewed<E: Engine>() -> E {
    let engine = waiting::<E>(BOOK, 10).await;
    to_review(&engine).await;
    engine
}

pub(crate) async fn what_needs_review_is_listed_with_its_reason<E: Engine>() {
    let engine = reviewed::<E>().await;
    let reviews = engine.inbox().store().reviews(10).await.unwrap();
    let [review] = &reviews[..] else { panic!("one: {reviews:?}") };
    let about = (&*review.endpoint, &*review.event_id, &*review.event_type, review.attempts);
    assert_eq!(about, ("billing", "evt_1", "invoice.paid", 1));
    assert_eq!(review.reason, "no such customer");
    assert!(review.since.starts_with("20") && review.since.ends_with('Z'), "{review:?}");
    assert!(engine.inbox().store().reviews(0).await.unwrap().is_empty());
}

pub(crate) async fn a_requeued_event_gets_fresh_attempts_and_keeps_its_history<E: Engine>() {
    let engine = reviewed::<E>().await;
    let store = engine.inbox().store();
    let receipt = store.reviews(1).await.unwrap()[0].receipt;
    assert!(store.requeue(receipt).await.unwrap());
    assert!(!store.requeue(receipt).await.unwrap());
    assert!(!store.discard(receipt, "too late").await.unwrap());
    assert_eq!(engine.rows("SELECT attempts, lane FROM ichido.work").await, ["0|retry"]);
    let done = "SELECT outcome, attempts FROM ichido.done";
    assert_eq!(work_until(&engine, "it is done", done).await, ["processed|1"]);
    let history = engine.rows("SELECT error FROM ichido.attempt").await;
    assert_eq!(history, ["no such customer"]);
    sound(&engine).await;
}

pub(crate) async fn a_discarded_event_stays_with_the_reason<E: Engine>() {
    let engine = reviewed::<E>().await;
    let store = engine.inbox().store();
    let receipt = store.reviews(1).await.unwrap()[0].receipt;
    assert!(store.discard(receipt, " ").await.is_err());
    assert!(store.discard(receipt, "a test event").await.unwrap());
    assert!(!store.requeue(receipt).await.unwrap());
    let done = engine.rows("SELECT outcome, note FROM ichido.done").await;
    assert_eq!(done, ["discarded|a test event (it needed review: no such customer)"]);
    sound(&engine).await;
}

pub(crate) async fn a_replay_is_a_new_run_that_somebody_asked_for<E: Engine>() {
    let engine = waiting::<E>(BOOK, 10).await;
    let store = engine.inbox().store();
    let body = event("evt_1", "invoice.paid", 5, 1);
    let receipt = deliver(&engine, "billing", &body).await.unwrap().receipt;
    let early = store.replay(receipt, "ada", "to see it").await.unwrap_err();
    assert!(early.to_string().contains("is not done"), "{early}");
    work_until(&engine, "it is done", "SELECT 1 FROM ichido.done").await;
    assert!(store.replay(receipt, "ada", "").await.is_err());
    assert_eq!(store.replay(receipt, "ada", "the ledger was restored").await.unwrap(), 1);
    let again = "SELECT run, outcome FROM ichido.done WHERE run = 1";
    assert_eq!(work_until(&engine, "it is done again", again).await, ["1|processed"]);
    assert_eq!(engine.rows("SELECT event_id FROM ledger").await, ["evt_1", "evt_1"]);
    let asked = engine.rows("SELECT replayed_by, reason FROM ichido.replay").await;
    assert_eq!(asked, ["ada|the ledger was restored"]);
    sound(&engine).await;
}

pub(crate) async fn an_event_that_nobody_knows_is_not_replayed<E: Engine>() {
    let engine = waiting::<E>(BOOK, 10).await;
    let unknown = ichido::receipt_id("billing", "evt_9");
    let refused = engine.inbox().store().replay(unknown, "ada", "x").await.unwrap_err();
    assert!(refused.to_string().contains("unknown event"), "{refused}");
    assert!(!engine.inbox().store().requeue(unknown).await.unwrap());
}

pub(crate) async fn a_flag_is_listed_until_it_is_closed<E: Engine>() {
    let engine = E::open(vec![billing::<E>(&[("*", E::FLAG)])]).await;
    deliver(&engine, "billing", &event("evt_1", "invoice.paid", 5, 1)).await.unwrap();
    let store = engine.inbox().store();
    let flags = store.flags(10).await.unwrap();
    let [flag] = &flags[..] else { panic!("one: {flags:?}") };
    let about = (&*flag.endpoint, &*flag.event_id, &*flag.reason);
    assert_eq!(about, ("billing", "evt_1", "look"));
    assert!(store.close_flag("x", "seen").await.is_err());
    assert!(store.close_flag(&flag.flag, "seen").await.unwrap());
    assert!(!store.close_flag(&flag.flag, "seen").await.unwrap());
    assert!(store.flags(10).await.unwrap().is_empty());
    assert_eq!(engine.rows("SELECT note FROM ichido.flag").await, ["seen"]);
}

pub(crate) async fn a_human_moves_the_line_that_an_event_in_review_blocked<E: Engine>() {
    let endpoint = billing::<E>(&[("*", BOOK)]).mode(Mode::Async).order_by_key(OrderByKey::Block);
    let engine = E::open(vec![endpoint]).await;
    for id in ["evt_1", "evt_2"] {
        deliver(&engine, "billing", &event(id, "invoice.paid", 5, 1)).await.unwrap();
    }
    let due = "SELECT e.event_id FROM ichido.work w JOIN ichido.event e ON e.id = w.id \
               WHERE w.next_at IS NOT NULL";
    let store = engine.inbox().store();
    to_review(&engine).await;
    assert!(engine.rows(due).await.is_empty());
    let receipt = store.reviews(1).await.unwrap()[0].receipt;
    assert!(store.requeue(receipt).await.unwrap());
    assert_eq!(engine.rows(due).await, ["evt_1"]);
    to_review(&engine).await;
    assert!(store.discard(receipt, "a test event").await.unwrap());
    assert_eq!(engine.rows(due).await, ["evt_2"]);
    sound(&engine).await;
}
