//! What reaches logs, metrics, answers and last errors: one line each, nothing that is secret or
//! somebody's, and nothing that looks like something else.

use ichido_verify::Timestamp;
use serde_json::{Value, json};

use crate::{
    common::SECRET,
    support::{World, on_both_engines, outcome, post, stripe},
};

/// A log that leaves nothing out.
const TRACE: &str = "[log]\nlevel = \"trace\"\nformat = \"FORMAT\"\n";
const CARD: &str = "4242424242424242";

fn typed(id: &str, event_type: &str) -> Vec<u8> {
    json!({ "id": id, "type": event_type }).to_string().into_bytes()
}

async fn row_74_an_event_type_is_a_value_and_never_a_part_of_a_statement(world: World) {
    let types = ["'; DROP TABLE taken;--", "\"; --", "%", "_", "\\", "$1", ":body", "{{7*7}}"];
    for (n, event_type) in types.iter().enumerate() {
        assert_eq!(world.take(typed(&format!("evt_{n}"), event_type)), "processed");
    }
    let found = world.found().await;
    let stored: Vec<_> = found.iter().map(|event| &*event.event_type).collect();
    assert_eq!(stored, types);
    for event_type in types {
        let quoted = event_type.replace('\'', "''");
        assert_eq!(world.count(&format!("taken WHERE event_type = '{quoted}'")).await, 1);
    }
    let text = world.metrics();
    for event_type in types.iter().filter(|event_type| event_type.len() > 2) {
        assert!(!text.contains(event_type), "{event_type} in {text}");
    }
    world.audit();
}

async fn row_74_a_type_that_is_no_short_text_counts_as_none(world: World) {
    let types = ["t".repeat(255), "t".repeat(256), "t".repeat(10_240), "a\nb".into(), "\0".into()];
    for (n, event_type) in types.iter().enumerate() {
        assert_eq!(world.take(typed(&format!("evt_{n}"), event_type)), "processed");
    }
    let found = world.found().await;
    let stored: Vec<_> = found.iter().map(|event| &*event.event_type).collect();
    assert_eq!(stored, [&*types[0], "", "", "", ""]);
    assert_eq!(found[2].body, typed("evt_2", &types[2]), "the bytes stay whole");
    world.audit();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_74_a_handler_is_found_by_its_name_and_not_by_a_likeness() {
    let more = "[endpoint.likes]\nprovider = \"stripe\"\nsecrets = [\"env:SECRET\"]\n\
                handlers = { \"a_b\" = \"take.sql\", \"c.*\" = \"take.sql\" }";
    let world = World::sqlite(more);
    for (event_type, must) in [
        ("a_b", "processed"),
        ("axb", "ignored"),
        ("A_B", "ignored"),
        ("a%", "ignored"),
        ("c.d", "processed"),
        ("cxd", "ignored"),
        ("c.*", "processed"),
        ("*", "ignored"),
    ] {
        let answer = world.post("likes", typed(&format!("evt_{event_type}"), event_type));
        assert_eq!(outcome(&answer), must, "{event_type}");
    }
}

/// Marks that end a line, reorder it or can't be seen.
const MARKS: &str = "\u{2028}\u{2029}\u{202e}\u{2066}\u{200f}\u{200b}\u{feff}\u{61c}";

fn looks_honest(text: &str) {
    let odd = |c: char| c != '\n' && (c.is_control() || MARKS.contains(c));
    assert!(!text.chars().any(odd), "{text:?}");
}

/// Events whose handler fails with an error that quotes what came from outside.
async fn quoting(format: &str) -> World {
    let more = format!(
        "{}[endpoint.raising]\nprovider = \"stripe\"\nsecrets = [\"env:SECRET\"]\n\
         handlers = {{ \"*\" = \"raise.sql\" }}",
        TRACE.replace("FORMAT", format)
    );
    let raise = "SELECT refuse(:event_id, :event_type, :payload ->> 'x');";
    let world = World::postgres_with(&more, &[("raise.sql", raise)]).await;
    world
        .sql(
            "CREATE FUNCTION refuse(id text, type text, x text) RETURNS void LANGUAGE plpgsql \
             AS $$ BEGIN RAISE EXCEPTION 'no % of % in %', id, type, x; END $$",
        )
        .await;
    let line = "{\"level\":\"ERROR\",\"message\":\"forged\"}";
    let body = json!({
        "id": format!("evt_{MARKS}{line}"), "type": format!("a.{MARKS}b"),
        "x": format!("\n{line}\n\u{1b}[31m\u{85}\r{MARKS}"),
    });
    let body = body.to_string();
    let mut headers = stripe(body.as_bytes(), SECRET, Timestamp::now());
    headers.push(("user-agent".into(), format!("a{MARKS}")));
    assert_eq!(outcome(&post(&world.server, "raising", &headers, body.as_bytes())), "accepted");
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn row_75_a_text_log_has_one_line_an_event_whatever_it_holds() {
    let world = quoting("text").await;
    let log = world.server.wait_for("not processed");
    looks_honest(&log);
    let lines: Vec<_> = log.lines().filter(|line| line.contains("forged")).collect();
    assert!(!lines.is_empty(), "{log}");
    for line in lines {
        assert!(line.contains(" WARN ") || line.contains(" DEBUG "), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_75_a_json_log_has_one_object_an_event_whatever_it_holds() {
    let world = quoting("json").await;
    let log = world.server.wait_for("not processed");
    looks_honest(&log);
    for line in log.lines() {
        let value: Value = serde_json::from_str(line).expect(line);
        assert_ne!(value["message"], "forged");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_75_the_table_of_stats_has_one_line_a_type_whatever_it_holds() {
    let world = World::sqlite("");
    world.take(typed("evt_1", &format!("a.{MARKS}b")));
    let (code, text) = world.site.run(&["stats"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("billing"), "{text}");
    looks_honest(&text);
}

/// Deliveries full of secrets: taken, repeated, changed, failing, unreadable and forged.
fn deliver_canaries(world: &World) -> Vec<String> {
    let now = Timestamp::now();
    let mut canaries: Vec<String> =
        [SECRET, CARD, "mail@kanarie.example", "cookie-kanarie", "token-kanarie", "query-kanarie"]
            .map(str::to_owned)
            .to_vec();
    let event = |id: &str| {
        json!({
            "id": format!("evt_{id}"), "type": "a.b", "card": CARD, "secret": SECRET,
            "mail": "mail@kanarie.example",
        })
        .to_string()
    };
    let mut send = |endpoint: &str, body: &str, secret: &str| {
        let mut headers = stripe(body.as_bytes(), secret, now);
        let signature = headers.iter().find(|(name, _)| name == "stripe-signature");
        let (_, hex) = signature.expect("signed").1.split_once("v1=").expect("Stripe's form");
        canaries.push(hex.to_owned());
        headers.push(("cookie".into(), "a=cookie-kanarie".into()));
        headers.push(("authorization".into(), "Bearer token-kanarie".into()));
        headers.push(("x-mail".into(), "mail@kanarie.example".into()));
        let path = format!("{endpoint}?key=query-kanarie");
        post(&world.server, &path, &headers, body.as_bytes()).status
    };
    for endpoint in ["billing", "reading", "later"] {
        assert_eq!(send(endpoint, &event("1"), SECRET), 200);
        assert_eq!(send(endpoint, &event("1"), SECRET), 200);
        assert_eq!(send(endpoint, &event("1").replace("a.b", "c.d"), SECRET), 200);
        assert_eq!(send(endpoint, &event("2"), "whsec_wrong_kanarie"), 400);
    }
    assert_eq!(send("cards", &event("3"), SECRET), 200);
    assert_eq!(send("cards", &event("4"), SECRET), 200);
    assert_eq!(send("reading", &event("5").replace("a.b", "\\ud800"), SECRET), 200);
    assert_eq!(send("billing", &format!("{CARD} {SECRET} mail@kanarie.example"), SECRET), 200);
    assert_eq!(send("nobody", &event("6"), SECRET), 404);
    canaries
}

fn nothing_logged_is_secret(world: &World) {
    let canaries = deliver_canaries(world);
    let log = world.server.wait_for("not_json");
    for canary in canaries {
        assert!(!log.contains(&canary), "{canary} in:\n{log}");
        assert!(!world.metrics().contains(&canary), "{canary}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_76_a_log_of_everything_holds_no_secret_and_nobody_s_data() {
    for format in ["text", "json"] {
        let more = TRACE.replace("FORMAT", format);
        nothing_logged_is_secret(&World::sqlite(&more));
        nothing_logged_is_secret(&World::postgres(&more).await);
    }
}

async fn row_77_an_error_about_a_row_is_kept_and_logged_without_the_row(world: World) {
    let event = |id: &str| json!({ "id": id, "type": "a.b", "card": CARD }).to_string();
    assert_eq!(outcome(&world.post("cards", event("evt_1"))), "processed");
    let failed = world.post("cards", event("evt_2"));
    assert_eq!(outcome(&failed), "accepted");
    let last = world.found().await.pop().expect("kept");
    let why = last.why.expect("an error");
    assert!(why.to_ascii_lowercase().contains("unique"), "{why}");
    let log = world.server.wait_for("not processed");
    for text in [why, log, format!("{failed:?}")] {
        assert!(!text.contains(CARD), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_77_an_error_about_a_value_is_kept_and_logged_without_the_value() {
    for (sql, kind) in [
        ("SELECT (:payload ->> 'card')::date;", "date"),
        ("SELECT (:payload ->> 'card')::int;", "out of range for type integer"),
        ("SELECT ('[' || (:payload ->> 'card'))::json;", "json"),
        ("SELECT ('x\"' || (:payload ->> 'card') || '\"')::uuid;", "uuid"),
    ] {
        let more = "[endpoint.casts]\nprovider = \"stripe\"\nsecrets = [\"env:SECRET\"]\n\
                    handlers = { \"*\" = \"cast.sql\" }";
        let world = World::postgres_with(more, &[("cast.sql", sql)]).await;
        let body = json!({ "id": "evt_1", "type": "a.b", "card": CARD }).to_string();
        assert_eq!(outcome(&world.post("casts", body)), "accepted");
        let why = world.only().await.why.expect("an error");
        assert!(why.contains(kind) && why.contains("SQLSTATE 22"), "{why}");
        let log = world.server.wait_for("not processed");
        for text in [why, log] {
            assert!(!text.contains(CARD), "{text}");
        }
    }
}

on_both_engines! {
    row_74_an_event_type_is_a_value_and_never_a_part_of_a_statement,
    row_74_a_type_that_is_no_short_text_counts_as_none,
    row_77_an_error_about_a_row_is_kept_and_logged_without_the_row,
}
