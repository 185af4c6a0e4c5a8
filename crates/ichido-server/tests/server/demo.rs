//! `ichido demo` and `ichido send` from outside.

use crate::common::{AWAY, Site};

const STRIPE: &str = r#"
[database]
url = "sqlite:inbox.db"
[endpoint.shop]
provider = "stripe"
secrets = ["env:SECRET"]
"#;

fn json(text: &str) -> serde_json::Value {
    let from = text.find('{').expect("an object");
    let to = text.rfind('}').expect("its end");
    serde_json::from_str(&text[from..=to]).expect("JSON")
}

#[test]
fn the_demo_loses_and_doubles_nothing_whatever_database_the_environment_names() {
    let site = Site::new("");
    let (code, text) = site.run_with(&["demo", "--json", "--dir", "play"], ("DATABASE_URL", AWAY));
    let verdict = json(&text);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!((&verdict["lost"], &verdict["doubled"]), (&0.into(), &0.into()));
    assert_eq!(verdict["ledger_sum"]["expected"], verdict["ledger_sum"]["found"]);
    let (code, text) = site.run(&["demo", "--dir", "play"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("not empty"), "{text}");
}

#[test]
fn send_counts_repeats_as_duplicates_and_fails_when_it_is_refused() {
    let site = Site::new(STRIPE);
    let server = site.serve();
    let url = format!("http://{}/webhooks/shop", server.address);
    let send = |secret: &str| {
        let options = ["--count", "100", "--duplicate-percent", "30", "--json", "--secret", secret];
        site.run(&[&["send", "--url", &url], &options[..]].concat())
    };
    let (code, text) = send("env:SECRET");
    assert_eq!(code, Some(0), "{text}");
    let outcomes = &json(&text)["outcomes"];
    assert_eq!(outcomes["duplicate"], 30, "{text}");
    assert_eq!(outcomes["ignored"], 70, "{text}");
    let (code, text) = send("another");
    assert_eq!(code, Some(1));
    assert_eq!(json(&text)["statuses"]["400"], 100, "{text}");
    assert!(!text.contains("another"), "{text}");
}
