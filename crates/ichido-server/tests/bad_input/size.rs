//! Rows 34-40: what is too large is refused by name, and what is odd but fits is kept whole.

use std::io::Write;

use crate::{
    BILLING, EVENT, World, common::SECRET, head, mac, statuses, stripe, stripe_line, until_closed,
};

const MIB: usize = 1024 * 1024;

/// An event of so many bytes.
fn event_of(bytes: usize) -> String {
    let start = r#"{"id":"evt_1","type":"invoice.paid","pad":""#;
    format!("{start}{}\"}}", "x".repeat(bytes - start.len() - 2))
}

/// Posts a body to `billing` in one piece, signed.
fn post(world: &World, body: &str) -> u16 {
    world.post(BILLING, &[("stripe-signature", &stripe(body.as_bytes()))], body).status
}

#[test]
fn row_34_a_body_over_the_limit_is_413_before_it_is_read() {
    let world = World::limited("body_bytes_max = 1000");
    let signature = stripe_line(event_of(1001).as_bytes());
    // The body is never sent.
    let answer = world.talk(head(BILLING, &[&signature, "content-length: 1001"]).as_bytes());
    assert_eq!(statuses(&answer), [413]);
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert_eq!(world.events(), 0);
    assert_eq!(post(&world, &event_of(1000)), 200);
}

#[test]
fn row_35_a_body_in_chunks_is_413_when_it_passes_the_limit() {
    let world = World::limited("body_bytes_max = 1000");
    let request = |body: &str| {
        let signature = stripe_line(body.as_bytes());
        let lines = ["connection: close", "transfer-encoding: chunked", &signature];
        let (start, end) = body.split_at(600);
        head(BILLING, &lines) + &format!("258\r\n{start}\r\n{:x}\r\n{end}\r\n", end.len())
    };
    // The last chunk is never sent.
    assert_eq!(statuses(&world.talk(request(&event_of(1001)).as_bytes())), [413]);
    assert_eq!(world.events(), 0);
    let whole = request(&event_of(1000)) + "0\r\n\r\n";
    assert_eq!(statuses(&world.talk(whole.as_bytes())), [200]);
}

#[test]
fn row_36_an_empty_body_that_is_signed_needs_review() {
    let world = World::new();
    assert_eq!(post(&world, ""), 200);
    world.assert_needs_review();
    let id: String = world.read("SELECT event_id FROM ichido_event");
    // SHA-256 of nothing.
    assert_eq!(id, "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

#[test]
fn row_37_a_body_of_25_mib_is_taken_where_it_is_allowed_and_counts_as_memory() {
    let limits = "body_bytes_max = 26_214_400\nbody_bytes_in_flight_max = 27_262_976";
    let world = World::limited(limits);
    let body = event_of(25 * MIB);
    let mut held = world.connect();
    let length = format!("content-length: {}", body.len());
    let signature = stripe_line(body.as_bytes());
    let lines = ["connection: close", &*signature, &length];
    held.write_all(head(BILLING, &lines).as_bytes()).expect("sent");
    // What has come holds memory; what is only announced does not.
    let (first, rest) = body.as_bytes().split_at(20 * MIB);
    held.write_all(first).expect("sent");
    let other_head = head(BILLING, &["connection: close", &length]);
    let other = [other_head.as_bytes(), body.as_bytes()];
    assert_eq!(statuses(&world.talk(&other.concat())), [503]);
    held.write_all(rest).expect("sent");
    assert_eq!(statuses(&until_closed(held)), [200]);
    assert!(world.body() == body.as_bytes(), "another body was stored");
}

/// How many zeros the bomb holds.
const ZEROS: usize = 10_320_001;

/// Them, compressed by a factor of 158: one zero, and 40,000 times "258 more of it".
fn bomb() -> Vec<u8> {
    let start = [0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0x63];
    let more = [0x18, 0x05, 0xa3, 0x60, 0x14, 0x8c, 0x82, 0x51, 0x30, 0x0a, 0x46, 0xc1, 0x28];
    let end = [0x00, 0x00, 0x0b, 0x04, 0x92, 0x56, 0x81, 0x78, 0x9d, 0x00];
    [&start[..], &more.repeat(5_000), &end].concat()
}

#[test]
fn row_38_a_compressed_body_is_verified_and_kept_as_it_came() {
    let world = World::new();
    let bomb = bomb();
    let post = |signed: &[u8]| {
        let length = format!("content-length: {}", bomb.len());
        let signature = stripe_line(signed);
        let lines = ["content-encoding: gzip", "connection: close", &*signature, &length];
        let request = [head(BILLING, &lines).as_bytes(), &bomb].concat();
        statuses(&world.talk(&request))
    };
    assert_eq!(post(&vec![0; ZEROS]), [400]);
    assert_eq!(world.events(), 0);
    assert_eq!(post(&bomb), [200]);
    assert!(world.body() == bomb, "another body was stored");
    world.assert_needs_review();
}

#[test]
fn row_39_a_url_of_64_kib_is_refused_by_its_own_limit_or_that_of_the_head() {
    let path = format!("{BILLING}?{}", "x".repeat(65_536 - BILLING.len() - 1));
    let length = format!("content-length: {}", EVENT.len());
    let lines = ["connection: close", &stripe_line(EVENT.as_bytes()), &length];
    let request = head(&path, &lines) + EVENT;
    // As it is set, a head of that size is refused whatever it is made of.
    for (limits, status) in [("", 431), ("header_bytes_max = 200_000", 414)] {
        let world = World::limited(limits);
        assert_eq!(statuses(&world.talk(request.as_bytes())), [status]);
        assert_eq!(world.events(), 0);
    }
}

#[test]
fn row_40_an_event_id_over_255_bytes_needs_review_under_its_digest() {
    let world = World::new();
    let body = EVENT.replace("evt_1", &"x".repeat(10 * 1024));
    assert_eq!(post(&world, &body), 200);
    world.assert_needs_review();
    assert_eq!(post(&world, &body), 200);
    world.assert_needs_review();
}

#[test]
fn row_40_an_event_id_in_a_header_is_held_to_the_same_size() {
    for (bytes, needs_review) in [(256, true), (10 * 1024, true), (255, false)] {
        let world = World::new();
        let id = "x".repeat(bytes);
        let signature = format!("sha256={}", mac(EVENT.into(), SECRET));
        let headers = [
            ("x-hub-signature-256", signature.as_str()),
            ("x-github-event", "push"),
            ("x-github-delivery", &id),
        ];
        assert_eq!(world.post("/webhooks/hub", &headers, EVENT).status, 200);
        if needs_review {
            world.assert_needs_review();
        } else {
            assert_eq!(world.read::<String>("SELECT event_id FROM ichido_event"), id);
        }
    }
}
