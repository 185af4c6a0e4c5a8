//! A scheme that is written down in the configuration.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

use ichido_verify::{Rejection, Request, Secret, Settings, Timestamp, Verdict, Verifier};
use serde_json::json;

const NOW: i64 = 1_790_000_000;

fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

fn settings(generic: &serde_json::Value) -> Settings {
    serde_json::from_value(json!({ "generic": generic })).unwrap()
}

fn verifier(generic: &serde_json::Value, secret: &str) -> Verifier {
    Verifier::new("generic", &settings(generic), &[Secret::new(secret)]).unwrap()
}

fn refused(generic: &serde_json::Value) -> String {
    let verifier = Verifier::new("generic", &settings(generic), &[Secret::new("s")]);
    verifier.unwrap_err().to_string()
}

fn post(body: &str, headers: &[(&str, &str)]) -> Request {
    Request {
        method: "POST".to_owned(),
        headers: headers.iter().copied().collect(),
        body: body.to_owned().into(),
        ..Request::default()
    }
}

/// The vectors of providers that are plain HMAC rows, through rows written as configuration.
#[test]
fn published_schemes_can_be_written_down() {
    let vectors: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("data/signatures.json")).unwrap();
    let rows = [
        ("linear", json!({"header": "Linear-Signature", "id": "header:Linear-Delivery"})),
        ("lemonsqueezy", json!({"header": "X-Signature", "id": "header:X-Event-Name"})),
        (
            "bitbucket",
            json!({
                "header": "X-Hub-Signature", "prefix": "sha256=", "id": "header:X-Request-UUID",
            }),
        ),
        (
            "intercom",
            json!({
                "header": "X-Hub-Signature", "prefix": "sha1=", "algorithm": "sha1",
                "id": "json:id",
            }),
        ),
        (
            "line",
            json!({
                "header": "X-Line-Signature", "encoding": "base64", "id": "json:destination",
            }),
        ),
        ("gocardless", json!({"header": "Webhook-Signature", "id": "json:meta.webhook_id"})),
    ];
    for (provider, row) in rows {
        let of_provider = |vector: &&serde_json::Value| {
            vector["provider"] == provider && vector["kind"] == "event"
        };
        let mut verdicts = [0, 0];
        for vector in vectors.iter().filter(of_provider) {
            let headers = vector["headers"].as_object().unwrap();
            let body = vector["body_base64"].as_str().unwrap();
            let request = Request {
                headers: headers.iter().map(|(n, v)| (n, v.as_str().unwrap())).collect(),
                body: data_encoding::BASE64.decode(body.as_bytes()).unwrap().into(),
                ..Request::default()
            };
            let at = Timestamp::from_second(vector["now_unix"].as_i64().unwrap()).unwrap();
            let verdict =
                verifier(&row, vector["secret"].as_str().unwrap()).verify(request, at).is_ok();
            // What the generic row can't know (a signed time inside the body) is left out.
            if provider == "linear" && vector["expect"] == "reject" && verdict {
                continue;
            }
            assert_eq!(verdict, vector["expect"] == "accept", "{provider} {}", vector["case"]);
            verdicts[usize::from(verdict)] += 1;
        }
        assert!(verdicts[1] > 0, "{provider} {verdicts:?}");
    }
}

#[test]
fn every_part_of_the_template_is_signed() {
    let row = json!({
        "header": "X-Sig", "algorithm": "sha512", "encoding": "base64url", "key": "hex",
        "message": "{method}\n{header:X-Id}\n{timestamp}\n{body}!",
        "timestamp_header": "X-Time", "timestamp_unit": "rfc3339",
        "id": "header:x-id", "event_type": "header:X-Type",
    });
    let verifier = verifier(&row, "00ff10");
    assert!(verifier.provider().id_signed);
    let mut good = post("body", &[]);
    verifier.sign(&mut good, "id 1", "a.b", now()).unwrap();
    assert!(verifier.verify(good.clone(), now()).is_ok());
    let refused = |change: &dyn Fn(&mut Request)| {
        let mut request = good.clone();
        change(&mut request);
        verifier.verify(request, now()).unwrap_err()
    };
    assert_eq!(refused(&|r| r.method = "PUT".into()), Rejection::WrongSignature);
    assert_eq!(refused(&|r| r.body = "bodY".into()), Rejection::WrongSignature);
    let set = |name: &'static str, value: &'static str| {
        move |request: &mut Request| {
            request.headers.remove(name);
            request.headers.push(name, value.as_bytes());
        }
    };
    assert_eq!(refused(&set("x-id", "id 2")), Rejection::WrongSignature);
    assert_eq!(refused(&set("x-id", "a\nb")), Rejection::MalformedSignedHeader);
    assert_eq!(refused(&set("x-time", "2026-01-01T00:00:00Z")), Rejection::WrongSignature);
    assert_eq!(refused(&|r| r.headers.remove("x-id")), Rejection::NoSignedHeader);
    assert_eq!(refused(&|r| r.headers.remove("x-time")), Rejection::NoTimestamp);
}

#[test]
fn facts_come_from_where_the_row_says() {
    let row = json!({
        "header": "X-Sig", "id": "json:meta.id", "event_type": "json:meta.kind",
        "order_key": "json:object", "occurred_at": "json:at", "occurred_at_unit": "milliseconds",
        "volatile": ["attempt"], "deadline": "3s", "retry_horizon": 0,
    });
    let verifier = verifier(&row, "s");
    let mut request =
        post(r#"{"meta":{"id":42,"kind":"made"},"object":"o_1","at":1790000000123}"#, &[]);
    verifier.sign(&mut request, "", "", now()).unwrap();
    let Ok(Verdict::Delivery(delivery)) = verifier.verify(request, now()) else { panic!() };
    let event = &delivery.events[0];
    assert_eq!((event.id(), event.event_type()), ("42", "made"));
    assert_eq!(event.order_key(), Some("o_1"));
    assert_eq!(event.occurred_at().unwrap().as_millisecond(), 1_790_000_000_123);
    assert!(verifier.same_content(br#"{"a":1,"attempt":1}"#, br#"{"a":1,"attempt":2}"#));
    let provider = verifier.provider();
    assert_eq!((provider.deadline.as_secs(), provider.retry_horizon), (3, None));
    assert!(provider.id_signed);
}

#[test]
fn an_id_in_a_header_outside_the_message_is_not_signed() {
    let row = json!({"header": "X-Sig", "id": "header:X-Id"});
    assert!(!verifier(&row, "s").provider().id_signed);
}

#[test]
fn the_registered_url_is_signed_not_the_one_of_the_request() {
    let row = json!({"header": "X-Sig", "message": "{url}{body}", "id": "json:id"});
    assert!(refused(&row).contains("public_url"));
    let mut settings = settings(&row);
    settings.public_url = Some("https://example.com/hooks".to_owned());
    let verifier = Verifier::new("generic", &settings, &[Secret::new("s")]).unwrap();
    let mut request = post(r#"{"id":"1"}"#, &[]);
    verifier.sign(&mut request, "1", "", now()).unwrap();
    request.url = "/anything".to_owned();
    assert!(verifier.verify(request.clone(), now()).is_ok());
    settings.public_url = Some("https://example.com/other".to_owned());
    let other = Verifier::new("generic", &settings, &[Secret::new("s")]).unwrap();
    assert_eq!(other.verify(request, now()).unwrap_err(), Rejection::WrongSignature);
}

#[test]
fn schemes_that_protect_nothing_are_refused() {
    let row = |more: serde_json::Value| {
        let mut row = json!({"header": "X-Sig", "id": "json:id"});
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        refused(&row)
    };
    assert!(row(json!({"message": "{timestamp}"})).contains("must have {body} once"));
    assert!(row(json!({"message": "{timestamp}{body}"})).contains("timestamp_header"));
    assert!(row(json!({"timestamp_header": "X-Time"})).contains("protects nothing"));
    assert!(row(json!({"message": "{body}{secret}"})).contains("knows {body}"));
    assert!(row(json!({"message": "{body"})).contains("without its }"));
    assert!(row(json!({"message": "{body}}"})).contains("without its {"));
    assert!(row(json!({"id": "id"})).contains("generic.id must be"));
    assert!(row(json!({"id": "json:a..b"})).contains("generic.id must be"));
    assert!(row(json!({"header": "X Sig"})).contains("generic.header must name a header"));
}

#[test]
fn misspelt_settings_are_refused() {
    let read = |text: &str| serde_json::from_str::<Settings>(text);
    assert!(read(r#"{"tolerence": 5}"#).is_err());
    assert!(read(r#"{"generic": {"header": "a", "id": "json:id", "prefx": ""}}"#).is_err());
    assert!(read(r#"{"tolerance": -5}"#).is_err());
    assert!(read(r#"{"tolerance": "soon"}"#).is_err());
    assert_eq!(read(r#"{"tolerance": 90}"#).unwrap(), read(r#"{"tolerance": "1m 30s"}"#).unwrap());
}
