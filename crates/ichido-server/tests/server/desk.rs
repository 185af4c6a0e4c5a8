//! What a human decides, by command: beside a running server, on both engines.

use ichido_testkit::Database;
use serde_json::Value;

use crate::common::{Site, signed};

const CONFIG: &str = r#"
    roles = "receive"
    [endpoint.billing]
    provider = "stripe"
    secrets = ["env:SECRET"]
    [endpoint.billing.handlers]
    "*" = "paid.sql"
"#;

fn site() -> Site {
    Site::new(CONFIG).file("paid.sql", "SELECT 1;\n")
}

/// Everything a human does, beside a server that runs.
fn decides(site: &Site) {
    let server = site.serve();
    // No usable id: it needs review at once.
    let answer = server.raw(&signed(b"not JSON"));
    assert_eq!((answer.status, &*answer.body), (200, r#"{"outcome":"accepted"}"#));

    let (code, text) = site.run(&["review", "list", "--json"]);
    assert_eq!(code, Some(0), "{text}");
    let list: Value = serde_json::from_str(&text).expect("JSON");
    let receipt = list[0]["receipt"].as_str().expect("a receipt").to_owned();
    let (_, text) = site.run(&["review", "list"]);
    assert!(text.contains(&receipt) && text.contains("billing"), "{text}");

    let discard = ["review", "discard", &receipt, "--reason", "a test", "--by", "ada"];
    let (code, text) = site.run(&discard);
    assert_eq!((code, text), (Some(0), format!("discarded {receipt}\n")));
    let (code, text) = site.run(&["review", "requeue", &receipt]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("does not need review"), "{text}");
    let (_, text) = site.run(&["review", "list"]);
    assert_eq!(text, "nothing needs review\n");

    let replay = ["replay", &receipt, "--reason", "it was real", "--by", "ada"];
    let (code, text) = site.run(&replay);
    assert_eq!((code, text), (Some(0), format!("run 1 of {receipt} waits for a worker\n")));
    let (code, text) = site.run(&replay);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("is not done"), "{text}");

    let (_, text) = site.run(&["flags", "list"]);
    assert_eq!(text, "no flag is open\n");
    let (code, text) = site.run(&["flags", "close", "no-flag", "--note", "seen"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("is no id of a flag"), "{text}");
    let (code, text) = site.run(&["audit"]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn a_human_decides_by_command_beside_a_server_on_sqlite() {
    decides(&site());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_human_decides_by_command_beside_a_server_on_postgres() {
    let database = Database::fresh("desk").await.expect("a database");
    let site = site().on(database.url());
    let (code, text) = site.run(&["migrate"]);
    assert_eq!(code, Some(0), "{text}");
    decides(&site);
}
