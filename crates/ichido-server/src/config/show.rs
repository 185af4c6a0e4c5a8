//! Renders the effective configuration with the origin of every value.
//!
//! It must never show a secret. Places of secrets are shown; a password in a URL is `***`.

use std::fmt::Write;

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

/// Every value in the order of the default file, then endpoints.
pub(crate) fn values(loaded: &Loaded) -> Vec<Shown> {
    let shown = |(path, value): (KeyPath, &Value)| {
        let from = loaded.sources.get(&path).unwrap_or(&Source::Default).to_string();
        Shown { key: dotted(&path), value: masked(&path, value), from }
    };
    scalars(&loaded.table).into_iter().map(shown).collect()
}

/// The same as TOML that could be loaded again, each line with its origin as a comment.
pub(crate) fn text(loaded: &Loaded) -> String {
    let mut text = String::new();
    for Shown { key, value, from } in values(loaded) {
        let _ = writeln!(text, "{:<56} # {from}", format!("{key} = {value}"));
    }
    text.truncate(text.trim_end().len());
    text
}

fn masked(path: &KeyPath, value: &Value) -> Value {
    let keys: Vec<_> = path.iter().map(String::as_str).collect();
    match (keys.as_slice(), value) {
        (["database", "url"], Value::String(url)) => Value::String(without_password(url)),
        _ => value.clone(),
    }
}

fn dotted(path: &KeyPath) -> String {
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
