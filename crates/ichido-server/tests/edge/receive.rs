//! Rows 96 and 98 of the catalogue of bad input, and the rule that a client which hangs up
//! cancels nothing half-way: receives outlive those who asked for them, within limits.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use ichido_verify::{Request, Secret, Settings, Timestamp, Verifier};

use crate::{
    common::SECRET,
    gate::Gate,
    wire::{Wire, ask, body, delivery, eventually, get, metric, post, rss_bytes, site, stored},
};

/// One event of Slack.
fn chat() -> Vec<u8> {
    let body = r#"{"type":"event_callback","event_id":"Ev1","event":{"type":"message"}}"#;
    let verifier = Verifier::new("slack", &Settings::default(), &[Secret::new(SECRET)]);
    let mut request = Request { method: "POST".into(), body: body.into(), ..Request::default() };
    verifier.expect("good").sign(&mut request, "", "", Timestamp::now()).expect("signed");
    let mut text = format!(
        "POST /webhooks/chat HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n",
        request.body.len()
    );
    for (name, value) in request.headers.iter() {
        text.extend([name, ": ", std::str::from_utf8(value).expect("text"), "\r\n"]);
    }
    [text.as_bytes(), b"\r\n", body.as_bytes()].concat()
}

fn events(gate_outcome: &str, endpoint: &str) -> String {
    format!("ichido_events_total{{endpoint=\"{endpoint}\",outcome=\"{gate_outcome}\"}}")
}

#[test]
fn row_96_a_slow_disk_is_503_in_time_and_the_retry_a_duplicate() {
    let gate = Gate::closed("");
    let server = gate.site.serve();
    let began = Instant::now();
    let answer = ask(server.address, &chat());
    assert!(began.elapsed() < Duration::from_secs(3), "Slack would have given up");
    assert_eq!((answer.status, answer.body.as_str()), (503, r#"{"error":"unavailable"}"#));
    assert_eq!(answer.header("retry-after"), Some("5"));
    assert_eq!(gate.stored(), 0);
    gate.open();
    gate.wait_for_stored(1);
    let retry = ask(server.address, &chat());
    assert_eq!((retry.status, retry.body.as_str()), (200, r#"{"outcome":"duplicate"}"#));
    for outcome in ["ignored", "duplicate"] {
        assert_eq!(metric(server.address, &events(outcome, "chat")), 1, "{outcome}");
    }
}

#[test]
fn a_client_that_hangs_up_before_its_answer_cancels_nothing() {
    let gate = Gate::closed("");
    let server = gate.site.serve();
    let wire = Wire::sent(server.address, &delivery(1, ""));
    gate.wait_for(1);
    drop(wire);
    eventually("the server sees that it is gone", || {
        (metric(server.address, "ichido_http_connections") == 1).then_some(())
    });
    gate.open();
    gate.wait_for_stored(1);
    eventually("what was committed is counted", || {
        (metric(server.address, &events("ignored", "billing")) == 1).then_some(())
    });
    let retry = ask(server.address, &delivery(1, ""));
    assert_eq!(retry.body, r#"{"outcome":"duplicate"}"#);
}

#[test]
fn a_client_that_hangs_up_within_its_body_leaves_nothing() {
    let site = site("");
    let server = site.serve();
    let whole = delivery(1, "");
    for length in [10, whole.len() - body(1).len(), whole.len() - 1] {
        drop(Wire::sent(server.address, &whole[..length]));
    }
    eventually("the server sees that they are gone", || {
        (metric(server.address, "ichido_http_connections") == 1).then_some(())
    });
    assert_eq!(stored(&site), 0);
    assert_eq!(ask(server.address, &whole).status, 200, "the whole one is no duplicate");
}

#[test]
fn requests_over_the_limit_are_503_at_once_also_while_nobody_waits_for_the_others() {
    let gate = Gate::closed("limits.requests_max = 2");
    let server = gate.site.serve();
    let gone: Vec<_> =
        (0..2).map(|number| Wire::sent(server.address, &delivery(number, ""))).collect();
    gate.wait_for(1);
    eventually("both are at work", || {
        (metric(server.address, "ichido_http_in_flight") == 3).then_some(())
    });
    drop(gone);
    eventually("the server sees that they are gone", || {
        (metric(server.address, "ichido_http_connections") == 1).then_some(())
    });
    let answer = ask(server.address, &delivery(3, ""));
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")));
    gate.open();
    gate.wait_for_stored(2);
    let reason = "ichido_receive_failed_total{endpoint=\"billing\",reason=\"too_many_requests\"}";
    assert_eq!(metric(server.address, reason), 1);
    assert_eq!(ask(server.address, &delivery(3, "")).status, 200);
}

/// Clients that announce large bodies and send none of it.
#[test]
fn announced_bodies_take_no_memory_from_those_that_are_sent() {
    let site = site("limits.body_bytes_in_flight_max = 1_048_576");
    let server = site.serve();
    let head = "POST /webhooks/billing HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\nx";
    let silent: Vec<_> = (0..50).map(|_| Wire::sent(server.address, head.as_bytes())).collect();
    eventually("all of them are being read", || {
        (metric(server.address, "ichido_http_in_flight") == 51).then_some(())
    });
    assert_eq!(ask(server.address, &delivery(1, "")).status, 200);
    drop(silent);
}

/// A delivery with a body of about `bytes`.
fn large(number: usize, bytes: usize) -> Vec<u8> {
    let body = format!(
        r#"{{"id":"evt_{number}","type":"invoice.paid","created":1,"x":"{}"}}"#,
        "x".repeat(bytes)
    );
    post(&body, "connection: close\r\n")
}

#[test]
fn row_98_a_flood_is_503_takes_no_memory_and_what_is_acknowledged_is_stored() {
    const SENDERS: usize = 16;
    const EACH: usize = 25;
    const BODY: usize = 200_000;
    const IN_FLIGHT: u64 = 2 << 20;
    let gate = Gate::closed(&format!(
        "[limits]\nrequests_max = 8\nbody_bytes_in_flight_max = {IN_FLIGHT}"
    ));
    let server = gate.site.serve();
    assert_eq!(get(server.address, "/readyz").status, 200);
    let before = rss_bytes(server.id());
    let (acknowledged, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (acknowledged, refused, server) = (&acknowledged, &refused, &server);
            scope.spawn(move || {
                for number in 0..EACH {
                    let event = large(sender * EACH + number, BODY);
                    let answer = ask(server.address, &event);
                    match answer.status {
                        200 => acknowledged.fetch_add(1, Ordering::SeqCst),
                        503 => refused.fetch_add(1, Ordering::SeqCst),
                        other => panic!("{other}: {answer:?}"),
                    };
                }
            });
        }
        // The gate opens in the middle of the flood.
        eventually("some are refused", || {
            (refused.load(Ordering::SeqCst) >= SENDERS * EACH / 4).then_some(())
        });
        let after = rss_bytes(server.id());
        gate.open();
        // Bodies, twice while they grow or are sent on; the buffers of the senders' connections.
        let bound = 2 * IN_FLIGHT + SENDERS as u64 * 4 * 65_536 + (8 << 20);
        assert!(after < before + bound, "{before} -> {after}, more than {bound}");
    });
    let (acknowledged, refused) = (acknowledged.into_inner(), refused.into_inner());
    assert!(refused > 0 && acknowledged > 0, "{refused} refused, {acknowledged} acknowledged");
    gate.wait_for_stored(i64::try_from(acknowledged).expect("small"));
}
