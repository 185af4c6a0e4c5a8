//! Bytes are the truth: whatever is verified is stored as it came, and answered 2xx.

use ichido::Outcome;

use crate::engines::{BOOK, Engine, billing, deliver, event, outcome, sound};

pub(crate) async fn odd_bodies_are_stored_byte_for_byte_and_acknowledged<E: Engine>() {
    let engine = E::open(vec![billing::<E>(&[("*", BOOK)])]).await;
    let nested = format!(r#"{{"id":"evt_n","type":"x","a":{}}}"#, "[".repeat(100_000));
    let closed =
        format!(r#"{{"id":"evt_c","type":"x","a":{}{}}}"#, "[".repeat(9_000), "]".repeat(9_000));
    let bodies: [&[u8]; 11] = [
        b"",
        b"\xff\xfe\x00 not text",
        br#"{"id":"evt_0","type":"x","a":"\u0000"}"#,
        br#"{"id":"evt_s","type":"x","a":"\ud800"}"#,
        br#"{"id":"evt_d","type":"x","a":1,"a":2}"#,
        br#"{"id":"evt_i","type":"x","a":12345678901234567890123}"#,
        br#"{"id":"evt_1","id":"evt_2","type":"x"}"#,
        b"<xml/>",
        b"payload=%7B%22id%22%3A1%7D",
        nested.as_bytes(),
        closed.as_bytes(),
    ];
    for body in bodies {
        let start = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
        let taken = deliver(&engine, "billing", body).await;
        assert_ne!(taken.expect(&start).outcome, Outcome::Duplicate, "{start}");
    }
    let mut stored = engine.rows("SELECT length(body) FROM ichido.delivery ORDER BY 1").await;
    let mut want: Vec<_> = bodies.iter().map(|body| body.len().to_string()).collect();
    stored.sort();
    want.sort();
    assert_eq!(stored, want);
    sound(&engine).await;
}

pub(crate) async fn a_delivery_without_a_usable_id_waits_for_a_human<E: Engine>() {
    let engine = E::open(vec![billing::<E>(&[("*", BOOK)])]).await;
    let body = br#"{"type":"invoice.paid"}"#;
    assert_eq!(outcome(&engine, "billing", body).await, Outcome::Accepted);
    assert_eq!(outcome(&engine, "billing", body).await, Outcome::Duplicate);
    let events = engine.rows("SELECT event_id, event_type FROM ichido.event").await;
    assert!(events[0].starts_with("sha256:") && events[0].ends_with("|unreadable"), "{events:?}");
    assert_eq!(engine.rows("SELECT count(*) FROM ichido.review").await, ["1"]);
    assert!(engine.rows("SELECT 1 FROM ledger").await.is_empty());
    sound(&engine).await;
}

pub(crate) async fn a_retry_with_another_pending_webhooks_is_a_duplicate_and_no_conflict<
    E: Engine,
>() {
    let engine = E::open(vec![billing::<E>(&[("*", BOOK)])]).await;
    outcome(&engine, "billing", &event("evt_1", "invoice.paid", 5, 2)).await;
    let retry = deliver(&engine, "billing", &event("evt_1", "invoice.paid", 5, 1)).await.unwrap();
    assert_eq!((retry.outcome, retry.conflict), (Outcome::Duplicate, false));
    assert_eq!(engine.rows("SELECT count(*) FROM ichido.conflict").await, ["0"]);
}

pub(crate) async fn the_same_id_with_another_amount_is_a_conflict_and_the_first_one_wins<
    E: Engine,
>() {
    use ichido::Store;
    let engine = E::open(vec![billing::<E>(&[("*", BOOK)])]).await;
    let first = deliver(&engine, "billing", &event("evt_1", "invoice.paid", 5, 1)).await.unwrap();
    for _ in 0..2 {
        let other =
            deliver(&engine, "billing", &event("evt_1", "invoice.paid", 6, 1)).await.unwrap();
        assert_eq!((other.outcome, other.conflict), (Outcome::Duplicate, true));
        assert_eq!(other.receipt, first.receipt);
    }
    assert_eq!(engine.inbox().store().stats().await.unwrap().conflicts, 1);
    let digests = "SELECT count(*) FROM ichido.conflict WHERE digest <> first_digest";
    assert_eq!(engine.rows(digests).await, ["1"]);
    assert_eq!(engine.rows("SELECT count(*) FROM ledger").await, ["1"]);
    sound(&engine).await;
}
