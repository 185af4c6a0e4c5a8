//! Workers: what was stored first takes effect once, whoever works on it and however it ends.

use std::time::Duration;

use ichido::{Claim, Claimed, Failed, Fault, Lane, Mode, Outcome, Store, Then, Worked};
use ichido_testkit::eventually;

use crate::engines::{BOOK, Engine, billing, deliver, event, outcome, sound};

pub(crate) const DEADLINE: Duration = Duration::from_secs(20);
const LANES: [Lane; 3] = [Lane::Fresh, Lane::Retry, Lane::Backfill];

/// An inbox with one async endpoint, and an event that waits in it.
pub(crate) async fn waiting<E: Engine>(handler: &str, max_attempts: u16) -> E {
    let endpoint = billing::<E>(&[("invoice.*", handler)]).mode(Mode::Async);
    let engine = E::open(vec![endpoint.max_attempts(max_attempts)]).await;
    put(&engine, "evt_1").await;
    engine
}

async fn put<E: Engine>(engine: &E, id: &str) {
    let body = event(id, "invoice.paid", 5, 1);
    assert_eq!(outcome(engine, "billing", &body).await, Outcome::Accepted);
}

/// Claims as a worker does.
pub(crate) async fn claim<E: Engine>(engine: &E, most: usize, lease: Duration) -> Vec<Claimed> {
    let queues = ["billing".into()];
    let claim = Claim { queues: &queues, lanes: &LANES, most, lease };
    engine.inbox().store().claim(&claim).await.unwrap()
}

/// Claims one, as soon as it is due.
pub(crate) async fn claim_one<E: Engine>(engine: &E, lease: Duration) -> Claimed {
    let one = async || claim(engine, 1, lease).await.pop();
    eventually("an event that is due", DEADLINE, one).await.unwrap()
}

/// Runs a worker until `done` gives rows.
pub(crate) async fn work_until<E: Engine>(engine: &E, what: &str, done: &str) -> Vec<String> {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = tokio::spawn(engine.inbox().worker().run(async {
        drop(stopped.await);
    }));
    let rows = async || Some(engine.rows(done).await).filter(|rows| !rows.is_empty());
    let rows = eventually(what, DEADLINE, rows).await;
    drop(stop);
    worker.await.unwrap();
    rows.unwrap()
}

pub(crate) async fn an_async_event_is_processed_by_a_worker_and_no_work_remains<E: Engine>() {
    let engine = waiting::<E>(BOOK, 10).await;
    let done = "SELECT outcome, attempts, queue FROM ichido.done";
    let done = work_until(&engine, "the event is done", done).await;
    assert_eq!(done, ["processed|1|billing"]);
    assert_eq!(engine.rows("SELECT event_id, amount FROM ledger").await, ["evt_1|1"]);
    assert!(engine.rows("SELECT 1 FROM ichido.work").await.is_empty());
    sound(&engine).await;
}

pub(crate) async fn a_running_worker_hears_of_an_event_that_its_process_stores<E: Engine>() {
    let engine = waiting::<E>(BOOK, 10).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = tokio::spawn(engine.inbox().worker().run(async {
        drop(stopped.await);
    }));
    for count in 2..20 {
        put(&engine, &format!("evt_{count}")).await;
    }
    let all = async || {
        let rows = engine.rows("SELECT count(*) FROM ledger").await;
        (rows == ["19"]).then_some(())
    };
    eventually("all are done", DEADLINE, all).await.unwrap();
    drop(stop);
    worker.await.unwrap();
    sound(&engine).await;
}

pub(crate) async fn a_kept_event_is_processed_by_a_worker_once_its_handler_can<E: Engine>() {
    let handler = format!("{BOOK}; INSERT INTO checked SELECT amount FROM ledger");
    let engine = E::open(vec![billing::<E>(&[("*", &handler)])]).await;
    let body = event("evt_1", "invoice.paid", 5, 1);
    assert_eq!(outcome(&engine, "billing", &body).await, Outcome::Accepted);
    engine.rows("CREATE TABLE checked (amount int)").await;
    let done = "SELECT outcome FROM ichido.done";
    assert_eq!(work_until(&engine, "the kept event is done", done).await, ["processed"]);
    assert_eq!(engine.rows("SELECT event_id FROM ledger").await, ["evt_1"]);
    assert_eq!(outcome(&engine, "billing", &body).await, Outcome::Duplicate);
    sound(&engine).await;
}

pub(crate) async fn an_event_that_always_fails_needs_review_after_its_last_attempt<E: Engine>() {
    let engine = waiting::<E>(&format!("{BOOK}; INSERT INTO switch SELECT 1 FROM off"), 2).await;
    let review = "SELECT attempts, queue, reason FROM ichido.review";
    let review = work_until(&engine, "the event needs review", review).await;
    assert!(review[0].starts_with("2|billing|") && review[0].contains("switch"), "{review:?}");
    let attempts = engine.rows("SELECT attempt FROM ichido.attempt ORDER BY attempt").await;
    assert_eq!(attempts, ["1", "2"]);
    assert!(engine.rows("SELECT 1 FROM ledger").await.is_empty());
    sound(&engine).await;
}

pub(crate) async fn a_worker_whose_lease_ran_out_has_no_effect_beside_the_next_one<E: Engine>() {
    let engine = waiting::<E>(BOOK, 10).await;
    let (store, handler) = (engine.inbox().store(), E::handler(BOOK));
    let first = claim_one(&engine, Duration::from_millis(1)).await;
    let second = claim_one(&engine, Duration::from_mins(1)).await;
    assert_ne!(first.lease, second.lease);
    let limit = Duration::from_secs(2);
    let processed = store.process(&second, &handler, limit).await.unwrap();
    assert_eq!(processed, Worked::Processed);
    assert_eq!(store.process(&first, &handler, limit).await.unwrap(), Worked::Lost);
    assert_eq!(store.process(&second, &handler, limit).await.unwrap(), Worked::Lost);
    assert_eq!(store.fail(&first, &Fault::retry("late")).await.unwrap(), Failed::Lost);
    assert!(!store.release(&first, Duration::ZERO).await.unwrap());
    assert_eq!(engine.rows("SELECT event_id FROM ledger").await, ["evt_1"]);
    assert_eq!(engine.rows("SELECT attempts FROM ichido.done").await, ["2"]);
    sound(&engine).await;
}

pub(crate) async fn a_failed_handler_leaves_nothing_but_its_error<E: Engine>() {
    let failing = format!("{BOOK}; INSERT INTO switch SELECT 1 FROM off");
    let engine = waiting::<E>(&failing, 10).await;
    let claimed = claim_one(&engine, Duration::from_mins(1)).await;
    let store = engine.inbox().store();
    let worked = store.process(&claimed, &E::handler(&failing), Duration::from_secs(2)).await;
    let Worked::Failed(fault) = worked.unwrap() else { panic!("it should fail") };
    assert!(fault.text.contains("switch"), "{fault:?}");
    assert!(engine.rows("SELECT 1 FROM ledger").await.is_empty());
    assert_eq!(store.fail(&claimed, &fault).await.unwrap(), Failed::Retry);
    let work = engine.rows("SELECT lane, attempts, lease FROM ichido.work").await;
    assert_eq!(work, ["retry|1|0"]);
    sound(&engine).await;
}

pub(crate) async fn a_fault_says_when_its_event_comes_back_or_that_it_does_not<E: Engine>() {
    let engine = waiting::<E>(BOOK, 10).await;
    let store = engine.inbox().store();
    let claimed = claim_one(&engine, Duration::from_mins(1)).await;
    let later = Fault { text: "not yet".into(), then: Then::Later(Duration::from_hours(1)) };
    assert_eq!(store.fail(&claimed, &later).await.unwrap(), Failed::Retry);
    assert!(claim(&engine, 1, Duration::from_mins(1)).await.is_empty());
    put(&engine, "evt_2").await;
    let claimed = claim_one(&engine, Duration::from_mins(1)).await;
    let never = Fault { text: "no such customer".into(), then: Then::Review };
    assert_eq!(store.fail(&claimed, &never).await.unwrap(), Failed::Review);
    let review = engine.rows("SELECT attempts, reason FROM ichido.review").await;
    assert_eq!(review, ["1|no such customer"]);
    sound(&engine).await;
}

pub(crate) async fn an_event_whose_lease_ran_out_is_claimed_alone_and_stops_at_its_limit<
    E: Engine,
>() {
    let engine = waiting::<E>(BOOK, 2).await;
    let short = Duration::from_millis(1);
    assert_eq!(claim_one(&engine, short).await.event.attempt, 1);
    for id in ["evt_2", "evt_3"] {
        put(&engine, id).await;
    }
    // The fresh lane comes first; what ran out waits in it at the front, and alone.
    let alone = async || {
        let claimed = claim(&engine, 10, short).await;
        claimed.iter().any(|c| c.event.id == "evt_1").then_some(claimed)
    };
    let alone = eventually("the lease has run out", DEADLINE, alone).await.unwrap();
    assert_eq!(alone.iter().map(|c| c.event.attempt).collect::<Vec<_>>(), [2]);
    let review = async || {
        claim(&engine, 10, Duration::from_mins(1)).await;
        engine.rows("SELECT attempts FROM ichido.review").await.pop()
    };
    assert_eq!(eventually("it needs review", DEADLINE, review).await.unwrap(), "2");
    let errors = engine.rows("SELECT error FROM ichido.attempt").await;
    assert!(errors.iter().all(|error| error.contains("lease ran out")), "{errors:?}");
    sound(&engine).await;
}

pub(crate) async fn what_is_given_back_was_not_tried<E: Engine>() {
    let engine = waiting::<E>(BOOK, 10).await;
    let claimed = claim_one(&engine, Duration::from_mins(1)).await;
    assert!(engine.inbox().store().release(&claimed, Duration::ZERO).await.unwrap());
    let work = engine.rows("SELECT attempts, lease, lane FROM ichido.work").await;
    assert_eq!(work, ["0|0|fresh"]);
    assert_eq!(claim_one(&engine, Duration::from_mins(1)).await.event.attempt, 1);
}

pub(crate) async fn a_type_without_a_handler_in_this_worker_goes_back_untried<E: Engine>() {
    let engine = waiting::<E>(BOOK, 10).await;
    // As if an older worker met an event that a newer process stored.
    engine.rows("UPDATE ichido.event SET event_type = 'customer.created'").await;
    let back = "SELECT attempts, lease FROM ichido.work WHERE claimed_at IS NULL AND next_at > \
                received_at";
    assert_eq!(work_until(&engine, "it goes back", back).await, ["0|0"]);
    assert!(engine.rows("SELECT 1 FROM ledger").await.is_empty());
    assert!(engine.rows("SELECT 1 FROM ichido.done").await.is_empty());
}

pub(crate) async fn lanes_are_claimed_in_the_order_asked_for<E: Engine>() {
    let engine = waiting::<E>(BOOK, 10).await;
    for id in ["evt_2", "evt_3"] {
        put(&engine, id).await;
    }
    let lane = |lane, id| {
        format!(
            "UPDATE ichido.work SET lane = '{lane}' WHERE id = \
             (SELECT e.id FROM ichido.event e WHERE e.event_id = '{id}')"
        )
    };
    engine.rows(&lane("backfill", "evt_1")).await;
    engine.rows(&lane("retry", "evt_2")).await;
    let claimed = claim(&engine, 10, Duration::from_mins(1)).await;
    let ids: Vec<_> = claimed.iter().map(|c| (c.event.id.as_str(), c.lane)).collect();
    let expected = [("evt_3", Lane::Fresh), ("evt_2", Lane::Retry), ("evt_1", Lane::Backfill)];
    assert_eq!(ids, expected);
}

pub(crate) async fn a_claimed_event_is_the_one_that_was_received<E: Engine>() {
    let endpoint = billing::<E>(&[("invoice.*", BOOK)]).mode(Mode::Async);
    let engine = E::open(vec![endpoint]).await;
    let body = event("evt_1", "invoice.paid", 5, 1);
    let taken = deliver(&engine, "billing", &body).await.unwrap();
    let claimed = claim_one(&engine, Duration::from_mins(1)).await;
    let event = &claimed.event;
    assert_eq!((event.receipt, &event.body[..]), (taken.receipt, &body[..]));
    assert_eq!((&*event.id, &*event.event_type), ("evt_1", "invoice.paid"));
    assert_eq!((&*event.endpoint, &*event.provider), ("billing", "stripe"));
    assert_eq!((event.attempt, event.run), (1, 0));
    assert_eq!(event.occurred_at.unwrap().as_second(), 1_760_000_000);
}
