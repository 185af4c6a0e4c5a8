//! The vectors of the whole catalogue: verdicts.

#[expect(dead_code, reason = "rows and settings are chosen here")]
mod support;

use ichido_verify::{Secret, Settings, Verifier, provider};
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
