//! Events that were signed once by the senders' own libraries (see `data/make_sdk_signed.py`).

mod support;

use ichido_verify::{Rejection, Verdict};
use support::Vector;

fn signed() -> Vec<Vector> {
    let signed = Vector::load(include_str!("data/sdk_signed.json"));
    assert_eq!(signed.len(), 5);
    signed
}

#[test]
fn what_the_sdks_sign_is_accepted() {
    for vector in signed() {
        let verdict = vector.verifier().unwrap().verify(vector.request(), vector.now());
        let Ok(Verdict::Delivery(delivery)) = verdict else {
            panic!("{}: {verdict:?}", vector.name());
        };
        let event = &delivery.events[0];
        assert_eq!(Some(event.id()), vector.text("event_id"));
        assert_eq!(Some(event.event_type()), vector.text("event_type"));
        assert_eq!(event.order_key(), vector.text("order_key"));
        assert_eq!(delivery.secret, 0);
    }
}

#[test]
fn what_the_sdks_sign_is_refused_with_any_byte_changed() {
    for vector in signed() {
        let verifier = vector.verifier().unwrap();
        for at in 0..vector.request().body.len() {
            let mut request = vector.request();
            let mut body = request.body.to_vec();
            body[at] = body[at].wrapping_add(1);
            request.body = body.into();
            let verdict = verifier.verify(request, vector.now());
            assert_eq!(verdict.unwrap_err(), Rejection::WrongSignature, "{}", vector.name());
        }
    }
}

#[test]
fn what_the_sdks_sign_is_refused_with_any_byte_of_its_signature_changed() {
    let headers =
        ["stripe-signature", "webhook-signature", "svix-signature", "x-hub-signature-256"];
    for vector in signed() {
        let verifier = vector.verifier().unwrap();
        let request = vector.request();
        let (name, value) =
            request.headers.iter().find(|(name, _)| headers.contains(name)).unwrap();
        // Stripe's test scheme v0 comes last and never counts, so it may be anything.
        let counts = value.windows(4).position(|part| part == b",v0=").unwrap_or(value.len());
        for at in 0..counts {
            let mut changed = value.to_vec();
            changed[at] = changed[at].wrapping_add(1);
            let mut forged = request.clone();
            forged.headers.remove(name);
            forged.headers.push(name, &changed);
            let verdict = verifier.verify(forged, vector.now());
            assert!(verdict.is_err(), "{} byte {at}", vector.name());
        }
    }
}
