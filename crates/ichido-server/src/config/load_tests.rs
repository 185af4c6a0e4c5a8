//! What `load` promises. The environment is an argument here: tests run side by side.

use std::{collections::BTreeMap, fs};

use super::*;
use crate::config::show;

fn loaded(file: &str, vars: &[(&str, &str)]) -> Result<Loaded, String> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ichido.toml");
    fs::write(&path, file).expect("a file");
    let file = ConfigFile { config: Some(path) };
    let vars: BTreeMap<_, _> =
        vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    load_with(&file, &Flags::default(), vars).map_err(|error| format!("{error:#}"))
}

#[test]
fn the_default_is_complete_and_without_contradictions() {
    let loaded =
        load_with(&ConfigFile::default(), &Flags::default(), BTreeMap::new()).expect("the default");
    assert_eq!(loaded.config.problems(), [""; 0]);
}

#[test]
fn the_environment_wins_over_the_file_and_the_file_over_the_default() {
    let file = "listen = \"127.0.0.1:1\"\n[limits]\nheaders_max = 7";
    let all = loaded(file, &[("ICHIDO_LISTEN", "127.0.0.1:2")]).expect("good");
    assert_eq!(all.config.listen.port(), 2);
    assert_eq!(all.config.limits.headers_max, 7);
    assert_eq!(all.config.limits.body_bytes_max, 1_048_576);
    let text = show::text(&all, &[]);
    assert!(text.contains("# environment, ICHIDO_LISTEN"), "{text}");
}

#[test]
fn an_unknown_key_is_refused_by_name() {
    let refused = loaded("[limits]\nbody_max = 1", &[]).expect_err("unknown");
    assert!(refused.contains("body_max"), "{refused}");
    let refused = loaded("", &[("ICHIDO_LIMITS_BODY_MAX", "1")]).expect_err("unknown");
    assert!(refused.contains("ICHIDO_LIMITS_BODY_MAX"), "{refused}");
}

#[test]
fn a_refused_value_is_told_with_its_line_and_key_or_its_variable_and_not_shown() {
    let file = "\n[limits]\nheaders_max = 7\nbody_bytes_max = \"geheim\"";
    let refused = loaded(file, &[]).expect_err("text");
    assert!(refused.contains("ichido.toml:4: limits.body_bytes_max: "), "{refused}");
    assert!(!refused.contains("geheim"), "{refused}");

    let endpoint = "[endpoint.b]\nprovider = \"stripe\"\nsecrets = [\"env:A\"]\n";
    for (line, told) in [
        ("max_attempts = true", "ichido.toml:4: endpoint.b.max_attempts: "),
        ("handler_time = \"5s\"", "ichido.toml:4: endpoint.b.handler_time: unknown field"),
        ("mode = \"later\"", "ichido.toml:4: endpoint.b.mode: unknown variant"),
        ("lease = \"60\"", "ichido.toml:4: endpoint.b.lease: "),
        ("handlers.\"a.b\" = 5", "ichido.toml:4: endpoint.b.handlers.\"a.b\": "),
    ] {
        let refused = loaded(&format!("{endpoint}{line}"), &[]).expect_err(line);
        assert!(refused.contains(told), "{refused}");
    }
    let refused = loaded("[endpoint.b]\nprovider = \"stripe\"", &[]).expect_err("missing");
    assert!(refused.contains("ichido.toml:1: endpoint.b: missing field `secrets`"), "{refused}");
    let refused = loaded("", &[("ICHIDO_LISTEN", "here")]).expect_err("no address");
    assert!(refused.starts_with("environment, ICHIDO_LISTEN: listen: "), "{refused}");
}

#[test]
fn a_literal_secret_is_refused_with_the_fix_and_not_shown() {
    let file = "[endpoint.b]\nprovider = \"stripe\"\nsecrets = [\"whsec_geheim\"]";
    let refused = loaded(file, &[]).expect_err("literal");
    assert!(refused.contains("env:NAME") && !refused.contains("geheim"), "{refused}");
}

#[test]
fn a_syntax_error_names_its_line_and_not_its_text() {
    let refused = loaded("listen = \"127.0.0.1:1\"\nsecrets = geheim", &[]).expect_err("syntax");
    assert!(refused.contains("ichido.toml:2:") && !refused.contains("geheim"), "{refused}");
}

#[test]
fn a_password_in_the_file_is_refused_and_in_the_environment_it_is_masked() {
    let url = "postgres://u:geheim@h/d";
    let refused = loaded(&format!("[database]\nurl = \"{url}\""), &[]).expect_err("password");
    assert!(refused.contains("env:NAME") && !refused.contains("geheim"), "{refused}");
    let all = loaded("", &[("DATABASE_URL", url)]).expect("good");
    assert!(!show::text(&all, &[]).contains("geheim"));
    assert!(!format!("{:?}", all.config).contains("geheim"));
}

#[test]
fn the_place_of_a_url_is_no_password() {
    for place in ["env:DATABASE_URL", "file:/run/secrets/database_url"] {
        let all = loaded(&format!("[database]\nurl = \"{place}\""), &[]).expect("good");
        assert!(show::text(&all, &[]).contains(place));
    }
}

#[test]
fn a_type_with_a_dot_is_one_key() {
    let file = "[endpoint.b]\nprovider = \"stripe\"\nsecrets = [\"env:A\"]\n[endpoint.b.handlers]\n\
                \"invoice.paid\" = { queue = \"q\" }";
    let all = loaded(file, &[]).expect("good");
    assert!(all.config.endpoint["b"].handlers.contains_key("invoice.paid"));
    let text = show::text(&all, &[]);
    assert!(text.contains("endpoint.b.handlers.\"invoice.paid\".queue = \"q\""), "{text}");
}

#[test]
fn what_show_prints_can_be_loaded_again() {
    let all = loaded("[endpoint.b]\nprovider = \"stripe\"\nsecrets = [\"env:A\"]", &[]);
    let all = all.expect("good");
    let text = show::text(&all, &crate::engine::specs(&all.config));
    assert!(loaded(&text, &[]).is_ok(), "{text}");
}

#[test]
fn show_prints_what_holds_in_an_endpoint_without_being_written_there() {
    let file = "[endpoint.b]\nprovider = \"stripe\"\nsecrets = [\"env:A\"]\nlease = \"90s\"";
    let all = loaded(file, &[]).expect("good");
    let text = show::text(&all, &crate::engine::specs(&all.config));
    let line = |key: &str| {
        let mut lines =
            text.lines().filter(|line| line.starts_with(&format!("endpoint.b.{key} =")));
        let found = lines.next().unwrap_or_else(|| panic!("no {key} in:\n{text}"));
        assert_eq!(lines.next(), None, "{key} twice");
        found.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("mode"), "endpoint.b.mode = \"sync\" # default");
    assert_eq!(line("on_failure"), "endpoint.b.on_failure = \"keep\" # default");
    assert_eq!(line("handler_timeout"), "endpoint.b.handler_timeout = \"250ms\" # default");
    assert_eq!(line("max_attempts"), "endpoint.b.max_attempts = 10 # default");
    assert_eq!(line("tolerance"), "endpoint.b.tolerance = \"5m\" # default");
    assert_eq!(line("keep_identity"), "endpoint.b.keep_identity = \"90d\" # default");
    assert!(line("lease").starts_with("endpoint.b.lease = \"90s\" # /"));
}
