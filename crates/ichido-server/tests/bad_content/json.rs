//! Bodies and ids that some parser does not like. What is verified is stored whole and
//! acknowledged; what has no usable id waits for a human.

use ichido_verify::Timestamp;

use crate::{
    common::SECRET,
    support::{World, on_both_engines, outcome, post, signed},
};

/// Stored as it came under its digest, in review for this reason, and a duplicate when it comes
/// again.
async fn parked(world: &World, body: &[u8], why: &str) {
    let before = world.found().await.len();
    assert_eq!(world.take(body), "accepted", "{why}");
    assert_eq!(world.take(body), "duplicate", "{why}");
    let found = world.found().await;
    assert_eq!(found.len(), before + 1, "{why}");
    let last = found.last().expect("just stored");
    assert!(last.event_id.starts_with("sha256:") && last.event_id.len() == 71, "{last:?}");
    assert_eq!((&*last.event_type, &*last.state), ("unreadable", "review"));
    assert_eq!((last.why.as_deref(), &*last.body), (Some(why), body));
}

/// Processed under its own id by a handler that takes the bytes.
async fn processed(world: &World, id: &str, body: &[u8]) {
    assert_eq!(world.take(body), "processed", "{id}");
    assert_eq!(world.take(body), "duplicate", "{id}");
    let found = world.found().await;
    let event = found.iter().find(|event| event.event_id == id).expect(id);
    assert_eq!((&*event.state, &*event.body), ("processed", body), "{id}");
}

/// An event whose member `x` is the given text.
fn with(id: &str, x: &str) -> Vec<u8> {
    format!(r#"{{"id":"{id}","type":"a.b","x":{x}}}"#).into_bytes()
}

async fn row_40_an_id_of_10_kib_waits_for_a_human_under_its_digest(world: World) {
    let body = |bytes: usize| format!(r#"{{"id":"{}","type":"a.b"}}"#, "i".repeat(bytes));
    processed(&world, &"i".repeat(255), body(255).as_bytes()).await;
    parked(&world, body(256).as_bytes(), "id_too_long").await;
    parked(&world, body(10_240).as_bytes(), "id_too_long").await;
    world.audit();
}

async fn row_61_what_is_no_json_at_all_is_stored_and_waits_for_a_human(world: World) {
    for body in ["not JSON", "<event id=\"1\"/>", "{", " ", "%PDF-1.7\n\0\u{1}"] {
        parked(&world, body.as_bytes(), "not_json").await;
    }
    parked(&world, b"", "empty_body").await;
    world.audit();
}

async fn row_62_a_nul_escape_in_a_string_is_stored_and_acknowledged(world: World) {
    let body = with("evt_1", r#""a\u0000b""#);
    processed(&world, "evt_1", &body).await;
    // A handler that reads JSON may fail on it; the event is kept, and the sender is not asked to
    // send it for ever.
    let read = outcome(&world.post("reading", &body));
    assert!(read == "processed" || read == "accepted", "{read}");
    assert_eq!(outcome(&world.post("reading", &body)), "duplicate");
    parked(&world, br#"{"id":"evt_\u0000","type":"a.b"}"#, "id_bad_characters").await;
    world.audit();
}

async fn row_63_a_lone_surrogate_is_stored_and_in_an_id_it_waits_for_a_human(world: World) {
    let body = with("evt_1", r#""\ud800""#);
    processed(&world, "evt_1", &body).await;
    let read = outcome(&world.post("reading", &body));
    assert!(read == "processed" || read == "accepted", "{read}");
    assert_eq!(outcome(&world.post("reading", &body)), "duplicate");
    parked(&world, br#"{"id":"evt_\ud800","type":"a.b"}"#, "id_not_text").await;
    world.audit();
}

async fn row_64_two_ids_in_one_object_are_ambiguous_however_they_are_spelt(world: World) {
    for body in [
        r#"{"id":"evt_1","type":"a.b","id":"evt_2"}"#,
        r#"{"id":"evt_1","type":"a.b","id":"evt_1"}"#,
        r#"{"id":"evt_1","type":"a.b","i\u0064":"evt_2"}"#,
        r#"{"id":"evt_1","type":"a.b","id":null}"#,
    ] {
        parked(&world, body.as_bytes(), "id_ambiguous").await;
    }
    let body = br#"{"id":"evt_1","type":"a.b","type":"c.d"}"#;
    parked(&world, body, "type_ambiguous").await;
    world.audit();
}

async fn row_65_an_array_where_an_object_is_expected_waits_for_a_human(world: World) {
    for body in [r#"["evt_1","a.b"]"#, "[]", "null", "\"evt_1\"", "7", "true"] {
        parked(&world, body.as_bytes(), "not_an_object").await;
    }
    world.audit();
}

async fn row_66_a_hundred_thousand_nested_arrays_cost_no_stack(world: World) {
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    parked(&world, nested.as_bytes(), "not_an_object").await;
    parked(&world, "[".repeat(100_000).as_bytes(), "not_json").await;
    let objects = format!("{}1{}", r#"{"data":"#.repeat(50_000), "}".repeat(50_000));
    parked(&world, objects.as_bytes(), "id_missing").await;
    processed(&world, "evt_1", &with("evt_1", &nested)).await;
    assert_eq!(outcome(&world.post("reading", with("evt_1", &nested))), "accepted");
    world.audit();
}

async fn row_67_numbers_that_no_type_holds_are_kept_as_they_were_written(world: World) {
    let numbers = ["1e400", "12345678901234567890123", "-0", "1E-999999999", "0.1e+9999999"];
    for (n, number) in numbers.iter().enumerate() {
        let id = format!("evt_{n}");
        let body = with(&id, number);
        processed(&world, &id, &body).await;
        let read = outcome(&world.post("reading", &body));
        assert!(read == "processed" || read == "accepted", "{number}: {read}");
    }
    // Two amounts that are one floating point number are two contents.
    world.take(with("evt_big", "9007199254740992"));
    assert_eq!(world.take(with("evt_big", "9007199254740993")), "duplicate");
    assert_eq!(world.stats()["conflicts"], 1);
    world.audit();
}

async fn row_68_an_id_that_is_no_usable_text_waits_for_a_human(world: World) {
    let body = |id: &str| format!(r#"{{"id":{id},"type":"a.b"}}"#).into_bytes();
    for id in ["7", "{\"id\":\"evt_1\"}", "[\"evt_1\"]", "true", "1e400"] {
        parked(&world, &body(id), "id_not_text").await;
    }
    parked(&world, &body("null"), "id_missing").await;
    for id in [r#""""#, r#""evt\n1""#, r#""\u001b[31m""#, r#""\u0085""#] {
        parked(&world, &body(id), "id_bad_characters").await;
    }
    // Marks of two bytes, below the limit of a body.
    let marks = format!("\"e{}\"", "\u{301}".repeat(500_000));
    parked(&world, &body(&marks), "id_too_long").await;
    world.audit();
}

async fn row_68_an_odd_id_of_text_is_a_key_byte_for_byte(world: World) {
    for id in ["   ", " evt_1", "evt_1", "evt_1 ", "EVT_1", "\u{202e}1_tve", "é", "e\u{301}"] {
        let body = format!(r#"{{"id":"{id}","type":"a.b"}}"#);
        processed(&world, id, body.as_bytes()).await;
    }
    world.audit();
}

async fn row_69_other_encodings_than_utf_8_wait_for_a_human(world: World) {
    let json = r#"{"id":"evt_1","type":"a.b"}"#;
    let utf_16 = |bytes: fn(u16) -> [u8; 2], mark: [u8; 2]| {
        let text = json.encode_utf16().flat_map(bytes);
        mark.into_iter().chain(text).collect::<Vec<u8>>()
    };
    parked(&world, format!("\u{feff}{json}").as_bytes(), "not_json").await;
    parked(&world, &utf_16(u16::to_le_bytes, [0xff, 0xfe]), "not_utf8").await;
    parked(&world, &utf_16(u16::to_be_bytes, [0xfe, 0xff]), "not_utf8").await;
    // UTF-7, invalid UTF-8, an overlong quotation mark and a surrogate as bytes.
    parked(&world, b"+AHsAIg-id+ACI:+ACI-evt_1+ACIAfQ-", "not_json").await;
    for odd in [&b"\xff"[..], b"\xc0\xa2", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"] {
        let body = [&br#"{"id":"evt_1","type":""#[..], odd, b"\"}"].concat();
        parked(&world, &body, "not_utf8").await;
    }
    world.audit();
}

async fn row_70_json_with_something_beside_it_waits_for_a_human(world: World) {
    let json = r#"{"id":"evt_1","type":"a.b"}"#;
    for body in [
        format!("{json}x"),
        format!("{json}{json}"),
        format!("{json}\n{json}"),
        format!("{json}\0"),
        format!("/* a */{json}"),
        format!("{json}// a"),
        r#"{"id":"evt_1","type":"a.b","x":NaN}"#.into(),
        r#"{"id":"evt_1","type":"a.b","x":-Infinity}"#.into(),
        r#"{"id":"evt_1","type":"a.b",}"#.into(),
        "{'id':'evt_1','type':'a.b'}".into(),
        r#"{"id":"evt_1","type":"a.b","x":01}"#.into(),
    ] {
        parked(&world, body.as_bytes(), "not_json").await;
    }
    // White space is a part of JSON.
    processed(&world, "evt_1", format!("\r\n\t {json} \n").as_bytes()).await;
    world.audit();
}

async fn row_71_keys_that_change_prototypes_are_members_like_any_other(world: World) {
    let body = br#"{"__proto__":{"id":"evt_0","type":"c.d"},"id":"evt_1","type":"a.b",
        "constructor":{"prototype":{"id":"evt_0","type":"c.d"}}}"#;
    processed(&world, "evt_1", body).await;
    let found = world.only().await;
    assert_eq!((&*found.event_type, found.shown), ("a.b", true));
    let body = br#"{"__proto__":{"id":"evt_0","type":"c.d"},"type":"a.b"}"#;
    parked(&world, body, "id_missing").await;
}

/// A hundred thousand keys that have one and the same `31 * h + c` hash.
fn colliding() -> String {
    const BLOCKS: [&str; 3] = ["Aa", "BB", "C#"];
    let mut text = String::new();
    for mut n in 0..100_000 {
        text.push('"');
        for _ in 0..11 {
            text.push_str(BLOCKS[n % 3]);
            n /= 3;
        }
        text.push_str("\":0,");
    }
    text
}

async fn row_72_very_many_keys_with_one_hash_are_an_event_like_any_other(world: World) {
    let keys = colliding();
    let body = format!(r#"{{{keys}"id":"evt_1","type":"a.b"}}"#);
    assert_eq!(world.take(&body), "processed");
    // To be judged, both bodies are read whole.
    let other = format!(r#"{{{keys}"id":"evt_1","type":"a.b","x":1}}"#);
    assert_eq!(world.take(&other), "duplicate");
    assert_eq!(world.stats()["conflicts"], 1);
    assert_eq!(world.only().await.body, body.as_bytes());
}

async fn row_73_a_form_is_read_only_where_the_provider_sends_forms(world: World) {
    let form = b"payload=%7B%22id%22%3A%22evt_1%22%2C%22type%22%3A%22a.b%22%7D";
    parked(&world, form, "not_json").await;
    let multipart = b"--x\r\ncontent-disposition: form-data; name=\"payload\"\r\n\r\n{}\r\n--x--";
    parked(&world, multipart, "not_json").await;
    for (id, body) in
        [("1-form", &form[..]), ("2-multipart", multipart), ("3-broken", b"payload=%")]
    {
        let headers = signed("github", SECRET, id, body, Timestamp::now());
        assert_eq!(outcome(&post(&world.server, "github", &headers, body)), "processed");
        let found = world.found().await;
        let event = found.iter().find(|event| event.event_id == id).expect(id);
        assert_eq!((&*event.event_type, &*event.body), ("a.b", body));
    }
    world.audit();
}

on_both_engines! {
    row_40_an_id_of_10_kib_waits_for_a_human_under_its_digest,
    row_61_what_is_no_json_at_all_is_stored_and_waits_for_a_human,
    row_62_a_nul_escape_in_a_string_is_stored_and_acknowledged,
    row_63_a_lone_surrogate_is_stored_and_in_an_id_it_waits_for_a_human,
    row_64_two_ids_in_one_object_are_ambiguous_however_they_are_spelt,
    row_65_an_array_where_an_object_is_expected_waits_for_a_human,
    row_66_a_hundred_thousand_nested_arrays_cost_no_stack,
    row_67_numbers_that_no_type_holds_are_kept_as_they_were_written,
    row_68_an_id_that_is_no_usable_text_waits_for_a_human,
    row_68_an_odd_id_of_text_is_a_key_byte_for_byte,
    row_69_other_encodings_than_utf_8_wait_for_a_human,
    row_70_json_with_something_beside_it_waits_for_a_human,
    row_71_keys_that_change_prototypes_are_members_like_any_other,
    row_72_very_many_keys_with_one_hash_are_an_event_like_any_other,
    row_73_a_form_is_read_only_where_the_provider_sends_forms,
}
