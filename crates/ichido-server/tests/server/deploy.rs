//! What `deploy/` promises about the settings: its limits leave room for ours, and its
//! configuration works.

use std::{fs, path::Path};

use crate::common::{SECRET, Site};

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The value behind the first line that begins with `key`.
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let mut lines = text.lines().filter_map(|line| line.trim().strip_prefix(key));
    lines.next().unwrap_or_else(|| panic!("no line begins with {key}")).trim()
}

/// The digits of a text such as `45s`.
fn number(text: &str) -> u64 {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

#[test]
fn its_limits_leave_room_for_the_defaults() {
    let defaults = file("crates/ichido-server/src/config.default.toml");
    let (unit, compose) = (file("deploy/ichido.service"), file("deploy/compose.yaml"));
    let shutdown_s = number(value(&defaults, "shutdown_deadline ="));
    let server = &compose[compose.find("\n  ichido:").expect("the service")..];
    for stop in [value(&unit, "TimeoutStopSec="), value(server, "stop_grace_period:")] {
        assert!(number(stop) > 2 * shutdown_s, "{stop}");
    }
    let bodies_mib = number(value(&defaults, "body_bytes_in_flight_max =")) >> 20;
    for memory in [value(&unit, "MemoryMax="), value(&compose, "mem_limit:")] {
        assert!(number(memory) * 1024 >= 3 * bodies_mib, "{memory}: unit is a GiB");
    }
    let connections = number(value(&defaults, "connections_max ="))
        .max(number(value(&defaults, "receive_connections =")));
    for files in [value(&unit, "LimitNOFILE="), value(&compose, "ulimits:")] {
        assert!(number(files) > 3 * connections, "{files}");
    }
}

#[test]
fn nothing_of_it_can_write_gain_rights_or_hold_a_secret_in_a_variable() {
    let (unit, compose) = (file("deploy/ichido.service"), file("deploy/compose.yaml"));
    for line in ["DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes"] {
        assert!(unit.lines().any(|have| have == line), "{line}");
    }
    for line in ["read_only: true", "cap_drop: [ALL]", "no-new-privileges:true"] {
        assert!(compose.contains(line), "{line}");
    }
    let closed = compose.lines().filter(|line| line.contains("<<: *")).count();
    assert_eq!(closed, 4, "each service and its template are closed");
    assert!(!compose.contains("DATABASE_URL:") && !compose.contains("PASSWORD:"));
    assert!(file("deploy/Dockerfile").lines().any(|line| line.starts_with("USER 65532")));
}

#[test]
fn its_configuration_works_and_its_variables_are_settings() {
    let config = file("deploy/ichido.toml").replace("/run/secrets/", "postgres/");
    let site = Site::new(&config);
    let folder = site.path().join("postgres");
    fs::create_dir(&folder).expect("a directory");
    for name in ["schema", "invoice_created", "invoice_paid", "invoice_voided"] {
        let text = file(&format!("examples/billing/postgres/{name}.sql"));
        fs::write(folder.join(format!("{name}.sql")), text).expect("written");
    }
    fs::write(folder.join("stripe_webhook_secret"), SECRET).expect("written");
    fs::write(folder.join("database_url"), "postgres://u:geheim@h/d").expect("written");
    let (code, text) = site.run(&["config", "check"]);
    assert_eq!(code, Some(0), "{text}");

    let compose = value(&file("deploy/compose.yaml"), "ICHIDO_HEALTH_LISTEN:").to_owned();
    let image = "0.0.0.0:8080";
    assert!(file("deploy/Dockerfile").contains(&format!("ICHIDO_LISTEN={image} ")));
    for (name, address) in [("ICHIDO_HEALTH_LISTEN", &*compose), ("ICHIDO_LISTEN", image)] {
        let (_, text) = site.run_with(&["config", "show"], (name, address));
        assert!(text.contains(&format!("environment, {name}")), "{text}");
    }
}
