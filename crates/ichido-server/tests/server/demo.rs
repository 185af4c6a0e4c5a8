//! `ichido demo` and `ichido send` from outside.

use std::thread;

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

#[test]
fn the_default_event_of_every_provider_verifies_under_its_own_id_and_type() {
    // 24 bytes in base64, as Standard Webhooks wants them; text to everyone else.
    let secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz";
    let types = [
        ("github", "push"),
        ("shopify", "orders/create"),
        ("slack", "app_mention"),
        ("standard-webhooks", "contact.created"),
        ("stripe", "invoice.paid"),
        ("svix", "contact.created"),
    ];
    let endpoint = |(name, _): &(&str, &str)| {
        format!("[endpoint.{name}]\nprovider = \"{name}\"\nsecrets = [\"file:secret\"]\n")
    };
    let endpoints = types.iter().map(endpoint).collect::<String>();
    let config = format!("[database]\nurl = \"sqlite:inbox.db\"\n{endpoints}");
    let site = Site::new(&config).file("secret", secret);
    let server = site.serve();
    for (name, event_type) in types {
        let url = format!("http://{}/webhooks/{name}", server.address);
        let options = ["send", "--provider", name, "--url", &url, "--secret", "file:secret"];
        let (code, text) = site.run(&[&options[..], &["--count", "3", "--json"]].concat());
        assert_eq!(code, Some(0), "{name}: {text}");
        assert_eq!(json(&text)["outcomes"]["ignored"], 3, "{name}: {text}");
        let (_, stats) = site.run(&["stats", "--json"]);
        let rows = json(&stats)["received_last_hour"].as_array().expect("a list").clone();
        let row = rows.iter().find(|row| row["endpoint"] == name).expect("received");
        assert_eq!((&row["event_type"], &row["count"]), (&event_type.into(), &3.into()));
    }
}

#[test]
fn send_with_retry_waits_for_a_server_that_is_not_there_yet() {
    let site = Site::new(STRIPE);
    let port = ichido_testkit::free_port().expect("a port");
    let url = format!("http://127.0.0.1:{port}/webhooks/shop");
    let address = format!("127.0.0.1:{port}");
    let options = ["send", "--url", &url, "--secret", "env:SECRET", "--retry", "--json"];
    let (code, text) = thread::scope(|scope| {
        let sender = scope.spawn(|| site.run(&options));
        // The first request of the sender finds nobody.
        let early = std::net::TcpListener::bind(&address).expect("free");
        drop(early.accept().expect("the sender"));
        drop(early);
        let _server = site.serve_on(&address);
        sender.join().expect("no panic")
    });
    assert_eq!(code, Some(0), "{text}");
    let summary = json(&text);
    assert!(summary["resent"].as_u64().expect("a number") > 0, "{text}");
    assert_eq!(summary["outcomes"]["ignored"], 1, "{text}");
}
