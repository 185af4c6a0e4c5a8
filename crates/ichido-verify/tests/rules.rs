//! The rules that hold for every provider, shown on one or two of them.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

use std::time::Duration;

use ichido_verify::{
    Delivery, Rejection, Request, Secret, Settings, Timestamp, Unreadable, Verdict, Verifier,
};

const NOW: i64 = 1_790_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn verifier(provider: &str, secrets: &[&str]) -> Verifier {
    let secrets: Vec<_> = secrets.iter().map(|text| Secret::new(*text)).collect();
    Verifier::new(provider, &Settings::default(), &secrets).unwrap()
}

fn post(body: impl AsRef<[u8]>) -> Request {
    Request { method: "POST".to_owned(), body: body.as_ref().to_vec().into(), ..Request::default() }
}

fn signed(verifier: &Verifier, body: impl AsRef<[u8]>) -> Request {
    let mut request = post(body);
    verifier.sign(&mut request, "id_1", "some.type", at(NOW)).unwrap();
    request
}

fn delivery(verifier: &Verifier, request: Request) -> Delivery {
    match verifier.verify(request, at(NOW)) {
        Ok(Verdict::Delivery(delivery)) => delivery,
        other => panic!("{other:?}"),
    }
}

fn stripe_header(request: &Request) -> String {
    let value = request.headers.get_all("Stripe-Signature").next().unwrap();
    String::from_utf8(value.to_vec()).unwrap()
}

fn with_header(request: &Request, name: &str, value: &str) -> Request {
    let mut request = request.clone();
    request.headers.remove(name);
    request.headers.push(name, value.as_bytes());
    request
}

const EVENT: &str = r#"{"id":"evt_1","type":"invoice.paid","created":1789999999}"#;

#[test]
fn any_of_several_v1_signatures_may_match_and_unknown_labels_do_not_count() {
    let stripe = verifier("stripe", &["whsec_a"]);
    let request = signed(&stripe, EVENT);
    let header = stripe_header(&request);
    let (time, v1) = header.split_once(',').unwrap();
    let wrong = format!("v1={}", "0".repeat(64));
    let ok = |value: String| {
        stripe.verify(with_header(&request, "stripe-signature", &value), at(NOW)).is_ok()
    };
    assert!(ok(format!("{time},{wrong},{v1}")));
    assert!(ok(format!("{v1},v9=x,{time},{wrong}")));
    assert!(!ok(format!("{time},{wrong}")));
    assert!(!ok(format!("{time},{}", v1.replace("v1=", "v0="))));
    assert!(!ok(format!("{time},{}", v1.replace("v1=", "V1="))));
    assert!(!ok(format!("{time}, {v1}")));
}

#[test]
fn the_index_of_the_matching_secret_is_told() {
    let old = verifier("stripe", &["whsec_old"]);
    let both = verifier("stripe", &["whsec_new", "whsec_old"]);
    assert_eq!(delivery(&both, signed(&old, EVENT)).secret, 1);
    assert_eq!(delivery(&both, signed(&both, EVENT)).secret, 0);
}

#[test]
fn only_sixteen_signatures_of_a_header_are_looked_at() {
    let stripe = verifier("stripe", &["whsec_a"]);
    let request = signed(&stripe, EVENT);
    let (time, v1) =
        stripe_header(&request).split_once(',').map(|(t, v)| (t.to_owned(), v.to_owned())).unwrap();
    let wrong = format!("v1={},", "0".repeat(64));
    let verify = |before: usize| {
        let value = format!("{time},{}{v1}", wrong.repeat(before));
        stripe.verify(with_header(&request, "stripe-signature", &value), at(NOW)).is_ok()
    };
    assert!(verify(15));
    assert!(!verify(16));
}

#[test]
fn a_signature_header_that_comes_twice_is_refused() {
    for provider in ["stripe", "github", "shopify", "slack"] {
        let verifier = verifier(provider, &["whsec_a"]);
        let mut request = signed(&verifier, EVENT);
        let headers = [
            "stripe-signature",
            "x-hub-signature-256",
            "x-shopify-hmac-sha256",
            "x-slack-signature",
        ];
        let (name, value) = request
            .headers
            .iter()
            .find(|(name, _)| headers.contains(name))
            .map(|(n, v)| (n.to_owned(), v.to_vec()))
            .unwrap();
        request.headers.push(&name, &value);
        assert_eq!(verifier.verify(request, at(NOW)).unwrap_err(), Rejection::RepeatedHeader);
    }
}

#[test]
fn the_tolerance_is_300_seconds_unless_it_is_set() {
    let stripe = verifier("stripe", &["whsec_a"]);
    let request = signed(&stripe, EVENT);
    assert!(stripe.verify(request.clone(), at(NOW + 300)).is_ok());
    assert_eq!(stripe.verify(request.clone(), at(NOW + 301)).unwrap_err(), Rejection::TooOld);
    let settings = Settings { tolerance: Some(Duration::from_secs(10)), ..Settings::default() };
    let strict = Verifier::new("stripe", &settings, &[Secret::new("whsec_a")]).unwrap();
    assert!(strict.verify(request.clone(), at(NOW + 10)).is_ok());
    assert_eq!(strict.verify(request, at(NOW + 11)).unwrap_err(), Rejection::TooOld);
}

#[test]
fn a_signed_time_is_told_only_where_the_signature_was_good() {
    let stripe = verifier("stripe", &["whsec_a"]);
    let late = |request| stripe.judge(request, at(NOW + 301)).unwrap_err();
    let request = signed(&stripe, EVENT);
    assert_eq!(late(request.clone()).signed_at, Some(at(NOW)));
    let mut forged = request;
    forged.body = "{}".into();
    assert_eq!(
        (late(forged.clone()).reason, late(forged).signed_at),
        (Rejection::WrongSignature, None)
    );
}

#[test]
fn slack_and_standard_webhooks_hold_the_future_to_the_tolerance_too() {
    for (provider, secret) in
        [("slack", "s"), ("svix", "whsec_AAAA"), ("standard-webhooks", "whsec_AAAA")]
    {
        let verifier = verifier(provider, &[secret]);
        let request = signed(&verifier, r#"{"event_id":"Ev1"}"#);
        assert!(verifier.verify(request.clone(), at(NOW - 300)).is_ok());
        assert_eq!(verifier.verify(request, at(NOW - 301)).unwrap_err(), Rejection::TooNew);
    }
}

#[test]
fn a_forgery_is_called_a_wrong_signature_however_old_it_is() {
    let stripe = verifier("stripe", &["whsec_a"]);
    let request = signed(&verifier("stripe", &["whsec_b"]), EVENT);
    assert_eq!(stripe.verify(request, at(NOW + 9999)).unwrap_err(), Rejection::WrongSignature);
}

#[test]
fn timestamps_are_digits_only_and_never_overflow() {
    use data_encoding::HEXLOWER;
    use hmac::{Hmac, KeyInit, Mac};
    let stripe = verifier("stripe", &["whsec_a"]);
    for time in [
        "+1790000000",
        "-1",
        "1790000000.0",
        "1790000000x",
        " 1790000000",
        "0x1",
        "99999999999999999999",
        "9223372036854775807",
    ] {
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(b"whsec_a").unwrap();
        mac.update(format!("{time}.{EVENT}").as_bytes());
        let v1 = HEXLOWER.encode(&mac.finalize().into_bytes());
        let request = with_header(&post(EVENT), "stripe-signature", &format!("t={time},v1={v1}"));
        let rejection = stripe.verify(request, at(NOW)).unwrap_err();
        assert_eq!(rejection, Rejection::MalformedTimestamp, "{time}");
    }
}

#[test]
fn two_timestamps_in_one_header_are_refused() {
    let stripe = verifier("stripe", &["whsec_a"]);
    let request = signed(&stripe, EVENT);
    let value = format!("t=1,{}", stripe_header(&request));
    let rejection = stripe.verify(with_header(&request, "stripe-signature", &value), at(NOW));
    assert_eq!(rejection.unwrap_err(), Rejection::MalformedTimestamp);
}

#[test]
fn a_message_id_with_the_separator_in_it_is_refused() {
    let standard = verifier("standard-webhooks", &["whsec_AAAA"]);
    let mut request = signed(&standard, EVENT);
    assert!(standard.verify(request.clone(), at(NOW)).is_ok());
    request.headers.remove("webhook-id");
    request.headers.push("webhook-id", b"a.b");
    let rejection = standard.verify(request, at(NOW)).unwrap_err();
    assert_eq!(rejection, Rejection::MalformedSignedHeader);
}

#[test]
fn a_signed_body_without_a_usable_id_is_a_delivery_that_says_why() {
    let stripe = verifier("stripe", &["whsec_a"]);
    let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(256));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let cases: &[(&[u8], Unreadable)] = &[
        (b"", Unreadable::EmptyBody),
        (b"{\"id\":\"evt_1\",\"x\":\"\xff\"}", Unreadable::NotUtf8),
        (b"a=b&id=evt_1", Unreadable::NotJson),
        (b"<event id='1'/>", Unreadable::NotJson),
        (deep.as_bytes(), Unreadable::NotAnObject),
        (b"[{\"id\":\"evt_1\"}]", Unreadable::NotAnObject),
        (b"{\"type\":\"a\"}", Unreadable::IdMissing),
        (b"{\"id\":null}", Unreadable::IdMissing),
        (b"{\"id\":17}", Unreadable::IdNotText),
        (b"{\"id\":[\"evt_1\"]}", Unreadable::IdNotText),
        (br#"{"id":"\ud800"}"#, Unreadable::IdNotText),
        (b"{\"id\":\"evt_1\",\"id\":\"evt_2\"}", Unreadable::IdAmbiguous),
        (br#"{"id":"evt_1","i\u0064":"evt_2"}"#, Unreadable::IdAmbiguous),
        (b"{\"id\":\"evt_1\",\"type\":\"a\",\"type\":\"b\"}", Unreadable::TypeAmbiguous),
        (b"{\"id\":\"\"}", Unreadable::IdBadCharacters),
        (br#"{"id":"a\u0000"}"#, Unreadable::IdBadCharacters),
        (br#"{"id":"a\u0085"}"#, Unreadable::IdBadCharacters),
        (long.as_bytes(), Unreadable::IdTooLong),
    ];
    for (body, reason) in cases {
        let delivery = delivery(&stripe, signed(&stripe, body));
        let event = &delivery.events[0];
        assert_eq!(event.unreadable(), Some(*reason), "{reason:?}");
        assert_eq!(event.event_type(), "unreadable");
        let digest = data_encoding::HEXLOWER.encode(&event.digest());
        assert_eq!(event.id(), format!("sha256:{digest}"));
        assert_eq!(delivery.request.body, *body);
    }
}

#[test]
fn odd_content_beside_a_usable_id_changes_nothing() {
    let stripe = verifier("stripe", &["whsec_a"]);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for odd in [
        r#""\u0000""#,
        r#""\udc00""#,
        "12345678901234567890123",
        r#"{"a":1,"a":2}"#,
        "1e999",
        &deep,
    ] {
        let body = format!(r#"{{"x":{odd},"id":"evt_1","\ud800":1,"type":"a"}}"#);
        let delivery = delivery(&stripe, signed(&stripe, &body));
        assert_eq!((delivery.events[0].id(), delivery.events[0].event_type()), ("evt_1", "a"));
    }
}

#[test]
fn the_longest_id_that_fits_is_kept_as_it_is() {
    let stripe = verifier("stripe", &["whsec_a"]);
    let id = "é".repeat(127);
    let delivery = delivery(&stripe, signed(&stripe, format!(r#"{{"id":"{id}x"}}"#)));
    assert_eq!(delivery.events[0].id(), format!("{id}x"));
}

#[test]
fn github_bodies_need_not_be_json_for_the_id_is_a_header() {
    let github = verifier("github", &["s"]);
    for body in ["", "plain", "payload=%7B", "[1]"] {
        let delivery = delivery(&github, signed(&github, body));
        assert_eq!(
            (delivery.events[0].id(), delivery.events[0].event_type()),
            ("id_1", "some.type")
        );
    }
}

#[test]
fn an_id_header_that_comes_twice_is_ambiguous() {
    let github = verifier("github", &["s"]);
    let mut request = signed(&github, "{}");
    request.headers.push("X-GitHub-Delivery", b"id_2");
    assert_eq!(delivery(&github, request).events[0].unreadable(), Some(Unreadable::IdAmbiguous));
}

#[test]
fn whether_a_body_is_a_form_is_read_from_its_signed_bytes() {
    let slack = verifier("slack", &["s"]);
    let json = with_header(
        &signed(&slack, r#"{"event_id":"Ev1","event":{"type":"message"}}"#),
        "content-type",
        "application/x-www-form-urlencoded",
    );
    assert_eq!(delivery(&slack, json).events[0].id(), "Ev1");
    let command = signed(&slack, "command=%2Fdeploy&text=now&trigger_id=13.37");
    let command = delivery(&slack, command);
    let event = &command.events[0];
    assert_eq!((event.id(), event.event_type()), ("13.37", "/deploy"));
}

#[test]
fn slack_asks_for_the_certificate_without_a_signature_and_learns_nothing() {
    let slack = verifier("slack", &["s"]);
    let answer = slack.verify(post("ssl_check=1&token=abc"), at(NOW)).unwrap();
    let Verdict::Handshake(answer) = answer else { panic!("{answer:?}") };
    assert_eq!((answer.status, answer.body), (200, Vec::new()));
    for body in ["ssl_check=0", "ssl_check=1&command=%2Fdeploy", "ssl_check=1&payload=%7B%7D", "{}"]
    {
        assert_eq!(slack.verify(post(body), at(NOW)).unwrap_err(), Rejection::NoSignature);
    }
}

#[test]
fn a_v1a_key_pair_signs_what_its_public_key_verifies() {
    let seed = [7_u8; 32];
    let public = ed25519_dalek::SigningKey::from_bytes(&seed).verifying_key();
    let text =
        |prefix: &str, bytes: &[u8]| format!("{prefix}{}", data_encoding::BASE64.encode(bytes));
    let private = verifier("standard-webhooks", &[&text("whsk_", &seed)]);
    let public = verifier("standard-webhooks", &[&text("whpk_", public.as_bytes())]);
    let request = signed(&private, EVENT);
    assert!(public.verify(request.clone(), at(NOW)).is_ok());
    let other = verifier("standard-webhooks", &[&text("whsk_", &[8; 32])]);
    assert_eq!(other.verify(request, at(NOW)).unwrap_err(), Rejection::WrongSignature);
    let refused = public.sign(&mut post(EVENT), "msg_1", "a", at(NOW));
    assert_eq!(refused.unwrap_err(), ichido_verify::SignError::PublicKey);
}

#[test]
fn an_hmac_is_never_taken_under_the_label_of_a_public_key() {
    // A receiver that let the header choose would take an HMAC keyed with the public key.
    let public = ed25519_dalek::SigningKey::from_bytes(&[7; 32]).verifying_key();
    let key = data_encoding::BASE64.encode(public.as_bytes());
    let hmac = verifier("standard-webhooks", &[&format!("whsec_{key}")]);
    let ed25519 = verifier("standard-webhooks", &[&format!("whpk_{key}")]);
    let request = signed(&hmac, EVENT);
    assert_eq!(ed25519.verify(request, at(NOW)).unwrap_err(), Rejection::WrongSignature);
}

#[test]
fn a_vouched_event_is_marked_as_such_and_invents_no_id() {
    use ichido_verify::{Provenance, vouch};
    let delivery = vouch("evt_1", "invoice.paid", "{}".into(), None).unwrap();
    assert_eq!(delivery.request.method, "VOUCH");
    assert_eq!(delivery.events[0].provenance(), Provenance::Vouched);
    assert_eq!(vouch("", "a", "{}".into(), None).unwrap_err(), Unreadable::IdBadCharacters);
    assert_eq!(vouch(&"x".repeat(256), "a", "{}".into(), None).unwrap_err(), Unreadable::IdTooLong);
}

#[test]
fn a_retry_with_other_pending_webhooks_has_the_same_content() {
    let stripe = verifier("stripe", &["whsec_a"]);
    let a = br#"{"id":"evt_1","data":{"amount":5},"pending_webhooks":2}"#;
    assert!(stripe.same_content(a, br#"{"id":"evt_1","data":{"amount":5},"pending_webhooks":1}"#));
    assert!(!stripe.same_content(a, br#"{"id":"evt_1","data":{"amount":6},"pending_webhooks":2}"#));
    let github = verifier("github", &["s"]);
    assert!(!github.same_content(br#"{"pending_webhooks":1}"#, br#"{"pending_webhooks":2}"#));
}
