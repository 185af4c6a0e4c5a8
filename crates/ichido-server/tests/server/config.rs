//! What is refused before anything is served, and what the configuration commands show.

use crate::common::{AWAY, SECRET, Site};

fn site(endpoint: &str) -> Site {
    Site::new(&format!("[database]\nurl = \"{AWAY}\"\n[endpoint.billing]\n{endpoint}\n"))
}

const GOOD: &str = "provider = \"stripe\"\nsecrets = [\"env:SECRET\"]";

#[test]
fn a_good_configuration_passes() {
    let (code, text) = site(GOOD).run(&["config", "check"]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn each_contradiction_is_refused_with_its_fix_by_check_and_by_serve() {
    for (endpoint, fix) in [
        (format!("{GOOD}\nhandler_timeout = \"60s\"\nlease = \"5s\""), "lease"),
        (format!("{GOOD}\nhandler_timeout = \"50s\""), "mode = \"async\""),
        (format!("{GOOD}\nkeep_identity = \"1h\""), "keep_identity"),
        ("provider = \"stripe\"\nsecrets = [\"env:NOT_SET\"]".into(), "set NOT_SET"),
        ("provider = \"stripe\"\nsecrets = []".into(), "secret"),
        ("provider = \"strype\"\nsecrets = [\"env:SECRET\"]".into(), "provider"),
        (
            "provider = \"github\"\nsecrets = [\"env:SECRET\"]\non_failure = \"refuse\"".into(),
            "keep",
        ),
        (format!("{GOOD}\nrepeated_body = \"refuse\""), "leave it out"),
        (format!("{GOOD}\norder_by_key = \"block\""), "mode = \"async\""),
        (
            "provider = \"generic\"\nsecrets = [\"env:SECRET\"]\nmode = \"async\"\n\
             order_by_key = \"skip\"\ngeneric = { header = \"x-signature\", id = \"json:id\" }"
                .into(),
            "name no order key",
        ),
        (
            "provider = \"generic\"\nsecrets = [\"env:SECRET\"]\nrepeated_body = \"refuse\"\n\
             generic = { header = \"x-signature\", id = \"json:id\" }"
                .into(),
            "leave it out",
        ),
        (format!("{GOOD}\nhandlers = {{ \"a.b\" = \"missing.sql\" }}"), "missing.sql"),
        (format!("{GOOD}\nhandlers = {{ \"a.b\" = {{ sqlite = \"x.sql\" }} }}"), "postgres ="),
    ] {
        let site = site(&endpoint);
        for command in [&["config", "check"][..], &["serve", "--listen", "127.0.0.1:0"]] {
            let (code, text) = site.run(command);
            assert_eq!(code, Some(1), "{endpoint}\n{text}");
            assert!(text.contains("billing") && text.contains(fix), "{endpoint}\n{text}");
        }
    }
}

#[test]
fn an_sql_handler_that_commits_is_refused_by_file_and_line() {
    let endpoint = format!("{GOOD}\nhandlers = {{ \"invoice.paid\" = \"paid.sql\" }}");
    let site = site(&endpoint).file("paid.sql", "SELECT 1;\nCOMMIT;\n");
    let (code, text) = site.run(&["config", "check"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("paid.sql:2") && text.contains("COMMIT"), "{text}");
}

#[test]
fn all_problems_are_told_at_once() {
    let endpoint = "provider = \"stripe\"\nsecrets = [\"env:ONE\", \"env:TWO\"]\n\
                    mode = \"async\"\non_failure = \"refuse\"\nlease = \"1s\"\n\
                    keep_identity = \"30m\"\ntolerance = \"1ms\"\npublic_url = \"x\"\n\
                    handlers = { \"a*\" = \"no.sql\", \"*.b\" = { queue = \"q\" } }";
    let (code, text) = site(endpoint).run(&["config", "check"]);
    assert_eq!(code, Some(1), "{text}");
    for told in [
        "env:ONE",
        "env:TWO",
        "mode = \"async\"",
        "lease (1s)",
        "keep_identity (30m) must be at least 4d",
        "tolerance must",
        "public_url is no URL",
        "no.sql",
        "`*.b` is no type pattern",
        "9 problem(s)",
    ] {
        assert!(text.contains(told), "{told}:\n{text}");
    }
    assert!(!text.contains("no secret"), "{text}");
}

#[test]
fn a_configuration_that_cannot_work_makes_no_file() {
    let site = Site::new("[endpoint.b]\nprovider = \"stripe\"\nsecrets = [\"env:NOT_SET\"]");
    let (code, text) = site.run(&["serve"]);
    assert_eq!(code, Some(1), "{text}");
    assert_eq!(std::fs::read_dir(site.path()).expect("there").count(), 1, "ichido.toml alone");
}

#[test]
fn a_literal_secret_is_refused_and_never_printed() {
    for secrets in [format!("[\"{SECRET}\"]"), format!("\"{SECRET}\"")] {
        let site = site(&format!("provider = \"stripe\"\nsecrets = {secrets}"));
        for command in [["config", "check"], ["config", "show"]] {
            let (code, text) = site.run(&command);
            assert_eq!(code, Some(1), "{text}");
            assert!(text.contains("env:NAME") && !text.contains(SECRET), "{text}");
        }
    }
}

#[test]
fn show_prints_where_a_secret_is_and_not_what_it_is() {
    for command in [&["config", "show"][..], &["config", "show", "--json"]] {
        let (code, text) = site(GOOD).run(command);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("env:SECRET") && !text.contains(SECRET), "{text}");
        assert!(text.contains("ichido.toml") && text.contains("default"), "{text}");
    }
}

#[test]
fn the_default_file_is_a_good_configuration() {
    let (_, text) = site(GOOD).run(&["config", "default"]);
    let (code, text) = Site::new(&text).run(&["config", "check"]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn the_first_log_line_names_the_file_that_was_found_and_a_misspelt_variable_is_warned_about() {
    let site = site(GOOD);
    let (_, text) = site.run_with(&["config", "check"], ("ICHIDO_LISTN", "127.0.0.1:1"));
    assert!(text.contains("ICHIDO_LISTN"), "{text}");
    let log = site.serve().log();
    assert!(log.lines().next().is_some_and(|line| line.contains("ichido.toml")), "{log}");
}
