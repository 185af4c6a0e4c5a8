//! What the server answers when nothing may be taken. No database is needed: it is away.

use crate::common::{AWAY, SECRET, Server, Site};
use ichido_verify::{Request, Secret, Settings, Timestamp, Verifier};

const EVENT: &str = r#"{"id":"evt_1","type":"invoice.paid","note":"bodygeheim"}"#;

fn site() -> Site {
    Site::new(&format!(
        "[database]\nurl = \"{AWAY}\"\n[limits]\nbody_bytes_max = 1000\n\
         header_timeout = \"200ms\"\n[endpoint.billing]\nprovider = \"stripe\"\n\
         secrets = [\"env:SECRET\"]\n"
    ))
}

fn signed(at: Timestamp, secret: &str) -> String {
    let secrets = [Secret::new(secret)];
    let verifier = Verifier::new("stripe", &Settings::default(), &secrets).expect("good");
    let mut request = Request { method: "POST".into(), body: EVENT.into(), ..Request::default() };
    verifier.sign(&mut request, "evt_1", "invoice.paid", at).expect("signed");
    let value = request.headers.get_all("stripe-signature").next().expect("a signature").to_vec();
    String::from_utf8(value).expect("ASCII")
}

fn post(server: &Server, signature: &str) -> crate::common::Answer {
    server.send("POST", "/webhooks/billing", &[("stripe-signature", signature)], EVENT)
}

#[test]
fn every_reason_to_reject_has_the_same_answer() {
    let server = site().serve();
    let missing = server.send("POST", "/webhooks/billing", &[], EVENT);
    assert_eq!((missing.status, missing.body.as_str()), (400, r#"{"error":"rejected"}"#));
    for signature in [
        "nonsense".to_owned(),
        "t=1,v1=00".into(),
        signed(Timestamp::now(), "whsec_another_secret"),
        signed(Timestamp::UNIX_EPOCH, SECRET),
    ] {
        assert_eq!(post(&server, &signature), missing, "{signature}");
    }
}

#[test]
fn a_verified_delivery_is_answered_503_while_the_database_is_away() {
    let server = site().serve();
    let answer = post(&server, &signed(Timestamp::now(), SECRET));
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.has("retry-after: 5"), "{answer:?}");
}

#[test]
fn ready_says_503_and_live_200_while_the_database_is_away() {
    let server = site().serve();
    let ready = server.send("GET", "/readyz", &[], "");
    assert_eq!(ready.status, 503);
    assert!(ready.body.contains("127.0.0.1:1: "), "where it is is missing: {ready:?}");
    assert!(ready.body.contains("refused"), "the reason is missing: {ready:?}");
    assert_eq!(server.send("GET", "/livez", &[], "").status, 200);
}

#[test]
fn a_health_listener_of_its_own_answers_nothing_else_and_the_other_no_health() {
    let config = format!(
        "health.listen = \"127.0.0.1:0\"\n[database]\nurl = \"{AWAY}\"\n\
         [endpoint.billing]\nprovider = \"stripe\"\nsecrets = [\"env:SECRET\"]\n"
    );
    let site = Site::new(&config);
    let mut server = site.serve();
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(server.send("GET", path, &[], "").status, 404, "{path}");
    }
    assert_eq!(server.send("POST", "/webhooks/billing", &[], EVENT).status, 400);
    server.address = server.health();
    assert_eq!(server.send("GET", "/livez", &[], "").status, 200);
    assert!(server.send("GET", "/readyz", &[], "").body.contains("onnect"));
    assert!(server.send("GET", "/metrics", &[], "").body.contains("ichido_rejected_total"));
    assert_eq!(server.send("POST", "/webhooks/billing", &[], EVENT).status, 404);
}

#[test]
fn an_unknown_endpoint_or_path_is_404() {
    let server = site().serve();
    for path in ["/webhooks/other", "/webhooks/", "/webhooks/billing/x", "/", "/webhooks/..%2f"] {
        assert_eq!(server.send("POST", path, &[], EVENT).status, 404, "{path}");
    }
}

#[test]
fn another_method_is_405_and_names_the_right_one() {
    let server = site().serve();
    let answer = server.send("GET", "/webhooks/billing", &[], "");
    assert_eq!(answer.status, 405);
    assert!(answer.has("allow: POST"), "{answer:?}");
}

#[test]
fn a_body_that_declares_itself_too_large_is_413_before_it_is_sent() {
    let server = site().serve();
    let head = b"POST /webhooks/billing HTTP/1.1\r\nhost: x\r\ncontent-length: 1001\r\n\r\n";
    assert_eq!(server.raw(head).status, 413);
}

#[test]
fn a_body_in_chunks_is_413_as_soon_as_it_passes_the_limit() {
    let server = site().serve();
    let mut request =
        b"POST /webhooks/billing HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3e9\r\n"
            .to_vec();
    request.extend([b'x'; 1001]);
    assert_eq!(server.raw(&request).status, 413);
}

#[test]
fn every_answer_forbids_sniffing_and_storing() {
    let server = site().serve();
    for (method, path) in [("POST", "/webhooks/billing"), ("GET", "/nope"), ("GET", "/metrics")] {
        let answer = server.send(method, path, &[], "");
        assert!(answer.has("cache-control: no-store"), "{answer:?}");
        assert!(answer.has("x-content-type-options: nosniff"), "{answer:?}");
        assert!(!answer.headers.iter().any(|line| line.starts_with("server:")), "{answer:?}");
    }
}

#[test]
fn a_connection_that_never_speaks_is_closed() {
    use std::{io::Read, net::TcpStream, time::Duration};
    let server = site().serve();
    let mut silent = TcpStream::connect(server.address).expect("connects");
    silent.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    assert_eq!(silent.read(&mut [0; 1]).expect("an end, not a time-out"), 0);
}

#[test]
fn reasons_are_counted_and_a_stranger_adds_no_label() {
    let server = site().serve();
    server.send("POST", "/webhooks/billing", &[], EVENT);
    server.send("POST", "/webhooks/stranger", &[], EVENT);
    let text = server.send("GET", "/metrics", &[], "").body;
    let line = "ichido_rejected_total{endpoint=\"billing\",reason=\"no_signature\"} 1";
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("stranger"), "{text}");
}

#[test]
fn the_log_holds_no_body_secret_signature_or_query() {
    let server = site().serve();
    let signature = signed(Timestamp::now(), SECRET);
    let headers = [("stripe-signature", signature.as_str())];
    server.send("POST", "/webhooks/billing?token=querygeheim", &headers, EVENT);
    server.send("POST", "/webhooks/billing?token=querygeheim", &[], EVENT);
    let log = server.wait_for("no_signature");
    for hidden in [SECRET, "bodygeheim", "querygeheim", &signature] {
        assert!(!log.contains(hidden), "{hidden} in:\n{log}");
    }
}

#[test]
fn sigterm_ends_the_server_with_exit_code_0() {
    let mut server = site().serve();
    assert_eq!(server.terminate(), Some(0));
    assert!(server.wait_for("stopped").contains("stopping"));
}

#[test]
fn health_asks_the_running_server_and_tells_its_reason() {
    let site = site();
    let server = site.serve();
    let listen = server.address.to_string();
    let health = |options: &[&str]| {
        site.run_with(&[&["health"], options].concat(), ("ICHIDO_LISTEN", &listen))
    };
    let (code, text) = health(&["--live"]);
    assert_eq!((code, text.as_str()), (Some(0), "ok\n"));
    let (code, text) = health(&[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("/readyz: 503: ") && text.contains("onnect"), "{text}");
    drop(server);
    let (code, text) = health(&["--live"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("no server answers there"), "{text}");
}

#[test]
fn a_delivery_that_is_not_taken_is_logged_with_its_event() {
    let server = site().serve();
    post(&server, &signed(Timestamp::now(), SECRET));
    let log = server.wait_for("not taken");
    let line = log.lines().find(|line| line.contains("not taken")).expect("waited for");
    for part in ["event_id=\"evt_1\"", "event_type=\"invoice.paid\"", "handler=\"none\""] {
        assert!(line.contains(part), "{line}");
    }
    assert!(!log.contains("onnection could not be recycled"), "{log}");
}
