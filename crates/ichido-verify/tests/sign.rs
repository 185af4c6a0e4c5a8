//! What we sign, we accept; and nothing else than what was signed.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

use ichido_verify::{Request, Secret, Settings, Timestamp, Verdict, Verifier};
use proptest::prelude::*;

fn verifier(provider: &str, key: &[u8]) -> Verifier {
    let base64 = data_encoding::BASE64.encode(key);
    let secret = match provider {
        "standard-webhooks" | "svix" => format!("whsec_{base64}"),
        _ => base64,
    };
    let settings = match provider {
        "generic" => serde_json::from_str(
            r#"{"generic": {"header": "X-Sig", "prefix": "v=", "key": "base64",
                "message": "{header:X-Id}/{timestamp}/{body}", "timestamp_header": "X-Time",
                "id": "header:X-Id", "event_type": "header:X-Type"}}"#,
        )
        .unwrap(),
        _ => Settings::default(),
    };
    Verifier::new(provider, &settings, &[Secret::new(secret)]).unwrap()
}

const PROVIDERS: [&str; 7] =
    ["github", "shopify", "slack", "standard-webhooks", "stripe", "svix", "generic"];

/// The headers that carry signatures and signed times or ids.
const SIGNED: [&str; 14] = [
    "x-hub-signature-256",
    "x-shopify-hmac-sha256",
    "x-slack-signature",
    "x-slack-request-timestamp",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "svix-id",
    "svix-timestamp",
    "svix-signature",
    "stripe-signature",
    "x-sig",
    "x-id",
    "x-time",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_signed_is_accepted_and_no_bit_may_change(
        provider in prop::sample::select(&PROVIDERS[..]),
        key in prop::collection::vec(any::<u8>(), 1..64),
        body in prop::collection::vec(any::<u8>(), 0..200),
        now in 0_i64..4_000_000_000,
        bit in any::<prop::sample::Index>(),
        id in "[a-z_0-9]{1,40}",
    ) {
        let verifier = verifier(provider, &key);
        let now = Timestamp::from_second(now).unwrap();
        let mut request = Request { body: body.into(), ..Request::default() };
        verifier.sign(&mut request, &id, "some/type", now).unwrap();
        let Verdict::Delivery(delivery) = verifier.verify(request.clone(), now).unwrap() else {
            return Err(TestCaseError::fail("no delivery"));
        };
        prop_assert_eq!(&delivery.request, &request);
        prop_assert_eq!(delivery.events.len(), 1);

        if !request.body.is_empty() {
            let at = bit.index(request.body.len() * 8);
            let mut body = request.body.to_vec();
            body[at / 8] ^= 1 << (at % 8);
            let changed = Request { body: body.into(), ..request.clone() };
            prop_assert!(verifier.verify(changed, now).is_err());
        }
        for (name, value) in request.headers.iter().filter(|(name, _)| SIGNED.contains(name)) {
            let at = bit.index(value.len() * 8);
            let mut changed = value.to_vec();
            changed[at / 8] ^= 1 << (at % 8);
            let mut forged = request.clone();
            forged.headers.remove(name);
            forged.headers.push(name, &changed);
            prop_assert!(verifier.verify(forged, now).is_err(), "{} bit {}", name, at);
        }
    }

    #[test]
    fn no_request_makes_a_verifier_panic(
        provider in prop::sample::select(&PROVIDERS[..]),
        body in prop::collection::vec(any::<u8>(), 0..200),
        header in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let verifier = verifier(provider, b"key");
        let headers = SIGNED.iter().map(|name| (*name, &header)).collect();
        let request = Request { headers, body: body.into(), ..Request::default() };
        prop_assert!(verifier.verify(request, Timestamp::UNIX_EPOCH).is_err());
    }

    #[test]
    fn no_signed_body_makes_a_verifier_panic(
        provider in prop::sample::select(&PROVIDERS[..]),
        body in "[\\[\\]{}\",:a-z0-9\\\\ =&%+\u{0}-\u{20}é]{0,80}",
    ) {
        let verifier = verifier(provider, b"key");
        let mut request = Request { body: body.into(), ..Request::default() };
        verifier.sign(&mut request, "id", "type", Timestamp::UNIX_EPOCH).unwrap();
        prop_assert!(verifier.verify(request, Timestamp::UNIX_EPOCH).is_ok());
    }
}
