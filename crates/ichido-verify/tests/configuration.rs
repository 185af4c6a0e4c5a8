//! What can't be configured, and what is never shown.

use std::time::Duration;

use ichido_verify::{Headers, Request, Secret, Settings, Timestamp, Verifier};

#[test]
fn unusable_secrets_are_refused_by_number_and_never_quoted() {
    let cases = [
        ("stripe", "", "secret 2 is empty"),
        ("stripe", "abc\n", "secret 2 has white space"),
        ("svix", "whsec_", "secret 2 is not base64"),
        ("svix", "whsec_!!!!", "secret 2 is not base64"),
        ("svix", "whsec_AAAAA", "secret 2 is not base64"),
        ("svix", "whsec_AAAA====", "secret 2 is not base64"),
        ("svix", "whpk_AAAA", "secret 2 is not an ed25519 public key"),
        ("svix", "whsk_AAAA", "secret 2 is not an ed25519 private key"),
    ];
    for (provider, text, expected) in cases {
        let good = Secret::new("whsec_AAAA");
        let error = Verifier::new(provider, &Settings::default(), &[good, Secret::new(text)]);
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
        assert!(text.is_empty() || !error.contains(text), "{error}");
    }
}

#[test]
fn contradictions_are_refused_with_the_fix_named() {
    let secret = [Secret::new("whsec_AAAA")];
    let new = |provider: &str, settings: &Settings, secrets: &[Secret]| {
        Verifier::new(provider, settings, secrets).unwrap_err().to_string()
    };
    let none = Settings::default();
    assert!(new("stripe", &none, &[]).contains("set at least one"));
    assert!(new("strip", &none, &secret).contains("use one of adyen-platform, auth0"));
    assert!(new("generic", &none, &secret).contains("add the settings"));
    let tolerance =
        |seconds| Settings { tolerance: Some(Duration::from_secs(seconds)), ..Settings::default() };
    assert!(new("github", &tolerance(5), &secret).contains("remove tolerance"));
    assert!(new("stripe", &tolerance(0), &secret).contains("at least one second"));
    assert!(new("stripe", &tolerance(86_401), &secret).contains("at most 24 h"));
    assert!(new("stripe", &none, &vec![Secret::new("a"); 17]).contains("more than 16"));
}

#[test]
fn the_same_secret_twice_is_refused() {
    let secrets = ["whsec_AAAA", "whsec_BBBB", "whsec_AAAA"].map(Secret::new);
    let error = Verifier::new("stripe", &Settings::default(), &secrets).unwrap_err().to_string();
    assert_eq!(error, "secret 3 is the same as secret 1: remove one of them");
}

#[test]
fn a_public_url_that_is_no_url_is_refused() {
    let refused = |url: &str| {
        let settings = Settings { public_url: Some(url.into()), ..Settings::default() };
        Verifier::new("stripe", &settings, &[Secret::new("whsec_AAAA")]).err()
    };
    for url in ["", "example.com/x", "https://", "https:///x", "https://:80/x", "ftp://h/x", "/x"] {
        let error = refused(url).expect(url).to_string();
        assert!(error.contains("such as https://example.com/webhooks/name"), "{error}");
    }
    assert!(refused("https://h x/y").is_some());
    for url in ["https://example.com", "http://[::1]:8080/webhooks/a?b=c"] {
        assert_eq!(refused(url), None, "{url}");
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let settings = Settings {
        tolerance: Some(Duration::ZERO),
        public_url: Some("nope".into()),
        ..Settings::default()
    };
    let secrets = ["", "whsec_AAAA", "whsec_AAAA"].map(Secret::new);
    let error = Verifier::new("stripe", &settings, &secrets).unwrap_err().to_string();
    for part in ["tolerance must", "public_url is no URL", "secret 1 is empty", "secret 3 is the"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn nothing_that_is_printed_holds_a_secret_or_a_body() {
    let now = Timestamp::from_second(1_790_000_000).unwrap();
    let secret = [Secret::new("whsec_hidden")];
    let stripe = Verifier::new("stripe", &Settings::default(), &secret).unwrap();
    let body = r#"{"id":"evt_1","hidden":"hidden"}"#.into();
    let mut request = Request { body, ..Request::default() };
    stripe.sign(&mut request, "evt_1", "a", now).unwrap();
    let shown = format!("{stripe:?} {request:?} {:?}", Secret::new("hidden"));
    assert!(!shown.contains("hidden"), "{shown}");
    let verdict = stripe.verify(request, now).unwrap();
    assert!(!format!("{verdict:?}").contains("hidden"));
}

#[test]
fn evidence_keeps_the_order_and_hides_credentials() {
    let headers: Headers =
        [("B", "1"), ("Authorization", "x"), ("a", "2"), ("b", "3"), ("X-Gitlab-Token", "x")]
            .into_iter()
            .collect();
    let expected = "b: 1\nauthorization: [redacted]\na: 2\nb: 3\nx-gitlab-token: [redacted]\n";
    assert_eq!(String::from_utf8(headers.evidence()).unwrap(), expected);
}
