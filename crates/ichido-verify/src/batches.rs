//! Tests of deliveries that hold several events, on a row made up for them.
//!
//! No built-in provider here sends batches yet; what the row promises must hold all the same.

use std::borrow::Cow::Borrowed;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::provider::{Events, Provider, Source};
use crate::{Delivery, Request, Secret, Settings, Unreadable, Verdict, Verifier};

fn verifier() -> Verifier {
    let row = Provider {
        events: Events {
            batch: Borrowed(&[Borrowed("payload.events[]")]),
            json_field: None,
            id: Borrowed(&[Source::JsonOrInteger(Borrowed("id"))]),
            event_type: Borrowed(&[Source::Json(Borrowed("kind"))]),
            order_key: Borrowed(&[]),
            occurred_at: Borrowed(&[]),
        },
        ..crate::provider("shopify").unwrap().clone()
    };
    Verifier::from_row(row, &Settings::default(), &[Secret::new("s")]).unwrap()
}

fn verify(body: &'static str) -> Verdict {
    let verifier = verifier();
    let mut request = Request { body: body.into(), ..Request::default() };
    verifier.sign(&mut request, "", "", Timestamp::UNIX_EPOCH).unwrap();
    verifier.verify(request, Timestamp::UNIX_EPOCH).unwrap()
}

fn delivery(body: &'static str) -> Delivery {
    match verify(body) {
        Verdict::Delivery(delivery) => delivery,
        Verdict::Handshake(answer) => panic!("{answer:?}"),
    }
}

#[test]
fn each_event_of_a_batch_has_its_own_bytes_and_digest() {
    let body = r#"{"payload": {"events": [ {"id":"a","kind":"x"}, {"id":7}, {"id":[]} ]}}"#;
    let delivery = delivery(body);
    let events: Vec<_> = delivery
        .events
        .iter()
        .map(|event| {
            let bytes = &delivery.request.body[event.range()];
            assert_eq!(event.digest(), <[u8; 32]>::from(Sha256::digest(bytes)));
            (event.unreadable(), event.event_type(), std::str::from_utf8(bytes).unwrap())
        })
        .collect();
    assert_eq!(
        events,
        [
            (None, "x", r#"{"id":"a","kind":"x"}"#),
            (None, "", r#"{"id":7}"#),
            (Some(Unreadable::IdNotText), "unreadable", r#"{"id":[]}"#),
        ]
    );
    assert_eq!((delivery.events[0].id(), delivery.events[1].id()), ("a", "7"));
}

#[test]
fn an_empty_batch_is_a_heartbeat() {
    let verdict = verify(r#"{"payload":{"events":[]}}"#);
    assert!(matches!(verdict, Verdict::Handshake(answer) if answer.status == 200));
}

#[test]
fn a_body_without_its_batch_is_one_unreadable_event() {
    for body in [r#"{"payload":{}}"#, r#"{"payload":{"events":1}}"#, "x", ""] {
        let delivery = delivery(body);
        assert_eq!(delivery.events.len(), 1);
        assert!(delivery.events[0].unreadable().is_some());
        assert_eq!(delivery.events[0].range(), 0..body.len());
    }
}
