//! What becomes of an event that nothing goes wrong with.

use ichido::{Mode, Outcome, ReceiveError, verify};

use crate::engines::{
    BOOK, Engine, billing, deliver, endpoint, event, outcome, receive, signed, sound,
};

pub(crate) async fn eight_deliveries_at_once_are_one_effect_and_seven_duplicates<E: Engine>() {
    let engine = E::open(vec![billing::<E>(&[("invoice.paid", BOOK)])]).await;
    let body = event("evt_1", "invoice.paid", 5, 1);
    let all = (0..8).map(|_| outcome(&engine, "billing", &body));
    let mut all = futures_util::future::join_all(all).await;
    all.sort();
    assert_eq!(all[0], Outcome::Processed);
    assert_eq!(all[1..], [Outcome::Duplicate; 7]);
    assert_eq!(engine.rows("SELECT event_id, amount FROM ledger").await, ["evt_1|1"]);
    sound(&engine).await;
}

pub(crate) async fn an_event_whose_type_has_no_handler_is_stored_and_ignored<E: Engine>() {
    let engine = E::open(vec![billing::<E>(&[("invoice.paid", BOOK)])]).await;
    let body = event("evt_1", "charge.refunded", 5, 1);
    assert_eq!(outcome(&engine, "billing", &body).await, Outcome::Ignored);
    assert_eq!(outcome(&engine, "billing", &body).await, Outcome::Duplicate);
    assert_eq!(engine.rows("SELECT outcome FROM ichido.done").await, ["ignored"]);
    assert_eq!(engine.rows("SELECT count(*) FROM ichido.delivery").await, ["1"]);
    sound(&engine).await;
}

pub(crate) async fn an_async_event_is_accepted_and_waits_as_fresh_work<E: Engine>() {
    let engine = E::open(vec![billing::<E>(&[("*", BOOK)]).mode(Mode::Async)]).await;
    let body = event("evt_1", "invoice.paid", 5, 1);
    assert_eq!(outcome(&engine, "billing", &body).await, Outcome::Accepted);
    assert_eq!(outcome(&engine, "billing", &body).await, Outcome::Duplicate);
    let work = engine.rows("SELECT queue, lane, attempts, last_error FROM ichido.work").await;
    assert_eq!(work, ["billing|fresh|0|-"]);
    assert!(engine.rows("SELECT 1 FROM ledger").await.is_empty());
    sound(&engine).await;
}

pub(crate) async fn a_type_left_to_a_worker_waits_in_its_queue<E: Engine>() {
    let engine = E::open(vec![billing::<E>(&[("*", BOOK)]).leave("invoice.*", "accounting")]).await;
    let body = event("evt_1", "invoice.paid", 5, 1);
    assert_eq!(outcome(&engine, "billing", &body).await, Outcome::Accepted);
    assert_eq!(engine.rows("SELECT queue FROM ichido.work").await, ["accounting"]);
    sound(&engine).await;
}

pub(crate) async fn one_event_at_two_endpoints_takes_effect_at_each<E: Engine>() {
    let endpoints = ["billing", "books"].map(|name| endpoint::<E>(name, &[("*", BOOK)]));
    let engine = E::open(endpoints.into()).await;
    let body = event("evt_1", "invoice.paid", 5, 1);
    assert_eq!(outcome(&engine, "billing", &body).await, Outcome::Processed);
    assert_eq!(outcome(&engine, "books", &body).await, Outcome::Processed);
    assert_eq!(engine.rows("SELECT count(*) FROM ledger").await, ["2"]);
    sound(&engine).await;
}

pub(crate) async fn a_forged_delivery_leaves_nothing_and_blocks_nothing<E: Engine>() {
    let engine = E::open(vec![billing::<E>(&[("*", BOOK)])]).await;
    let body = event("evt_1", "invoice.paid", 5, 1);
    let mut forged = signed(engine.inbox(), "billing", &body);
    forged.body = event("evt_1", "invoice.paid", 6, 1).into();
    let refused = receive(&engine, "billing", forged).await;
    assert!(matches!(refused, Err(ReceiveError::Rejected { status: 400, .. })), "{refused:?}");
    assert_eq!(outcome(&engine, "billing", &body).await, Outcome::Processed);
    assert_eq!(engine.rows("SELECT count(*) FROM ichido.delivery").await, ["1"]);
}

pub(crate) async fn a_vouched_event_is_recorded_as_vouched_and_never_conflicts<E: Engine>() {
    let engine = E::open(vec![billing::<E>(&[("*", BOOK)])]).await;
    let vouch = |amount| {
        let body = event("evt_1", "invoice.paid", amount, 0).into();
        verify::vouch("evt_1", "invoice.paid", body, None).unwrap()
    };
    let first = engine.inbox().vouch("billing", vouch(5)).await.unwrap();
    assert_eq!(first.outcome, Outcome::Processed);
    let again = engine.inbox().vouch("billing", vouch(6)).await.unwrap();
    assert_eq!((again.outcome, again.conflict), (Outcome::Duplicate, false));
    let live = deliver(&engine, "billing", &event("evt_1", "invoice.paid", 7, 1)).await.unwrap();
    assert_eq!((live.outcome, live.conflict), (Outcome::Duplicate, false));
    let signed = "SELECT count(*) FROM ichido.event WHERE signed";
    assert_eq!(engine.rows(signed).await, ["0"]);
    sound(&engine).await;
}

pub(crate) async fn an_exact_handler_runs_before_a_prefix_and_a_prefix_before_the_default<
    E: Engine,
>() {
    let book = |n| format!("INSERT INTO ledger VALUES (:event_id, {n})");
    let (exact, prefix, rest) = (book(1), book(2), book(3));
    let handlers = [("invoice.paid", &*exact), ("invoice.*", &*prefix), ("*", &*rest)];
    let engine = E::open(vec![billing::<E>(&handlers)]).await;
    for (id, event_type) in [("a", "invoice.paid"), ("b", "invoice.sent"), ("c", "charge.x")] {
        outcome(&engine, "billing", &event(id, event_type, 5, 1)).await;
    }
    let ledger = engine.rows("SELECT event_id, amount FROM ledger ORDER BY 1").await;
    assert_eq!(ledger, ["a|1", "b|2", "c|3"]);
}

pub(crate) async fn the_view_shows_one_row_an_event_with_what_became_of_it<E: Engine>() {
    let engine = E::open(vec![
        billing::<E>(&[("a.ok", BOOK), ("a.bad", "INSERT INTO nowhere VALUES (1)")]),
        endpoint::<E>("later", &[("*", BOOK)]).mode(Mode::Async),
    ])
    .await;
    outcome(&engine, "billing", &event("evt_1", "a.ok", 5, 1)).await;
    outcome(&engine, "billing", &event("evt_2", "a.bad", 5, 1)).await;
    outcome(&engine, "later", &event("evt_3", "a.ok", 5, 1)).await;
    outcome(&engine, "billing", b"\xff not json").await;
    let rows = engine
        .rows(
            "SELECT endpoint, event_type, CASE WHEN payload IS NULL THEN 'bytes' ELSE 'json' END, \
             CASE WHEN last_error IS NULL THEN 'well' ELSE 'failed' END, \
             CASE WHEN processed_at IS NULL THEN 'open' ELSE 'done' END \
             FROM ichido.webhook_inbox ORDER BY received_at",
        )
        .await;
    let want = [
        "billing|a.ok|json|well|done",
        "billing|a.bad|json|failed|open",
        "later|a.ok|json|well|open",
        "billing|unreadable|bytes|failed|open",
    ];
    assert_eq!(rows, want);
}

pub(crate) async fn a_closed_inbox_refuses<E: Engine>() {
    use ichido::Store;
    let engine = E::open(vec![billing::<E>(&[("*", BOOK)]).mode(Mode::Async)]).await;
    let body = event("evt_1", "invoice.paid", 5, 1);
    let request = signed(engine.inbox(), "billing", &body);
    engine.inbox().store().close().await;
    let refused = receive(&engine, "billing", request).await;
    assert!(matches!(refused, Err(ReceiveError::Store(_))), "{refused:?}");
}

pub(crate) async fn duplicates_are_counted_soon_and_at_the_latest_when_it_closes<E: Engine>() {
    use ichido::Store;
    let engine = E::open(vec![billing::<E>(&[("*", BOOK)])]).await;
    let body = event("evt_1", "invoice.paid", 5, 1);
    for _ in 0..3 {
        outcome(&engine, "billing", &body).await;
    }
    let counted = || async {
        let stats = engine.inbox().store().stats().await.unwrap();
        (stats.duplicates == 2).then_some(())
    };
    let deadline = std::time::Duration::from_secs(10);
    ichido_testkit::eventually("2 duplicates counted", deadline, counted).await.unwrap();
    outcome(&engine, "billing", &body).await;
    engine.inbox().store().close().await;
    assert_eq!(engine.rows("SELECT duplicates FROM ichido.endpoint").await, ["3"]);
}
