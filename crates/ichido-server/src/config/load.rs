//! Puts the configuration together: defaults, then the file, the environment, the command line.
//! Remembers for every value where it came from.
//!
//! It must never echo a value that was refused: it may be a secret in the wrong place.

use std::{
    collections::BTreeMap,
    env, fmt, fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail};
use toml::{Table, Value};

use super::{
    Config, DEFAULTS, environment, refusal::refusal, roles::Roles, secret::without_password,
};
use crate::cli::{ConfigFile, LogFormat};

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

/// The file that is read when none is named.
const HERE: &str = "ichido.toml";

/// The configuration and the layers it was made of.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    /// The file that was read, if any.
    pub(crate) file: Option<PathBuf>,
    /// The merged values, as they will be shown.
    pub(crate) table: Table,
    /// What is not in it is a default.
    pub(crate) sources: BTreeMap<KeyPath, Source>,
    /// Variables with our prefix that mean nothing to us: typing errors, perhaps.
    pub(crate) unused: Vec<String>,
}

/// The keys that lead to a value. Not one string: a key may hold a dot (`"invoice.paid"`).
pub(crate) type KeyPath = Vec<String>;

/// Values from the command line. They win over everything else.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flags {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) log_format: Option<LogFormat>,
    pub(crate) roles: Option<Roles>,
}

/// Loads everything but secrets and SQL files.
pub(crate) fn load(file: &ConfigFile, flags: &Flags) -> anyhow::Result<Loaded> {
    let vars = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    load_with(file, flags, vars.collect())
}

/// [`load`] with the environment as an argument.
fn load_with(
    file: &ConfigFile,
    flags: &Flags,
    vars: BTreeMap<String, String>,
) -> anyhow::Result<Loaded> {
    let mut layers = Layers {
        table: DEFAULTS.parse().expect("the embedded default is TOML; a test reads it"),
        sources: BTreeMap::new(),
    };
    let mut base = PathBuf::new();
    let file = file_of(file);
    let mut text = String::new();
    if let Some(path) = &file {
        text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        base = path.parent().map(Path::to_owned).unwrap_or_default();
        layers.merge(&[], parse(path, &text)?, &Source::File(path.clone()));
    }
    let unused = layers.environment(vars)?;
    layers.flags(flags);
    let read = file.as_deref().map(|path| (path, text.as_str()));
    let mut config: Config = serde_path_to_error::deserialize(Value::Table(layers.table.clone()))
        .map_err(|error| refusal(&error, &layers.sources, read))?;
    config.base = base;
    refuse_password_in_file(&layers)?;
    Ok(Loaded { config, file, table: layers.table, sources: layers.sources, unused })
}

/// The file that was named, else the one in the current directory, where there is one.
fn file_of(named: &ConfigFile) -> Option<PathBuf> {
    // Empty is how a variable is unset where it cannot be removed.
    let named = named.config.clone().filter(|path| !path.as_os_str().is_empty());
    named.or_else(|| Some(PathBuf::from(HERE)).filter(|path| path.exists()))
}

fn parse(path: &Path, text: &str) -> anyhow::Result<Table> {
    text.parse().map_err(|error: toml::de::Error| {
        // The line without its text, which may hold a secret in the wrong place.
        let at = error.span().map_or(0, |span| span.start);
        let line = text[..at.min(text.len())].matches('\n').count() + 1;
        anyhow!("{}:{line}: {}", path.display(), one_line(error.message()))
    })
}

/// A message of several lines on one.
pub(super) fn one_line(text: &str) -> String {
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

    /// Every scalar of the default has a variable; its type is the default's. Gives the names of
    /// variables that look like ours and are not.
    fn environment(&mut self, mut vars: BTreeMap<String, String>) -> anyhow::Result<Vec<String>> {
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
        let unused = environment::unused(vars.into_keys(), &self.table);
        if let Some(name) = unused.iter().find(|name| environment::misspelt(name, &defaults)) {
            bail!("{name} is no setting: `ichido config default` lists them");
        }
        Ok(unused)
    }

    fn flags(&mut self, flags: &Flags) {
        if let Some(roles) = flags.roles {
            let value = Value::String(roles.to_string());
            self.put(key(["roles"]), value, Source::Flag("--roles"));
        }
        if let Some(listen) = flags.listen {
            let value = Value::String(listen.to_string());
            self.put(key(["listen"]), value, Source::Flag("--listen"));
        }
        if let Some(format) = flags.log_format {
            let value = match format {
                LogFormat::Text => "text",
                LogFormat::Json => "json",
            };
            let value = Value::String(value.into());
            self.put(key(["log", "format"]), value, Source::Flag("--log-format"));
        }
    }
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
