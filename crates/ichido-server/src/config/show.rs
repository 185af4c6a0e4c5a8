//! Renders the effective configuration with the origin of every value.
//!
//! It must never show a secret. Places of secrets are shown; a password in a URL is `***`.

use std::fmt::Write;

use ichido::{EndpointSpec, span_text};
use serde::Serialize;
use toml::Value;

use super::{
    load::{KeyPath, Loaded, Source, scalars},
    secret::without_password,
};

/// One value and where it came from.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    /// The key with its path, as TOML writes it.
    pub(crate) key: String,
    /// The value, secrets masked.
    pub(crate) value: Value,
    /// `default`, a file, a variable or an option.
    pub(crate) from: String,
}

/// Every value in the order of the default file, then endpoints, then what holds in these without
/// being written there: `specs`.
pub(crate) fn values(loaded: &Loaded, specs: &[EndpointSpec]) -> Vec<Shown> {
    let shown = |(path, value): (KeyPath, &Value)| {
        let from = loaded.sources.get(&path).unwrap_or(&Source::Default).to_string();
        Shown { key: dotted(&path), value: masked(&path, value), from }
    };
    let mut all: Vec<_> = scalars(&loaded.table).into_iter().map(shown).collect();
    for spec in specs {
        for (key, value) in settings(spec) {
            let path: KeyPath = ["endpoint", &*spec.name, key].map(str::to_owned).to_vec();
            if !loaded.sources.contains_key(&path) {
                let (key, from) = (dotted(&path), Source::Default.to_string());
                all.push(Shown { key, value, from });
            }
        }
    }
    all
}

/// The same as TOML that could be loaded again, each line with its origin as a comment.
pub(crate) fn text(loaded: &Loaded, specs: &[EndpointSpec]) -> String {
    let mut text = String::new();
    for Shown { key, value, from } in values(loaded, specs) {
        let _ = writeln!(text, "{:<56} # {from}", format!("{key} = {value}"));
    }
    text.truncate(text.trim_end().len());
    text
}

/// What an endpoint's table may say, as it says it.
fn settings(spec: &EndpointSpec) -> Vec<(&'static str, Value)> {
    let span = |span| Value::String(span_text(span));
    let mut all = vec![
        ("mode", Value::String(spec.mode.as_str().into())),
        ("on_failure", Value::String(spec.on_failure.as_str().into())),
        ("handler_timeout", span(spec.handler_timeout)),
        ("lease", span(spec.lease)),
        ("max_attempts", Value::Integer(spec.max_attempts.into())),
        ("keep_identity", span(spec.keep_identity)),
    ];
    all.extend(spec.tolerance.map(|tolerance| ("tolerance", span(tolerance))));
    all
}

fn masked(path: &KeyPath, value: &Value) -> Value {
    let keys: Vec<_> = path.iter().map(String::as_str).collect();
    match (keys.as_slice(), value) {
        (["database", "url"], Value::String(url)) => Value::String(without_password(url)),
        _ => value.clone(),
    }
}

pub(super) fn dotted(path: &KeyPath) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let quoted = path.iter().map(|key| {
        if !key.is_empty() && key.chars().all(bare) {
            key.clone()
        } else {
            Value::String(key.clone()).to_string()
        }
    });
    quoted.collect::<Vec<_>>().join(".")
}
