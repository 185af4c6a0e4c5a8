//! Rows 20-27: where a request ends. Who is in doubt about that must refuse and close, or a
//! stranger's bytes become somebody else's request. (Row 28 is about HTTP/2, which is not spoken
//! here: row 19 holds that.)

use crate::{BILLING, EVENT, World, head, statuses, stripe_line};

const CHUNKED: &str = "transfer-encoding: chunked";
const CLOSE: &str = "connection: close";

/// The event in two chunks, without the last, empty one.
fn chunks() -> String {
    let (start, end) = EVENT.split_at(10);
    format!("a\r\n{start}\r\n{:x}\r\n{end}\r\n", end.len())
}

/// The header line with the signature of the event.
fn signature() -> String {
    stripe_line(EVENT.as_bytes())
}

/// The header line with the length of the event.
fn length() -> String {
    format!("content-length: {}", EVENT.len())
}

/// Another event, whole, as a request of its own.
fn another() -> String {
    let body = EVENT.replace("evt_1", "evt_2");
    head(BILLING, &[CLOSE, &stripe_line(body.as_bytes()), &length()]) + &body
}

#[test]
fn row_20_with_a_length_and_chunks_the_chunks_count_and_the_connection_is_closed() {
    for (first, second) in [("content-length: 3", CHUNKED), (CHUNKED, "content-length: 3")] {
        let world = World::new();
        let request = head(BILLING, &[first, second, &signature()]) + &chunks() + "0\r\n\r\n";
        let answers = world.talk((request + &another()).as_bytes());
        assert_eq!(statuses(&answers), [200], "{answers}");
        assert_eq!(world.body(), EVENT.as_bytes());
    }
}

#[test]
fn row_21_two_lengths_that_differ_are_400() {
    let world = World::new();
    for other in ["content-length: 3", "content-length: 40", "content-length: 0"] {
        for lines in [[&*length(), other], [other, &*length()]] {
            let request = head(BILLING, &[&lines[..], &[&signature()]].concat()) + EVENT;
            assert_eq!(statuses(&world.talk(request.as_bytes())), [400], "{lines:?}");
        }
    }
    assert_eq!(world.events(), 0);
}

#[test]
fn row_22_a_length_that_is_not_only_digits_is_400() {
    let world = World::new();
    let post = |length: &str| {
        let length = format!("content-length: {length}");
        let request = head(BILLING, &[CLOSE, &signature(), &length]) + EVENT;
        statuses(&world.talk(request.as_bytes()))
    };
    let len = EVENT.len();
    for odd in [
        String::new(),
        format!("+{len}"),
        format!("-{len}"),
        format!("{len}, {len}"),
        format!("{len} {len}"),
        format!("0x{len:x}"),
        format!("{len}.0"),
        format!("{len};"),
        format!("{len}e0"),
        "18446744073709551616".into(),
        format!("1{}", "0".repeat(40)),
    ] {
        assert_eq!(post(&odd), [400], "`{odd}`");
    }
    assert_eq!(world.events(), 0);
    // White space around a value is no part of it.
    assert_eq!(post(&format!(" {len}\t")), [200]);
}

#[test]
fn row_23_any_other_transfer_encoding_than_one_chunked_is_400_and_the_end() {
    let world = World::new();
    let post = |lines: &[&str]| {
        let head = head(BILLING, &[lines, &[&signature()]].concat());
        world.talk((head + &chunks() + "0\r\n\r\n").as_bytes())
    };
    for odd in [
        "",
        "identity",
        "xchunked",
        "chunkedx",
        "\"chunked\"",
        "chunked;q=1",
        "\u{b}chunked",
        "chunked, identity",
        "identity, chunked",
        "gzip, chunked",
        "chunked, chunked",
        ", chunked",
    ] {
        let answer = post(&[&format!("transfer-encoding: {odd}")]);
        assert_eq!(statuses(&answer), [400], "`{odd}`");
    }
    for lines in [[CHUNKED, CHUNKED], [CHUNKED, "transfer-encoding: identity"]] {
        assert_eq!(statuses(&post(&lines)), [400], "{lines:?}");
    }
    assert_eq!(world.events(), 0);
    // White space around a value is no part of it, and names of codings have no case.
    assert_eq!(statuses(&post(&[CLOSE, "transfer-encoding: \tChunked\t"])), [200]);
}

#[test]
fn row_24_a_chunk_that_is_not_as_it_should_be_is_400() {
    let world = World::new();
    let post = |lines: &[&str], body: &str| {
        let head = head(BILLING, &[lines, &[CHUNKED]].concat());
        statuses(&world.talk((head + body).as_bytes()))
    };
    let size = format!("{:x}", EVENT.len());
    for odd in [
        "fffffffffffffffff".to_owned(),
        format!("1{}{size}", "0".repeat(20)),
        format!("-{size}"),
        format!("+{size}"),
        format!("0x{size}"),
        String::new(),
        "g".into(),
        format!("{size};{}", "x".repeat(20_000)),
    ] {
        let body = format!("{odd}\r\n{EVENT}\r\n0\r\n\r\n");
        assert_eq!(post(&[&signature()], &body), [400], "{odd}");
    }
    let no_end = format!("{size}\r\n{EVENT}xx0\r\n\r\n");
    assert_eq!(post(&[&signature()], &no_end), [400]);
    assert_eq!(world.events(), 0);
}

#[test]
fn row_24_trailers_never_count_as_headers() {
    let world = World::new();
    let post = |lines: &[&str], trailer: &str| {
        let head = head(BILLING, &[lines, &[CLOSE, CHUNKED, "trailer: stripe-signature"]].concat());
        let body = chunks() + "0\r\n" + trailer + "\r\n\r\n";
        statuses(&world.talk((head + &body).as_bytes()))
    };
    assert_eq!(post(&[], &signature()), [400]);
    assert_eq!(world.events(), 0);
    // One beside a good signature would be a second signature if it counted.
    assert_eq!(post(&[&signature()], "stripe-signature: t=1,v1=00"), [200]);
}

#[test]
fn row_25_what_is_not_http_1_1_is_refused_and_the_end() {
    let world = World::new();
    let chunked = head(BILLING, &[CHUNKED, &signature()]) + &chunks() + "0\r\n\r\n";
    let whole = head(BILLING, &[&signature(), &length()]) + EVENT;
    for (request, why) in [
        (chunked.replace("HTTP/1.1", "HTTP/1.0"), "HTTP/1.0 knows no chunks"),
        (whole.replace(" HTTP/1.1", ""), "HTTP/0.9"),
        (whole.replace("HTTP/1.1", "HTTP/1.2"), "a version that never was"),
        (whole.replace("HTTP/1.1", "HTTP/2.0"), "HTTP/2"),
        (whole.replace("HTTP/1.1", "http/1.1"), "lower case"),
        (whole.replace(" HTTP/1.1", " HTTP/1.1 x"), "a word too many"),
        (whole.replacen("POST", "PO ST", 1), "a method of two words"),
        (format!("\0{whole}"), "NUL first"),
        ("HTTP/1.1 200 OK\r\n\r\n".into(), "an answer"),
        ("\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}".into(), "TLS"),
        ("\r\n\r\n \r\n\r\n".into(), "nothing"),
    ] {
        let answers = world.talk(request.as_bytes());
        assert!(matches!(statuses(&answers)[..], [] | [400]), "{why}: {answers}");
    }
    assert_eq!(world.events(), 0);
}

#[test]
fn row_26_a_request_inside_a_body_is_body_and_nothing_else() {
    for chunked in [false, true] {
        let world = World::new();
        let body = format!("{EVENT}\r\n\r\n{}", another());
        let signature = stripe_line(body.as_bytes());
        let (line, sent) = if chunked {
            (CHUNKED.to_owned(), format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()))
        } else {
            (format!("content-length: {}", body.len()), body.clone())
        };
        // What follows the body is the next request on the same connection, and is answered.
        let next = "GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        let answers = world.talk((head(BILLING, &[&line, &signature]) + &sent + next).as_bytes());
        assert_eq!(statuses(&answers), [200, 200], "{answers}");
        assert!(answers.ends_with("\r\n\r\nok\n"), "{answers}");
        assert_eq!(world.events(), 1);
        assert_eq!(world.body(), body.as_bytes());
    }
}

#[test]
fn row_27_a_body_that_ends_early_stores_nothing() {
    let world = World::new();
    let longer = format!("content-length: {}", EVENT.len() + 1);
    for request in [
        head(BILLING, &[&signature(), &longer]) + EVENT,
        head(BILLING, &[&signature(), CHUNKED]) + &chunks(),
        head(BILLING, &[&signature(), CHUNKED]) + &chunks() + "0\r\n",
    ] {
        let answers = world.talk_and_end(request.as_bytes());
        assert!(matches!(statuses(&answers)[..], [] | [400]), "{answers}");
    }
    assert_eq!(statuses(&world.talk(another().as_bytes())), [200]);
    assert_eq!(world.events(), 1);
}
