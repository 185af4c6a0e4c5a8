//! Signatures and keys: only the raw bytes under a configured secret are believed, and what can't
//! be a key is refused at start.

use data_encoding::{BASE64, HEXLOWER};
use ichido_verify::Timestamp;

use crate::{
    common::{AWAY, Answer, SECRET, Site},
    support::{World, outcome, post, signed, stripe},
};

const OTHER: &str = "whsec_an_old_secret";
const EVENT: &str = r#"{"id":"evt_1","type":"a.b"}"#;

/// Refused without a reason, as every forged delivery is.
fn refused(answer: &Answer) {
    assert_eq!((answer.status, answer.body.as_str()), (400, r#"{"error":"rejected"}"#));
}

fn send(world: &World, headers: &[(String, String)], body: &[u8]) -> Answer {
    post(&world.server, "billing", headers, body)
}

#[tokio::test(flavor = "multi_thread")]
async fn row_45_a_signature_made_with_the_secret_of_another_endpoint_is_refused() {
    let more = "[endpoint.other]\nprovider = \"stripe\"\nsecrets = [\"file:other.txt\"]";
    let world = World::sqlite_with(more, &[("other.txt", OTHER)]);
    let headers = stripe(EVENT.as_bytes(), OTHER, Timestamp::now());
    refused(&send(&world, &headers, EVENT.as_bytes()));
    assert_eq!(world.count("{i}event").await, 0);
    let own = post(&world.server, "other", &headers, EVENT.as_bytes());
    assert_eq!(outcome(&own), "ignored");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_46_the_old_secret_is_good_while_it_is_configured_and_no_longer() {
    let mut world = World::sqlite_with("", &[("old.txt", OTHER)]);
    let (one, two) = (r#"secrets = ["env:SECRET"]"#, r#"secrets = ["env:SECRET", "file:old.txt"]"#);
    world.restart_with(one, two);
    let with = |world: &World, secret: &str, id: &str| {
        let body = EVENT.replace("evt_1", id);
        send(world, &stripe(body.as_bytes(), secret, Timestamp::now()), body.as_bytes())
    };
    assert_eq!(outcome(&with(&world, OTHER, "evt_1")), "processed");
    assert_eq!(outcome(&with(&world, SECRET, "evt_2")), "processed");
    assert_eq!(world.count("{i}delivery WHERE secret = 1").await, 1, "which one is recorded");
    world.restart_with(two, one);
    refused(&with(&world, OTHER, "evt_3"));
    assert_eq!(outcome(&with(&world, SECRET, "evt_3")), "processed");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_47_only_the_bytes_that_were_signed_are_believed() {
    let world = World::sqlite("");
    let json = "{\"id\": \"evt_1\",\r\n \"type\": \"a.b\", \"x\": \"\\u00e9\", \"n\": 1.0}\r\n";
    let body = format!("\u{feff}{json}");
    let headers = stripe(body.as_bytes(), SECRET, Timestamp::now());
    let again = serde_json::from_str::<serde_json::Value>(json).expect("JSON").to_string();
    for other in [
        format!("{body}\n"),
        body.trim_end().to_owned(),
        body.replace("\r\n", "\n"),
        body.replace("\\u00e9", "é"),
        json.to_owned(),
        again.clone(),
        format!("\u{feff}{again}"),
        String::new(),
    ] {
        refused(&send(&world, &headers, other.as_bytes()));
    }
    assert_eq!(world.count("{i}event").await, 0);
    // With its mark it is no JSON, but it is what was signed.
    assert_eq!(outcome(&send(&world, &headers, body.as_bytes())), "accepted");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_48_a_message_id_with_a_dot_is_refused_for_it_moves_the_delimiter() {
    let secret = format!("whsec_{}", BASE64.encode(&[7; 32]));
    let more = "[endpoint.standard]\nprovider = \"standard-webhooks\"\nsecrets = [\"file:s.txt\"]";
    let world = World::sqlite_with(more, &[("s.txt", &secret)]);
    let now = Timestamp::now();
    let time = now.as_second();
    let body = format!("{time}.{EVENT}");
    let headers = signed("standard-webhooks", &secret, "msg", body.as_bytes(), now);
    let answer = post(&world.server, "standard", &headers, body.as_bytes());
    assert_eq!(outcome(&answer), "ignored");
    // `msg.TIME.TIME.EVENT` again, cut at another place: the id eats the first time.
    let mut moved = headers;
    let id = moved.iter_mut().find(|(name, _)| name == "webhook-id").expect("an id");
    id.1 = format!("msg.{time}");
    refused(&post(&world.server, "standard", &moved, EVENT.as_bytes()));
    assert_eq!(world.count("{i}event").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_49_a_signature_that_is_wrong_in_any_one_byte_is_refused_alike() {
    let world = World::sqlite("");
    let headers = stripe(EVENT.as_bytes(), SECRET, Timestamp::now());
    let at = headers.iter().position(|(name, _)| name == "stripe-signature").expect("signed");
    let (time, hex) = headers[at].1.split_once(",v1=").expect("Stripe's form");
    let right = HEXLOWER.decode(hex.as_bytes()).expect("hex");
    for wrong_byte in 0..right.len() {
        let mut wrong = right.clone();
        wrong[wrong_byte] ^= 1;
        let mut headers = headers.clone();
        headers[at].1 = format!("{time},v1={}", HEXLOWER.encode(&wrong));
        refused(&send(&world, &headers, EVENT.as_bytes()));
    }
    let text = world.metrics();
    let line = "ichido_rejected_total{endpoint=\"billing\",reason=\"wrong_signature\"} 32";
    assert!(text.contains(line), "{text}");
}

/// That an endpoint exists is no secret, its status tells it. So the time that its answer takes
/// has nothing left to tell, and nothing is computed for a name that nobody configured.
#[tokio::test(flavor = "multi_thread")]
async fn row_50_an_unknown_endpoint_is_404_whatever_the_signature() {
    let world = World::sqlite("");
    let good = stripe(EVENT.as_bytes(), SECRET, Timestamp::now());
    let bad = stripe(EVENT.as_bytes(), OTHER, Timestamp::now());
    let first = post(&world.server, "nobody", &good, EVENT.as_bytes());
    assert_eq!((first.status, first.body.as_str()), (404, r#"{"error":"not_found"}"#));
    for (name, headers) in [("nobody", &bad), ("BILLING", &good), ("billing2", &good)] {
        assert_eq!(post(&world.server, name, headers, EVENT.as_bytes()), first);
    }
    refused(&send(&world, &bad, EVENT.as_bytes()));
}

/// A site whose one endpoint has this provider and secret.
fn configured(provider: &str, secret: &str) -> (Option<i32>, String) {
    let config = format!(
        "[database]\nurl = \"{AWAY}\"\n[endpoint.billing]\nprovider = \"{provider}\"\n\
         secrets = [\"file:secret.txt\"]\n"
    );
    let site = Site::new(&config).file("secret.txt", secret);
    let checked = site.run(&["config", "check"]);
    if checked.0 != Some(0) {
        let (code, text) = site.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!(code, Some(1), "{text}");
    }
    checked
}

#[test]
fn row_51_a_secret_that_is_no_key_is_refused_at_start_and_not_shown() {
    for (provider, secret, fix) in [
        ("stripe", "", "is empty"),
        ("stripe", "\n", "is empty"),
        ("github", " ", "white space"),
        ("stripe", "whsec_geheim \n", "white space"),
        ("standard-webhooks", "whsec_", "billing"),
        ("standard-webhooks", "whsec_geheim!", "base64"),
        ("standard-webhooks", "whsec_geheim_geheim", "base64"),
        ("svix", "whsec_=geheim", "base64"),
    ] {
        let (code, text) = configured(provider, secret);
        assert_eq!(code, Some(1), "{provider} {secret:?}\n{text}");
        assert!(text.contains("billing") && text.contains(fix), "{secret:?}\n{text}");
        assert!(!text.contains("geheim"), "{text}");
    }
    assert_eq!(configured("stripe", SECRET).0, Some(0));
}

/// A private key (32 times the byte 9) and its public key, as Standard Webhooks writes them.
const PRIVATE: &str = "whsk_CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk=";
const PUBLIC: &str = "whpk_/RckOFqgx1tk+3jNYC+h2ZH96/drE8WO1wLqyDXp9hg=";

/// The order of ed25519's group, the low byte first.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// The same signature with its number S raised by the order: equal to lenient verifiers.
fn not_canonical(signature: &[u8]) -> Vec<u8> {
    let mut carry = 0;
    let mut raised = signature.to_vec();
    for (byte, order) in raised[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        *byte = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
    raised
}

#[tokio::test(flavor = "multi_thread")]
async fn row_52_an_ed25519_signature_has_one_form() {
    let more = "[endpoint.keys]\nprovider = \"standard-webhooks\"\nsecrets = [\"file:k.txt\"]";
    let world = World::sqlite_with(more, &[("k.txt", PUBLIC)]);
    let body = EVENT.as_bytes();
    let headers = signed("standard-webhooks", PRIVATE, "msg_1", body, Timestamp::now());
    let at = headers.iter().position(|(name, _)| name == "webhook-signature").expect("signed");
    let text = headers[at].1.strip_prefix("v1a,").expect("a label");
    let right = BASE64.decode(text.as_bytes()).expect("base64");
    let with = |signature: &[u8]| {
        let mut headers = headers.clone();
        headers[at].1 = format!("v1a,{}", BASE64.encode(signature));
        post(&world.server, "keys", &headers, body)
    };
    let mut flipped = right.clone();
    flipped[40] ^= 1;
    // R and S of nothing: good under a key of small order, for any message.
    let mut nothing = [0; 64];
    nothing[0] = 1;
    for wrong in
        [not_canonical(&right), flipped, right[..63].to_vec(), [&right[..], b"\0"].concat()]
    {
        refused(&with(&wrong));
    }
    refused(&with(&nothing));
    assert_eq!(outcome(&with(&right)), "ignored");
}

#[test]
fn row_52_an_ed25519_key_of_small_order_is_refused_at_start() {
    let mut one = [0; 32];
    one[0] = 1;
    let mut minus_one = [0xff; 32];
    (minus_one[0], minus_one[31]) = (0xec, 0x7f);
    for weak in [[0; 32], one, minus_one] {
        let key = format!("whpk_{}", BASE64.encode(&weak));
        let (code, text) = configured("standard-webhooks", &key);
        assert_eq!(code, Some(1), "{weak:?}\n{text}");
        assert!(text.contains("not a usable ed25519 public key"), "{text}");
    }
    assert_eq!(configured("standard-webhooks", PUBLIC).0, Some(0));
}
