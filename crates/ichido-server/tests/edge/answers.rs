//! What every answer carries. What none does is held by `wire`, for every test here.

use std::collections::BTreeSet;

use crate::wire::{PATH, Wire, ask, delivery, get, site};

#[test]
fn every_answer_tells_browsers_to_do_nothing_with_it() {
    let site = site("limits.body_bytes_max = 1000");
    let server = site.serve();
    let post = |extra: &str| format!("POST {PATH} HTTP/1.1\r\nhost: x\r\n{extra}\r\n\r\n");
    let own = [
        (200, delivery(1, "")),
        (400, post("content-length: 0").into_bytes()),
        (400, b"GET /livez HTTP/1.1\r\n\r\n".to_vec()),
        (404, b"GET /nope HTTP/1.1\r\nhost: x\r\n\r\n".to_vec()),
        (404, b"CONNECT x:80 HTTP/1.1\r\nhost: x\r\n\r\n".to_vec()),
        (405, format!("PUT {PATH} HTTP/1.1\r\nhost: x\r\n\r\n").into_bytes()),
        (405, b"POST /livez HTTP/1.1\r\nhost: x\r\n\r\n".to_vec()),
        (413, post("content-length: 1001").into_bytes()),
        (200, b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n".to_vec()),
        (200, b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n".to_vec()),
        (200, b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n".to_vec()),
    ];
    for (status, request) in own {
        let answer = ask(server.address, &request);
        assert_eq!(answer.status, status, "{answer:?}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{answer:?}");
        }
        assert_eq!(answer.header("strict-transport-security"), None, "without TLS: {answer:?}");
    }
    // What never became a request is answered by the HTTP library, with a status and no body.
    for garbage in [&b"nonsense\r\n\r\n"[..], b"GET / HTTP/1.1\r\nhost : x\r\n\r\n"] {
        let answer = ask(server.address, garbage);
        assert_eq!((answer.status, answer.body.as_str()), (400, ""), "{answer:?}");
    }
}

#[test]
fn each_answer_has_a_request_id_of_ours_that_the_log_names() {
    let site = site("");
    let server = site.serve();
    let request = format!(
        "POST {PATH} HTTP/1.1\r\nhost: x\r\nx-request-id: mine\r\ncontent-length: 0\r\n\r\n"
    );
    let ids: BTreeSet<String> = (0..2)
        .map(|_| {
            let answer = ask(server.address, request.as_bytes());
            assert_eq!(answer.body, r#"{"error":"rejected"}"#);
            answer.header("x-request-id").expect("an id").to_owned()
        })
        .collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    for id in &ids {
        assert!(id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
        server.wait_for(&format!("request={id}"));
    }
    assert!(!server.log().contains("mine"));
}

#[test]
fn an_answer_before_the_body_ends_the_connection_and_says_so() {
    let site = site("");
    let server = site.serve();
    for (method, path, status) in
        [("POST", "/nope", 404), ("PUT", PATH, 405), ("GET", "/livez", 200)]
    {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n");
        let mut wire = Wire::sent(server.address, head.as_bytes());
        let answer = wire.answer().expect("an answer");
        assert_eq!((answer.status, answer.header("connection")), (status, Some("close")));
        assert!(wire.is_closed(), "{path}");
    }
}

#[test]
fn nothing_is_redirected_upgraded_or_compressed() {
    let site = site("");
    let server = site.serve();
    for (path, extra) in [
        ("/livez", "accept-encoding: gzip, br\r\n"),
        ("/livez/", ""),
        ("//livez", ""),
        ("/livez", "connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AA\r\n"),
        ("/livez", "connection: upgrade\r\nupgrade: websocket\r\n"),
        ("/livez", "origin: https://example.org\r\n"),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n{extra}\r\n");
        let answer = ask(server.address, request.as_bytes());
        let expected = if path == "/livez" { 200 } else { 404 };
        assert_eq!(answer.status, expected, "{path} {extra}");
    }
}

#[test]
fn a_connection_of_http_2_is_closed_without_an_answer() {
    let site = site("");
    let server = site.serve();
    let mut wire =
        Wire::sent(server.address, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    assert!(wire.is_closed());
    assert_eq!(get(server.address, "/livez").status, 200);
}
