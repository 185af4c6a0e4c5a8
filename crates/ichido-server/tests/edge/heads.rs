//! Rows 10 to 17, 20 and 24 of the catalogue of bad input: request heads that lie or are too
//! much, and framing that could be read in two ways.

use ichido_verify::Timestamp;

use crate::wire::{PATH, Wire, ask, body, delivery, signature, site, stored};

/// A POST to the endpoint with these header lines after `Host`, without a body.
fn post(extra: &[u8]) -> Vec<u8> {
    let mut request = format!("POST {PATH} HTTP/1.1\r\nhost: x\r\n").into_bytes();
    request.extend_from_slice(extra);
    request.extend_from_slice(b"\r\n\r\n");
    request
}

#[test]
fn row_10_a_signature_that_is_not_text_is_rejected_like_any_other() {
    let site = site("");
    let server = site.serve();
    let answer =
        ask(server.address, &post(b"content-length: 0\r\nstripe-signature: t=1,v1=\xff\xfe"));
    assert_eq!((answer.status, answer.body.as_str()), (400, r#"{"error":"rejected"}"#));
    let log = server.wait_for("malformed_signature");
    assert!(!log.contains('\u{fffd}') && !log.contains("v1="), "{log}");
}

#[test]
fn row_11_a_control_character_in_a_value_is_400_and_closes() {
    let site = site("");
    let server = site.serve();
    for value in [&b"x: a\rb"[..], b"x: a\nno colon", b"x: a\0b", b"x: a\x7fb"] {
        let mut wire = Wire::sent(server.address, &post(value));
        let answer = wire.answer().expect("an answer");
        assert_eq!((answer.status, answer.body.as_str()), (400, ""), "{value:?}");
        assert!(wire.is_closed(), "{value:?}");
    }
}

#[test]
fn row_12_one_header_more_than_the_limit_is_431() {
    let site = site("");
    let server = site.serve();
    // `Host` and `Content-Length` count as well.
    let lines = |count: usize| [b"content-length: 0", "\r\nx: y".repeat(count).as_bytes()].concat();
    assert_eq!(ask(server.address, &post(&lines(98))).status, 400, "100 headers are read");
    assert_eq!(ask(server.address, &post(&lines(99))).status, 431);
}

#[test]
fn row_13_a_head_over_its_limit_is_431_and_closes() {
    let site = site("");
    let server = site.serve();
    let long = [b"x: ".to_vec(), vec![b'y'; 70_000]].concat();
    let mut wire = Wire::sent(server.address, &post(&long));
    assert_eq!(wire.answer().expect("an answer").status, 431);
    assert!(wire.is_closed());
}

#[test]
fn row_14_a_folded_line_and_a_space_before_the_colon_are_400() {
    let site = site("");
    let server = site.serve();
    for value in [&b"x: a\r\n b"[..], b"x: a\r\n\tb", b"content-length : 0", b" x: a"] {
        assert_eq!(ask(server.address, &post(value)).status, 400, "{value:?}");
    }
}

#[test]
fn row_15_a_host_that_is_missing_or_comes_twice_is_400_and_any_one_is_taken() {
    let site = site("");
    let server = site.serve();
    let whole = String::from_utf8(delivery(1, "")).expect("text");
    for hosts in ["", "host: x\r\nhost: x\r\n", "host: x\r\nHost: y\r\n"] {
        let answer = ask(server.address, whole.replace("host: x\r\n", hosts).as_bytes());
        assert_eq!(answer.status, 400, "{hosts:?}");
        assert_eq!(answer.body, r#"{"error":"malformed"}"#);
    }
    assert_eq!(stored(&site), 0);
    let other = whole.replace("host: x\r\n", "host: somebody.else:99\r\n");
    assert_eq!(ask(server.address, other.as_bytes()).status, 200);
    let old = "GET /livez HTTP/1.0\r\n\r\n";
    assert_eq!(ask(server.address, old.as_bytes()).status, 200, "HTTP/1.0 knew no Host");
}

#[test]
fn row_16_forwarded_headers_of_a_client_change_nothing() {
    let site = site("");
    let server = site.serve();
    let forged = "x-forwarded-for: 127.0.0.1\r\nx-forwarded-proto: https\r\n\
                  x-forwarded-host: evil\r\nforwarded: for=1.2.3.4;proto=https\r\n\
                  x-forwarded-uri: /webhooks/other\r\nx-original-url: /webhooks/other\r\n";
    let answer = ask(server.address, &delivery(1, forged));
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"outcome":"ignored"}"#));
    assert_eq!(answer.header("strict-transport-security"), None);
    assert_eq!(stored(&site), 1);
}

#[test]
fn row_17_a_huge_length_is_413_before_the_client_is_told_to_go_on() {
    let site = site("");
    let server = site.serve();
    let request = post(b"expect: 100-continue\r\ncontent-length: 99999999999");
    let mut wire = Wire::sent(server.address, &request);
    assert_eq!(wire.answer().expect("an answer").status, 413);
    assert!(wire.is_closed());
}

#[test]
fn a_client_that_expects_to_be_told_is_told_to_go_on() {
    let site = site("");
    let server = site.serve();
    let whole = String::from_utf8(delivery(1, "expect: 100-continue\r\n")).expect("text");
    let (head, body) = whole.split_once("\r\n\r\n").expect("a head");
    let mut wire = Wire::sent(server.address, format!("{head}\r\n\r\n").as_bytes());
    assert_eq!(wire.answer().expect("an answer").status, 100);
    wire.send(body.as_bytes());
    assert_eq!(wire.answer().expect("an answer").status, 200);
}

/// A delivery in one chunk, with header lines before its `Transfer-Encoding` and lines after the
/// last chunk.
fn chunked(number: usize, extra: &str, trailers: &str) -> Vec<u8> {
    let body = body(number);
    format!(
        "POST {PATH} HTTP/1.1\r\nhost: x\r\n{extra}transfer-encoding: chunked\r\n\r\n\
         {:x}\r\n{body}\r\n0\r\n{trailers}\r\n",
        body.len()
    )
    .into_bytes()
}

/// `Content-Length` beside `Transfer-Encoding` cannot be seen here: the HTTP library drops the
/// length, reads the chunks, and closes, as RFC 9112 demands of whoever accepts it at all.
#[test]
fn row_20_of_a_length_and_chunks_the_chunks_count_and_the_connection_ends() {
    let site = site("");
    let server = site.serve();
    let signature = signature(&body(1), Timestamp::now());
    let smuggled = "GET /livez HTTP/1.1\r\nhost: x\r\n\r\n";
    for length in ["content-length: 5\r\n", "content-length: 99999\r\n"] {
        let mut request = chunked(1, &format!("stripe-signature: {signature}\r\n{length}"), "");
        request.extend_from_slice(smuggled.as_bytes());
        let mut wire = Wire::sent(server.address, &request);
        let answer = wire.answer().expect("an answer");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(wire.is_closed(), "what follows must not become a request");
    }
    assert_eq!(stored(&site), 1);
}

#[test]
fn row_24_a_signature_in_the_trailers_is_no_signature() {
    let site = site("");
    let server = site.serve();
    let signature = signature(&body(1), Timestamp::now());
    let trailers = format!("stripe-signature: {signature}\r\n");
    let extra = "te: trailers\r\ntrailer: stripe-signature\r\n";
    let answer = ask(server.address, &chunked(1, extra, &trailers));
    assert_eq!((answer.status, answer.body.as_str()), (400, r#"{"error":"rejected"}"#));
    assert_eq!(stored(&site), 0);
    let header = format!("stripe-signature: {signature}\r\n");
    assert_eq!(ask(server.address, &chunked(1, &header, "x: y\r\n")).status, 200);
}
