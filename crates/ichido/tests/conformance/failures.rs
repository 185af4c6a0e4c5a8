//! Handlers that fail: nothing of theirs stays, and the event is kept or refused whole.

use std::time::Duration;

use ichido::{ErrorKind, OnFailure, Outcome, ReceiveError};

use crate::engines::{BOOK, Engine, billing, deliver, event, outcome, sound};

/// Books, then fails: there is no such table.
fn book_then_fail() -> String {
    format!("{BOOK}; INSERT INTO switch SELECT 1 FROM off")
}

pub(crate) async fn a_refused_event_leaves_nothing_and_its_second_delivery_is_processed<
    E: Engine,
>() {
    // Fails until the table is there.
    let handler = format!("{BOOK}; INSERT INTO checked SELECT amount FROM ledger");
    let endpoint = billing::<E>(&[("*", &handler)]).on_failure(OnFailure::Refuse);
    let engine = E::open(vec![endpoint]).await;
    let body = event("evt_1", "invoice.paid", 5, 1);
    let refused = deliver(&engine, "billing", &body).await;
    let Err(ReceiveError::Store(error)) = refused else { panic!("{refused:?}") };
    assert_eq!(error.kind(), ErrorKind::Handler);
    for table in ["event", "delivery", "done", "work", "attempt"] {
        let count = engine.rows(&format!("SELECT count(*) FROM ichido.{table}")).await;
        assert_eq!(count, ["0"], "{table}");
    }
    engine.rows("CREATE TABLE checked (amount int)").await;
    assert_eq!(outcome(&engine, "billing", &body).await, Outcome::Processed);
    assert_eq!(engine.rows("SELECT event_id FROM ledger").await, ["evt_1"]);
    sound(&engine).await;
}

pub(crate) async fn a_kept_event_is_accepted_and_waits_with_its_error<E: Engine>() {
    let engine = E::open(vec![billing::<E>(&[("*", &book_then_fail())])]).await;
    let taken = deliver(&engine, "billing", &event("evt_1", "invoice.paid", 5, 1)).await.unwrap();
    assert_eq!(taken.outcome, Outcome::Accepted);
    assert!(taken.error.unwrap().contains("switch"));
    assert!(engine.rows("SELECT 1 FROM ledger").await.is_empty());
    assert!(engine.rows("SELECT 1 FROM ichido.done").await.is_empty());
    let work = engine.rows("SELECT queue, lane, attempts FROM ichido.work").await;
    assert_eq!(work, ["billing|retry|0"]);
    let error = engine.rows("SELECT last_error FROM ichido.work").await;
    assert!(error[0].contains("switch"), "{error:?}");
    assert_eq!(engine.rows("SELECT error FROM ichido.attempt").await, error);
    sound(&engine).await;
}

pub(crate) async fn a_duplicate_of_a_kept_event_does_not_run_the_handler_again<E: Engine>() {
    let engine = E::open(vec![billing::<E>(&[("*", &book_then_fail())])]).await;
    let body = event("evt_1", "invoice.paid", 5, 1);
    assert_eq!(outcome(&engine, "billing", &body).await, Outcome::Accepted);
    assert_eq!(outcome(&engine, "billing", &body).await, Outcome::Duplicate);
    assert_eq!(engine.rows("SELECT count(*) FROM ichido.attempt").await, ["1"]);
}

pub(crate) async fn a_handler_that_takes_too_long_is_kept_with_that_reason<E: Engine>() {
    for forever in [E::FOREVER, E::FOREVER_WRITING] {
        takes_too_long::<E>(forever).await;
    }
}

async fn takes_too_long<E: Engine>(forever: &str) {
    let handler = format!("{BOOK}; {forever}");
    let endpoint =
        billing::<E>(&[("slow", &handler), ("*", BOOK)]).handler_timeout(Duration::from_secs(1));
    let engine = E::open(vec![endpoint]).await;
    let taken = deliver(&engine, "billing", &event("evt_1", "slow", 5, 1)).await.unwrap();
    assert_eq!(taken.outcome, Outcome::Accepted);
    assert!(taken.error.unwrap().contains("handler_timeout"));
    assert!(engine.rows("SELECT 1 FROM ledger").await.is_empty());
    let after = event("evt_2", "fast", 5, 1);
    assert_eq!(outcome(&engine, "billing", &after).await, Outcome::Processed);
    sound(&engine).await;
}

fn message<E: Engine>() -> String {
    format!(
        "INSERT INTO {} (aggregate_type, aggregate_id, event_type, payload) \
         VALUES ('Invoice', 'in_1', 'Booked', '{{}}')",
        E::OUTBOX
    )
}

pub(crate) async fn a_message_leaves_no_trace_when_its_handler_fails<E: Engine>() {
    let handler = format!("{}; INSERT INTO switch SELECT 1 FROM off", message::<E>());
    let engine = E::open(vec![billing::<E>(&[("*", &handler)])]).await;
    outcome(&engine, "billing", &event("evt_1", "invoice.paid", 5, 1)).await;
    assert_eq!(engine.rows("SELECT count(*) FROM ichido.outbox").await, ["0"]);
    assert_eq!(engine.rows("SELECT count(*) FROM ichido.dispatch").await, ["0"]);
}

pub(crate) async fn a_message_without_a_route_is_kept_for_a_human<E: Engine>() {
    let engine = E::open(vec![billing::<E>(&[("*", &message::<E>())])]).await;
    outcome(&engine, "billing", &event("evt_1", "invoice.paid", 5, 1)).await;
    let outbox = "SELECT aggregate_type, aggregate_id, event_type FROM ichido.outbox";
    assert_eq!(engine.rows(outbox).await, ["Invoice|in_1|Booked"]);
    let dispatch = "SELECT destination, next_at FROM ichido.dispatch";
    assert_eq!(engine.rows(dispatch).await, ["|-"]);
    assert_eq!(broken(&engine).await, ["message_without_route"]);
}

/// The names of the invariants that do not hold.
async fn broken<E: Engine>(engine: &E) -> Vec<String> {
    use ichido::Store;
    let findings = engine.inbox().store().audit().await.unwrap();
    findings.into_iter().map(|finding| finding.invariant).collect()
}

pub(crate) async fn the_audit_names_what_is_broken<E: Engine>() {
    let engine = E::open(vec![billing::<E>(&[("*", BOOK)])]).await;
    outcome(&engine, "billing", &event("evt_1", "invoice.paid", 5, 1)).await;
    engine.rows("DELETE FROM ichido.done").await;
    assert_eq!(broken(&engine).await, ["event_without_state"]);
    engine.rows("DELETE FROM ichido.event").await;
    assert!(broken(&engine).await.is_empty());
}

pub(crate) async fn a_flag_is_on_an_event_that_was_processed<E: Engine>() {
    use ichido::Store;
    let engine = E::open(vec![billing::<E>(&[("*", E::FLAG)])]).await;
    let body = event("evt_1", "invoice.paid", 5, 1);
    assert_eq!(outcome(&engine, "billing", &body).await, Outcome::Processed);
    assert_eq!(engine.inbox().store().stats().await.unwrap().flags, 1);
    assert_eq!(engine.inbox().store().stats().await.unwrap().needs_review, 0);
    sound(&engine).await;
}
