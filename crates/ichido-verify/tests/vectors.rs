//! Every vector of a built-in provider: verdict, event id, type, order key, time, handshake.

mod support;

use ichido_verify::{Delivery, Provenance, Timestamp, Verdict, VerifiedEvent, provider};
use serde_json::Value;
use support::Vector;

fn vectors() -> Vec<Vector> {
    let all = Vector::load(include_str!("data/signatures.json"));
    assert_eq!(all.len(), 210);
    let old = ["github", "shopify", "slack", "standard-webhooks", "stripe", "svix"];
    let all = all.into_iter();
    all.filter(|v| old.contains(&v.provider()) && provider(v.provider()).is_some()).collect()
}

fn accepted(vector: &Vector) -> bool {
    vector.text("expect") == Some("accept")
}

fn verify(vector: &Vector) -> Option<Verdict> {
    vector.verifier().ok()?.verify(vector.request(), vector.now()).ok()
}

fn events() -> Vec<(Vector, VerifiedEvent)> {
    let deliveries = vectors().into_iter().filter_map(|vector| match verify(&vector)? {
        Verdict::Delivery(delivery) => Some((vector, delivery)),
        Verdict::Handshake(_) => None,
    });
    deliveries.map(|(vector, Delivery { mut events, .. })| (vector, events.remove(0))).collect()
}

#[test]
fn all_vectors_of_the_built_in_providers_are_there() {
    assert_eq!(vectors().len(), 60);
}

#[test]
fn every_verdict_is_as_expected() {
    for vector in vectors() {
        let verdict = verify(&vector);
        assert_eq!(verdict.is_some(), accepted(&vector), "{}: {verdict:?}", vector.name());
    }
}

#[test]
fn every_event_has_the_expected_id() {
    for (vector, event) in events() {
        match vector.text("expect_event_id") {
            Some(id) => assert_eq!(event.id(), id, "{}", vector.name()),
            // The one provider here that sends messages without an event id: the trigger id,
            // made anew for every interaction, stands in for it.
            None => assert_eq!(
                (vector.provider(), event.id()),
                ("slack", "12321423423.333649436676.d8c1bb837935619ccad0f624c448ffb3")
            ),
        }
        assert_eq!(event.provenance(), Provenance::Signed);
        assert_eq!(event.unreadable(), None, "{}", vector.name());
    }
}

#[test]
fn every_event_has_the_expected_type() {
    for (vector, event) in events() {
        let expected = vector.text("expect_event_type").unwrap_or_default();
        assert_eq!(event.event_type(), expected, "{}", vector.name());
    }
}

#[test]
fn every_event_has_the_expected_order_key() {
    for (vector, event) in events() {
        if let Some(key) = vector.text("expect_ordering_key") {
            assert_eq!(event.order_key(), Some(key), "{}", vector.name());
        }
    }
}

#[test]
fn every_event_happened_when_expected() {
    for (vector, event) in events() {
        if let Some(at) = vector.text("expect_occurred_at") {
            let seconds = at.parse().ok().map(|at| Timestamp::from_second(at).unwrap());
            let expected = seconds.unwrap_or_else(|| at.parse().unwrap());
            assert_eq!(event.occurred_at(), Some(expected), "{}", vector.name());
        }
    }
}

#[test]
fn every_handshake_is_answered_as_expected() {
    let mut answered = 0;
    for vector in vectors() {
        let expected = &vector.0["expect_response"];
        let verdict = verify(&vector);
        let Some(Verdict::Handshake(answer)) = verdict else {
            assert!(expected.is_null(), "{}", vector.name());
            continue;
        };
        answered += 1;
        assert_eq!(expected["status"], answer.status, "{}", vector.name());
        assert!(expected["content_type"].as_str().unwrap().contains(answer.content_type));
        let bodies = expected["body_any_of"].as_array().unwrap();
        assert!(bodies.contains(&Value::from(String::from_utf8(answer.body).unwrap())));
    }
    assert_eq!(answered, 1);
}

/// The digest and the range are those of the event's own bytes: here, the body.
#[test]
fn every_event_is_its_whole_body() {
    use sha2::Digest as _;
    for (vector, event) in events() {
        let body = vector.request().body;
        assert_eq!(event.range(), 0..body.len());
        assert_eq!(event.digest(), <[u8; 32]>::from(sha2::Sha256::digest(&body)));
    }
}

#[test]
fn any_flipped_bit_of_an_accepted_body_is_refused() {
    for vector in vectors().into_iter().filter(accepted) {
        let verifier = vector.verifier().unwrap();
        let request = vector.request();
        for at in 0..request.body.len() {
            let mut changed = request.clone();
            let mut body = changed.body.to_vec();
            body[at] ^= 1 << (at % 8);
            changed.body = body.into();
            let verdict = verifier.verify(changed, vector.now());
            assert!(verdict.is_err(), "{} byte {at}", vector.name());
        }
    }
}

#[test]
fn any_flipped_bit_of_an_accepted_signature_is_refused() {
    let headers = [
        "stripe-signature",
        "x-hub-signature-256",
        "x-slack-signature",
        "x-shopify-hmac-sha256",
        "webhook-signature",
        "svix-signature",
    ];
    let mut tried = 0;
    for vector in vectors().into_iter().filter(accepted) {
        let verifier = vector.verifier().unwrap();
        let request = vector.request();
        let signature = headers.iter().rev().find_map(|name| {
            request.headers.get_all(name).next().map(|value| (*name, value.to_vec()))
        });
        let (name, value) = signature.unwrap();
        // Of several signatures only one has to match, so the others may be anything.
        if value.contains(&b' ') {
            continue;
        }
        for at in 0..value.len() * 8 {
            let mut changed = value.clone();
            changed[at / 8] ^= 1 << (at % 8);
            let mut forged = request.clone();
            forged.headers.remove(name);
            forged.headers.push(name, &changed);
            let verdict = verifier.verify(forged, vector.now());
            assert!(verdict.is_err(), "{} bit {at}", vector.name());
            tried += 1;
        }
    }
    assert!(tried > 5000);
}
