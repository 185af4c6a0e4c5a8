//! Tells typing errors among environment variables from what has our prefix for other reasons.
//!
//! It must never show a value: it may be a secret.

use toml::{Table, Value};

use super::load::scalars;

const PREFIX: &str = "ICHIDO_";
/// Variables of ours that are no settings; those that end in `_` are prefixes.
const OTHERS: [&str; 4] = ["ICHIDO_ALL", "ICHIDO_CONFIG", "ICHIDO_PG_", "ICHIDO_TEST_"];

/// Those of `names` that have our prefix and that nothing here or in the configuration asks for.
/// Settings that were understood are not among `names` any more.
pub(super) fn unused(names: impl Iterator<Item = String>, configuration: &Table) -> Vec<String> {
    let places = places(configuration);
    let ours = names.filter(|name| name.starts_with(PREFIX));
    ours.filter(|name| {
        let other = OTHERS
            .iter()
            .any(|known| name == known || (known.ends_with('_') && name.starts_with(known)));
        !other && !is_of_kubernetes(name) && !places.contains(&name.as_str())
    })
    .collect()
}

/// True for a variable that begins like one of our sections.
pub(super) fn misspelt(name: &str, defaults: &Table) -> bool {
    let sections = defaults.iter().filter(|(_, value)| value.is_table()).map(|(key, _)| key);
    let rest = &name[PREFIX.len()..];
    sections.into_iter().any(|section| rest.starts_with(&format!("{}_", section.to_uppercase())))
}

/// What Kubernetes puts into every container for a service that is named like us.
fn is_of_kubernetes(name: &str) -> bool {
    let port = name.ends_with("_PORT") || name.contains("_PORT_");
    name.ends_with("_SERVICE_HOST") || port
}

/// The variables that the configuration names as `env:NAME`.
fn places(configuration: &Table) -> Vec<&str> {
    fn collect<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
        match value {
            Value::String(text) => into.extend(text.strip_prefix("env:")),
            Value::Array(all) => all.iter().for_each(|value| collect(value, into)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    for (_, value) in scalars(configuration) {
        collect(value, &mut all);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unused_of(names: &[&str], configuration: &str) -> Vec<String> {
        let table = configuration.parse().expect("TOML");
        unused(names.iter().map(|name| (*name).to_owned()), &table)
    }

    #[test]
    fn a_misspelt_variable_is_found() {
        assert_eq!(unused_of(&["ICHIDO_LISTN", "PATH"], ""), ["ICHIDO_LISTN"]);
        assert_eq!(unused_of(&["ICHIDO_ALLES"], ""), ["ICHIDO_ALLES"]);
    }

    #[test]
    fn a_secret_of_the_users_own_is_no_typing_error() {
        let configuration = "[endpoint.b]\nsecrets = [\"env:ICHIDO_BILLING\"]";
        assert!(unused_of(&["ICHIDO_BILLING"], configuration).is_empty());
    }

    #[test]
    fn what_tests_and_kubernetes_set_is_no_typing_error() {
        let names = [
            "ICHIDO_CONFIG",
            "ICHIDO_TEST_POSTGRES",
            "ICHIDO_PG_BIN",
            "ICHIDO_ALL",
            "ICHIDO_SERVICE_HOST",
            "ICHIDO_SERVICE_PORT",
            "ICHIDO_PORT",
            "ICHIDO_PORT_8080_TCP_ADDR",
            "ICHIDO_ADMIN_PORT",
        ];
        assert!(unused_of(&names, "").is_empty());
    }
}
