//! Rows 29 to 31 of the catalogue of bad input: clients that are slow to ask, to send and to
//! listen. Their times are the settings', made short.

use std::{
    io::{Read, Write},
    time::{Duration, Instant},
};

use crate::wire::{PATH, Wire, ask, body, delivery, ended, eventually, get, site, stored};

/// Between two bytes of a slow client.
const DRIP: Duration = Duration::from_millis(20);

#[test]
fn row_29_a_head_a_byte_at_a_time_is_cut_off() {
    let site = site("limits.header_timeout = \"500ms\"");
    let server = site.serve();
    let mut wire = Wire::open(server.address);
    let head = format!("POST {PATH} HTTP/1.1\r\nhost: x\r\nx: {}", "y".repeat(5_000));
    assert!(wire.drip(head.as_bytes(), DRIP), "it was listened to for as long as it spoke");
    assert!(wire.is_closed());
    assert_eq!(ended(server.address, "header_timeout"), 1);
}

#[test]
fn row_29_a_later_head_a_byte_at_a_time_is_cut_off_before_the_idle_time() {
    let site = site("limits.header_timeout = \"500ms\"");
    let server = site.serve();
    let mut wire = Wire::sent(server.address, b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(wire.answer().expect("an answer").status, 200);
    let began = Instant::now();
    assert!(wire.drip("G".repeat(5_000).as_bytes(), DRIP));
    assert!(began.elapsed() < Duration::from_secs(50), "the idle time is 60 s");
    assert_eq!(ended(server.address, "header_timeout"), 1);
}

#[test]
fn a_connection_without_a_second_request_ends_after_the_idle_time() {
    let site = site("limits.idle_timeout = \"200ms\"");
    let server = site.serve();
    let mut wire = Wire::sent(server.address, b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(wire.answer().expect("an answer").status, 200);
    assert!(wire.is_closed());
    assert_eq!(ended(server.address, "idle_timeout"), 1);
}

#[test]
fn row_30_a_body_a_byte_at_a_time_is_408_and_closes() {
    let site = site("limits.body_timeout = \"200ms\"");
    let server = site.serve();
    let whole = delivery(1, "");
    let head = whole.len() - body(1).len();
    let mut wire = Wire::sent(server.address, &whole[..head]);
    assert!(wire.drip(&whole[head..], DRIP), "it was read to its end");
    let answer = wire.answer().expect("an answer");
    assert_eq!((answer.status, answer.body.as_str()), (408, r#"{"error":"too_slow"}"#));
    assert!(wire.is_closed());
    assert_eq!(stored(&site), 0);
}

#[test]
fn a_client_that_is_refused_while_it_sends_is_answered_and_not_reset() {
    let site = site("limits.body_bytes_max = 1000");
    let server = site.serve();
    let mut request =
        format!("POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: 3000000\r\n\r\n").into_bytes();
    request.extend(vec![b'x'; 3_000_000]);
    let mut wire = Wire::open(server.address);
    wire.stream.write_all(&request).expect("taken, and thrown away");
    let answer = wire.answer().expect("an answer");
    assert_eq!((answer.status, answer.header("connection")), (413, Some("close")));
    assert!(wire.is_closed());
}

/// Answers that are not taken fill the kernel's buffers first, a few megabytes.
#[test]
fn row_31_a_client_that_does_not_take_its_answers_is_cut_off() {
    let site = site("limits.write_timeout = \"200ms\"");
    let server = site.serve();
    let mut wire = Wire::open(server.address);
    let requests = b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1000);
    // Nothing of this is read, so that in the end writing fails or stands still.
    wire.stream.set_write_timeout(Some(Duration::from_millis(100))).expect("set");
    eventually("the client is cut off", || {
        wire.send(&requests);
        (ended(server.address, "write_timeout") == 1).then_some(())
    });
    assert_eq!(get(server.address, "/livez").status, 200);
}

/// A byte now and then is no reading: the time is for the whole answer.
#[test]
fn row_31_a_client_that_takes_a_byte_at_a_time_is_cut_off() {
    let site = site("limits.write_timeout = \"500ms\"");
    let server = site.serve();
    let mut wire = Wire::open(server.address);
    let requests = b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1000);
    wire.stream.set_write_timeout(Some(Duration::from_millis(100))).expect("set");
    eventually("the client is cut off", || {
        wire.send(&requests);
        let _ = wire.stream.read(&mut [0]);
        (ended(server.address, "write_timeout") == 1).then_some(())
    });
}

#[test]
fn a_slow_receive_is_no_slow_client() {
    let site = site(
        "[limits]\nheader_timeout = \"400ms\"\nidle_timeout = \"400ms\"\n\
         body_timeout = \"400ms\"\nwrite_timeout = \"400ms\"",
    );
    let server = site.serve();
    let file = rusqlite::Connection::open(site.path().join("ichido.db")).expect("opens");
    file.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let mut wire = Wire::sent(server.address, &delivery(1, ""));
    std::thread::sleep(Duration::from_secs(1));
    file.execute_batch("COMMIT").expect("unlocked");
    assert_eq!(wire.answer().expect("an answer").status, 200);
    assert_eq!(ask(server.address, &delivery(2, "")).status, 200);
}
