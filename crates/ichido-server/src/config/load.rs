//! Puts the configuration together: defaults, then the file, the environment, the command line.
//! Remembers for every value where it came from.
//!
//! It must never echo a value that was refused: it may be a secret in the wrong place.

use std::{
    collections::BTreeMap,
    env, fmt, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail};
use serde::Deserialize;
use toml::{Table, Value};

use super::{Config, DEFAULTS, secret::without_password};
use crate::cli::{Global, LogFormat};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File(PathBuf),
    Env(String),
    Flag(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Env(name) => write!(f, "environment, {name}"),
            Self::Flag(flag) => write!(f, "command line, {flag}"),
        }
    }
}

/// The configuration and the layers it was made of.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    /// The merged values, as they will be shown.
    pub(crate) table: Table,
    /// What is not in it is a default.
    pub(crate) sources: BTreeMap<KeyPath, Source>,
}

/// The keys that lead to a value. Not one string: a key may hold a dot (`"invoice.paid"`).
pub(crate) type KeyPath = Vec<String>;

/// Loads everything but secrets and SQL files.
pub(crate) fn load(global: &Global) -> anyhow::Result<Loaded> {
    let vars = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    load_with(global, vars.collect())
}

/// [`load`] with the environment as an argument.
fn load_with(global: &Global, vars: BTreeMap<String, String>) -> anyhow::Result<Loaded> {
    let mut layers = Layers {
        table: DEFAULTS.parse().expect("the embedded default is TOML; a test reads it"),
        sources: BTreeMap::new(),
    };
    let mut base = PathBuf::new();
    if let Some(path) = &global.config {
        let file = read(path)?;
        base = path.parent().map(Path::to_owned).unwrap_or_default();
        layers.merge(&[], file, &Source::File(path.clone()));
    }
    layers.environment(vars)?;
    layers.flags(global);
    let mut config = Config::deserialize(Value::Table(layers.table.clone()))
        .map_err(|error| anyhow!("{}", one_line(&error.to_string())))
        .with_context(|| match &global.config {
            Some(path) => format!("configuration {}", path.display()),
            None => "configuration".into(),
        })?;
    config.base = base;
    refuse_password_in_file(&layers)?;
    Ok(Loaded { config, table: layers.table, sources: layers.sources })
}

fn read(path: &Path) -> anyhow::Result<Table> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    text.parse().map_err(|error: toml::de::Error| {
        // The line without its text, which may hold a secret in the wrong place.
        let at = error.span().map_or(0, |span| span.start);
        let line = text[..at.min(text.len())].matches('\n').count() + 1;
        anyhow!("{shown}:{line}: {}", one_line(error.message()))
    })
}

fn one_line(text: &str) -> String {
    let parts: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    parts.join(", ")
}

/// Values under construction.
struct Layers {
    table: Table,
    sources: BTreeMap<KeyPath, Source>,
}

impl Layers {
    fn merge(&mut self, prefix: &[String], from: Table, source: &Source) {
        for (key, value) in from {
            let path = [prefix, &[key]].concat();
            match value {
                Value::Table(inner) => {
                    table_at(&mut self.table, &path);
                    self.merge(&path, inner, source);
                }
                value => self.put(path, value, source.clone()),
            }
        }
    }

    fn put(&mut self, path: KeyPath, value: Value, source: Source) {
        let (key, prefix) = path.split_last().expect("a path has at least its key");
        table_at(&mut self.table, prefix).insert(key.clone(), value);
        self.sources.insert(path, source);
    }

    /// Every scalar of the default has a variable; its type is the default's.
    fn environment(&mut self, mut vars: BTreeMap<String, String>) -> anyhow::Result<()> {
        let defaults: Table = DEFAULTS.parse().expect("as above");
        for (path, default) in scalars(&defaults) {
            let name = format!("ICHIDO_{}", path.join("_").to_ascii_uppercase());
            let Some(text) = vars.remove(&name) else { continue };
            let value = match default {
                Value::Integer(_) => Value::Integer(
                    text.parse().map_err(|_| anyhow!("{name}: write a whole number"))?,
                ),
                _ => Value::String(text),
            };
            self.put(path, value, Source::Env(name));
        }
        if let Some(url) = vars.remove("DATABASE_URL").filter(|url| !url.is_empty()) {
            let source = Source::Env("DATABASE_URL".into());
            self.put(key(["database", "url"]), Value::String(url), source);
        }
        if let Some(source @ Source::Env(_)) = self.sources.get(&key(["database", "url"])) {
            let url = from_here(self.table["database"]["url"].as_str().unwrap_or_default());
            self.put(key(["database", "url"]), Value::String(url), source.clone());
        }
        for name in vars.keys().filter(|name| name.starts_with("ICHIDO_")) {
            if name != "ICHIDO_CONFIG" && misspelt(name, &defaults) {
                bail!("{name} is no setting: `ichido config default` lists them");
            }
        }
        Ok(())
    }

    fn flags(&mut self, global: &Global) {
        if let Some(listen) = global.listen {
            let value = Value::String(listen.to_string());
            self.put(key(["listen"]), value, Source::Flag("--listen"));
        }
        if let Some(format) = global.log_format {
            let value = match format {
                LogFormat::Text => "text",
                LogFormat::Json => "json",
            };
            let value = Value::String(value.into());
            self.put(key(["log", "format"]), value, Source::Flag("--log-format"));
        }
    }
}

/// True for a variable that begins like one of our sections: a typing error. Other variables
/// with our prefix may be somebody's secrets.
fn misspelt(name: &str, defaults: &Table) -> bool {
    let sections = defaults.iter().filter(|(_, value)| value.is_table()).map(|(key, _)| key);
    let rest = &name["ICHIDO_".len()..];
    sections.into_iter().any(|section| rest.starts_with(&format!("{}_", section.to_uppercase())))
}

/// A file named in the environment is relative to where the command was started, not to the
/// configuration file.
fn from_here(url: &str) -> String {
    let Some(path) = url.strip_prefix("sqlite:") else { return url.to_owned() };
    let path = path.strip_prefix("//").unwrap_or(path);
    match (Path::new(path).is_relative() && !path.is_empty(), env::current_dir()) {
        (true, Ok(here)) => format!("sqlite:{}", here.join(path).display()),
        _ => url.to_owned(),
    }
}

fn refuse_password_in_file(layers: &Layers) -> anyhow::Result<()> {
    let Some(Source::File(path)) = layers.sources.get(&key(["database", "url"])) else {
        return Ok(());
    };
    let url = layers.table["database"]["url"].as_str().unwrap_or_default();
    if without_password(url) == url {
        return Ok(());
    }
    bail!(
        "{}: database.url holds a password: put the URL into a variable or a file and write \
         \"env:NAME\" or \"file:PATH\"",
        path.display()
    )
}

/// A path whose keys are known here.
fn key<const N: usize>(keys: [&str; N]) -> KeyPath {
    keys.map(str::to_owned).to_vec()
}

/// The table at `path`, made where it is missing or something else.
fn table_at<'a>(table: &'a mut Table, path: &[String]) -> &'a mut Table {
    path.iter().fold(table, |table, part| {
        let entry = table.entry(part.as_str()).or_insert_with(|| Value::Table(Table::new()));
        if !entry.is_table() {
            *entry = Value::Table(Table::new());
        }
        entry.as_table_mut().expect("made a table just above")
    })
}

/// Path and value of everything that is no table.
pub(crate) fn scalars(table: &Table) -> Vec<(KeyPath, &Value)> {
    let mut all = Vec::new();
    for (name, value) in table {
        match value {
            Value::Table(inner) => all.extend(scalars(inner).into_iter().map(|(rest, value)| {
                let path = [std::slice::from_ref(name), rest.as_slice()].concat();
                (path, value)
            })),
            value => all.push((vec![name.clone()], value)),
        }
    }
    all
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
