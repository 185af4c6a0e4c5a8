//! Rows 1-19: what a sender can do with headers. A signature counts when it is exactly what the
//! provider's scheme says, and nothing else a sender says decides anything.

use ichido_verify::{GenericAlgorithm, Settings, Timestamp};

use crate::{
    BILLING, EVENT, STANDARD_SECRET, World,
    common::{Answer, SECRET},
    head, mac, mac_with, sign, statuses, stripe, stripe_at, stripe_line, value,
};

/// The headers of an event of `standard`, signed at this time.
fn standard(at: Timestamp) -> [(&'static str, String); 3] {
    let headers =
        sign("standard-webhooks", &Settings::default(), STANDARD_SECRET, EVENT.into(), at);
    ["webhook-id", "webhook-timestamp", "webhook-signature"]
        .map(|name| (name, value(&headers, name)))
}

/// The same, where the signature holds a character that another base64 writes differently.
fn standard_with_a_plus() -> [(&'static str, String); 3] {
    let now = Timestamp::now().as_second();
    let mut made = (0..60).map(|ago| standard(Timestamp::from_second(now - ago).expect("a time")));
    made.find(|headers| headers[2].1.contains('+')).expect("one of sixty")
}

fn post_standard(world: &World, headers: &[(&str, String)]) -> u16 {
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    world.post("/webhooks/standard", &headers, EVENT).status
}

#[test]
fn row_01_a_request_without_a_signature_header_is_refused() {
    let world = World::new();
    assert_eq!(world.post(BILLING, &[], EVENT).status, 400);
    assert_eq!(world.events(), 0);
}

#[test]
fn row_02_an_empty_signature_is_refused() {
    let world = World::new();
    for empty in ["", " ", "t=,v1=", "v1="] {
        assert_eq!(world.signed_by(empty), 400, "`{empty}`");
    }
    assert_eq!(world.events(), 0);
}

#[test]
fn row_03_a_signature_header_that_comes_twice_is_refused() {
    let world = World::new();
    let (good, bad) = (stripe(EVENT.as_bytes()), stripe(b"another body"));
    for (first, second) in [(&good, &bad), (&bad, &good), (&good, &good)] {
        let headers = [("stripe-signature", first.as_str()), ("Stripe-Signature", second)];
        assert_eq!(world.post(BILLING, &headers, EVENT).status, 400);
    }
    assert_eq!(world.events(), 0);
    assert_eq!(world.signed_by(&good), 200);
}

#[test]
fn row_04_sixteen_signatures_of_a_header_are_looked_at_and_no_more() {
    let world = World::new();
    let good = stripe(EVENT.as_bytes());
    let after = |bad: usize| {
        let (time, signature) = good.split_once(',').expect("two items");
        format!("{time},{}{signature}", "v1=00,".repeat(bad))
    };
    assert_eq!(world.signed_by(&after(999)), 400);
    assert_eq!(world.signed_by(&after(16)), 400);
    assert_eq!(world.events(), 0);
    assert_eq!(world.signed_by(&after(15)), 200);
}

#[test]
fn row_05_a_signature_in_another_encoding_than_the_schemes_is_refused() {
    let world = World::new();
    let good = stripe(EVENT.as_bytes());
    let (time, signature) = good.split_once(",v1=").expect("two items");
    for other in [signature.to_uppercase(), signature[1..].into(), format!("{signature}00")] {
        assert_eq!(world.signed_by(&format!("{time},v1={other}")), 400, "{other}");
    }
    let good = standard_with_a_plus();
    let base64 = &good[2].1;
    for other in [
        base64.replace('+', "-").replace('/', "_"),
        base64.trim_end_matches('=').into(),
        format!("{base64}="),
        base64.replace(',', "=,"),
        base64.to_lowercase(),
    ] {
        let [id, time, _] = good.clone();
        let headers = [id, time, ("webhook-signature", other)];
        assert_eq!(post_standard(&world, &headers), 400, "{headers:?}");
    }
    assert_eq!(world.events(), 0);
    assert_eq!(post_standard(&world, &good), 200);
}

#[test]
fn row_06_unknown_signature_versions_are_skipped_and_never_enough() {
    let world = World::new();
    let good = stripe(EVENT.as_bytes());
    let (time, signature) = good.split_once(",v1=").expect("two items");
    for version in ["v0", "v1a", "v2", "V1", "", "v1 "] {
        let only = format!("{time},{version}={signature}");
        assert_eq!(world.signed_by(&only), 400, "{only}");
    }
    assert_eq!(world.events(), 0);
    let last = format!("{time},v0={signature},v1a=x,nonsense,=,v1={signature}");
    assert_eq!(world.signed_by(&last), 200);
}

#[test]
fn row_07_an_algorithm_that_the_sender_names_is_ignored() {
    let world = World::new();
    let sha1 = mac_with(GenericAlgorithm::Sha1, EVENT.into(), SECRET);
    let sha256 = mac(EVENT.into(), SECRET);
    let ids = [("x-github-delivery", "1"), ("x-github-event", "push")];
    let post = |headers: &[(&str, &str)]| {
        world.post("/webhooks/hub", &[&ids[..], headers].concat(), EVENT).status
    };
    // The old header and its SHA-1 are right, and are not what this provider is verified by.
    assert_eq!(post(&[("x-hub-signature", &format!("sha1={sha1}"))]), 400);
    for prefix in ["sha1=", "none=", "alg=none", "SHA256=", ""] {
        for mac in [&sha1, &sha256, ""] {
            let signature = format!("{prefix}{mac}");
            assert_eq!(post(&[("x-hub-signature-256", &signature)]), 400, "{signature}");
        }
    }
    assert_eq!(world.events(), 0);
    let named = ("x-hub-signature-alg", "none");
    assert_eq!(post(&[named, ("x-hub-signature-256", &format!("sha256={sha256}"))]), 200);
}

#[test]
fn row_08_a_time_that_is_not_written_in_digits_of_its_unit_is_refused() {
    let world = World::new();
    let now = Timestamp::now();
    let seconds = now.as_second();
    let mut odd = ["", "-1", "0x6a5b", "1e9", "١٢٣"].map(str::to_owned).to_vec();
    odd.push(format!("-{seconds}"));
    odd.push(format!("+{seconds}"));
    odd.push(format!("{seconds}.0"));
    odd.push(format!("{seconds} "));
    odd.push(format!("{seconds:x}x"));
    odd.push(format!("{seconds}0000000000"));
    odd.push("99999999999999999999".into());
    odd.push(i64::MAX.to_string());
    odd.push(now.as_millisecond().to_string());
    for time in odd {
        // Signed as it stands, so that only the time can be the reason.
        assert_eq!(world.signed_by(&stripe_at(&time, EVENT.as_bytes())), 400, "`{time}`");
    }
    let no_time = format!("v1={}", mac(format!(".{EVENT}").into(), SECRET));
    assert_eq!(world.signed_by(&no_time), 400);
    let twice = format!("t={seconds},{}", stripe(EVENT.as_bytes()));
    assert_eq!(world.signed_by(&twice), 400);
    assert_eq!(world.events(), 0);
}

/// The answer to an event of `standard` that was signed so many seconds from now, both in one
/// second of the clock.
fn standard_signed_at(world: &World, seconds_from_now: i64) -> u16 {
    loop {
        let now = Timestamp::now().as_second();
        let at = Timestamp::from_second(now + seconds_from_now).expect("in range");
        let status = post_standard(world, &standard(at));
        if Timestamp::now().as_second() == now {
            return status;
        }
    }
}

#[test]
fn row_09_a_time_counts_up_to_its_tolerance_on_both_sides() {
    let world = World::new();
    assert_eq!(standard_signed_at(&world, -301), 400);
    assert_eq!(standard_signed_at(&world, 301), 400);
    assert_eq!(world.events(), 0);
    assert_eq!(standard_signed_at(&world, -300), 200);
    assert_eq!(standard_signed_at(&world, 300), 200);
}

#[test]
fn row_10_bytes_that_are_no_text_are_refused_in_a_signature_and_kept_elsewhere() {
    let world = World::new();
    let good = stripe(EVENT.as_bytes());
    let length = format!("content-length: {}\r\nconnection: close\r\n\r\n{EVENT}", EVENT.len());
    let post = |lines: &[&[u8]]| {
        let start = format!("POST {BILLING} HTTP/1.1\r\nhost: x\r\n");
        world.server.raw(&[start.as_bytes(), &lines.concat(), length.as_bytes()].concat()).status
    };
    let signature = [b"stripe-signature: ", good.as_bytes()].concat();
    assert_eq!(post(&[&signature, b"\xff\r\n"]), 400);
    assert_eq!(post(&[b"stripe-signature: \xff\xfe\r\n"]), 400);
    assert_eq!(world.events(), 0);
    // A log with such bytes in it would end here: it is read as UTF-8.
    world.server.wait_for("malformed_signature");
    assert_eq!(post(&[b"x-note: \xff\r\n", &signature, b"\r\n"]), 200);
    let headers: Vec<u8> = world.read("SELECT headers FROM ichido_delivery");
    assert!(headers.windows(10).any(|line| line == b"x-note: \xff\n"), "{headers:?}");
}

#[test]
fn row_11_control_characters_in_a_header_are_400() {
    let world = World::new();
    let signature = stripe_line(EVENT.as_bytes());
    let length = format!("content-length: {}", EVENT.len());
    for odd in ["x: a\rb", "x: a\nb", "x: a\0b", "x: \x08", "x\0: a", "\0", "x: a\x7f"] {
        let request = head(BILLING, &[&signature, odd, &length]) + EVENT;
        assert_eq!(statuses(&world.talk(request.as_bytes())), [400], "{odd:?}");
    }
    assert_eq!(world.events(), 0);
}

#[test]
fn row_12_a_request_with_more_headers_than_the_limit_is_431() {
    let world = World::new();
    let signature = stripe_line(EVENT.as_bytes());
    let length = format!("content-length: {}", EVENT.len());
    // With `host`, `connection`, and these two.
    let request = |more: usize| {
        let lines = [&["connection: close", &signature, &length], &vec!["x: 1"; more][..]];
        head(BILLING, &lines.concat()) + EVENT
    };
    assert_eq!(statuses(&world.talk(request(97).as_bytes())), [431]);
    assert_eq!(world.events(), 0);
    assert_eq!(statuses(&world.talk(request(96).as_bytes())), [200]);
}

#[test]
fn row_13_a_head_over_its_limit_is_431_and_the_end() {
    let world = World::new();
    let signature = stripe_line(EVENT.as_bytes());
    let length = format!("content-length: {}", EVENT.len());
    let of_size = |bytes: usize, line: &str| {
        let request = |fill: &str| head(BILLING, &[line, &signature, &length, fill]);
        let fill = "a".repeat(bytes - request("x: ").len());
        let request = request(&format!("x: {fill}"));
        assert_eq!(request.len(), bytes);
        statuses(&world.talk((request + EVENT).as_bytes()))
    };
    assert_eq!(of_size(1_000_000, "connection: keep-alive"), [431]);
    assert_eq!(of_size(65_537, "connection: keep-alive"), [431]);
    assert_eq!(world.events(), 0);
    assert_eq!(of_size(65_536, "connection: close"), [200]);
}

#[test]
fn row_14_folded_lines_and_a_space_before_the_colon_are_400() {
    let world = World::new();
    let signature = stripe_line(EVENT.as_bytes());
    let length = format!("content-length: {}", EVENT.len());
    for odd in ["x: a\r\n b", "x: a\r\n\tb", "x : a", "x\t: a", " x: a", ": a", "x"] {
        let request = head(BILLING, &[&signature, odd, &length]) + EVENT;
        assert_eq!(statuses(&world.talk(request.as_bytes())), [400], "{odd:?}");
    }
    assert_eq!(world.events(), 0);
}

#[test]
fn row_15_a_request_names_one_host_and_any_host_will_do() {
    let world = World::new();
    let signature = stripe_line(EVENT.as_bytes());
    let post = |lines: &str| {
        let start = format!("POST {BILLING} HTTP/1.1\r\n{lines}{signature}\r\n");
        let end = format!("content-length: {}\r\n\r\n{EVENT}", EVENT.len());
        world.talk((start + &end).as_bytes())
    };
    for hosts in ["", "host: x\r\nhost: x\r\n", "host: x\r\nHost: y\r\n"] {
        let answer = post(hosts);
        assert_eq!(statuses(&answer), [400], "{hosts:?}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    }
    assert_eq!(world.events(), 0);
    assert_eq!(statuses(&post("connection: close\r\nhost: other.example:1\r\n")), [200]);
}

#[test]
fn row_16_forwarded_headers_change_nothing() {
    let world = World::new();
    let post = |signed_for: &str| {
        let signature = mac(format!("{signed_for} {EVENT}").into(), SECRET);
        let forged = [
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "forged.example"),
            ("forwarded", "for=127.0.0.1;host=forged.example;proto=https"),
            ("x-signature", &signature),
        ];
        world.post("/webhooks/placed", &forged, EVENT).status
    };
    assert_eq!(post("https://forged.example/webhooks/placed"), 400);
    assert_eq!(world.events(), 0);
    // The URL that counts is the configured one.
    assert_eq!(post("https://hooks.example/webhooks/placed"), 200);
    let url: String = world.read("SELECT url FROM ichido_delivery");
    assert_eq!(url, "/webhooks/placed");
}

#[test]
fn row_17_a_huge_length_that_expects_to_continue_is_413_and_not_asked_for() {
    let world = World::new();
    let length = format!("content-length: {}", u32::MAX);
    let answer = world.talk(head(BILLING, &["expect: 100-continue", &length]).as_bytes());
    assert_eq!(statuses(&answer), [413]);
    let length = format!("content-length: {}", EVENT.len());
    let signature = stripe_line(EVENT.as_bytes());
    let lines = ["expect: 100-continue", "connection: close", &signature, &length];
    let answer = world.talk((head(BILLING, &lines) + EVENT).as_bytes());
    assert_eq!(statuses(&answer).last(), Some(&200));
}

#[test]
fn row_18_the_content_type_decides_nothing() {
    let world = World::new();
    let types = [
        None,
        Some(""),
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("multipart/form-data"),
        Some("application/json; charset=utf-7"),
        Some("nonsense"),
    ];
    for (number, content_type) in types.iter().enumerate() {
        let body = EVENT.replace("evt_1", &format!("evt_{number}"));
        let signature = stripe(body.as_bytes());
        let mut headers = vec![("stripe-signature", signature.as_str())];
        headers.extend(content_type.map(|text| ("content-type", text)));
        let Answer { status, body, .. } = world.post(BILLING, &headers, &body);
        assert_eq!((status, body.as_str()), (200, r#"{"outcome":"ignored"}"#), "{content_type:?}");
    }
    assert_eq!(world.events(), 7);
}

#[test]
fn row_19_nothing_is_upgraded() {
    let world = World::new();
    let signature = stripe_line(EVENT.as_bytes());
    let length = format!("content-length: {}", EVENT.len());
    for upgrade in ["h2c", "websocket"] {
        let upgrade = format!("upgrade: {upgrade}");
        let lines = [
            "connection: upgrade, http2-settings, close",
            "http2-settings: AAMAAABkAAQAAP__",
            &upgrade,
            &signature,
            &length,
        ];
        let answer = world.talk((head(BILLING, &lines) + EVENT).as_bytes());
        assert_eq!(statuses(&answer), [200], "{answer}");
    }
    let preface = world.talk(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    assert!(matches!(statuses(&preface)[..], [] | [400]), "{preface}");
}
