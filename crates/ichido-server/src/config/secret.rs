//! Where a secret is: `env:NAME` or `file:PATH`. A literal one is refused with the fix.
//!
//! It must never show what it refused: the text may be the secret itself.

use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
};

use serde::{
    Deserialize, Deserializer,
    de::{self, SeqAccess, Visitor},
};

/// Longest secret file that is read.
const SECRET_BYTES_MAX: u64 = 65_536;

/// A place that holds a secret.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum SecretRef {
    Env(String),
    File(PathBuf),
}

impl TryFrom<String> for SecretRef {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.split_once(':') {
            Some(("env", name)) if !name.is_empty() => Ok(Self::Env(name.into())),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            _ => Err("a secret is not written into the configuration: put it into a variable or \
                      a file and write \"env:NAME\" or \"file:PATH\""),
        }
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl fmt::Debug for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl SecretRef {
    /// Reads the secret. One line feed at the end of a file is not part of it.
    pub(crate) fn read(&self, base: &Path) -> Result<String, String> {
        let text = match self {
            Self::Env(name) => env::var(name).map_err(|error| match error {
                env::VarError::NotPresent => format!("{self}: the variable is not set; set {name}"),
                env::VarError::NotUnicode(_) => format!("{self}: the variable is not UTF-8"),
            })?,
            Self::File(path) => self.read_file(&base.join(path))?,
        };
        if text.is_empty() {
            return Err(format!("{self} is empty: put the secret there"));
        }
        Ok(text)
    }

    fn read_file(&self, path: &Path) -> Result<String, String> {
        let size = fs::metadata(path).map_err(|e| format!("{self}: {e}"))?.len();
        if size > SECRET_BYTES_MAX {
            return Err(format!("{self}: larger than {SECRET_BYTES_MAX} bytes is no secret"));
        }
        let mut text = fs::read_to_string(path).map_err(|e| format!("{self}: {e}"))?;
        if text.ends_with('\n') {
            text.pop();
            if text.ends_with('\r') {
                text.pop();
            }
        }
        Ok(text)
    }
}

/// The places of an endpoint's secrets. A type of its own, because the usual error for a string
/// where a list is expected would quote the string.
#[derive(Debug, Clone)]
pub(crate) struct Secrets(pub(crate) Vec<SecretRef>);

impl<'de> Deserialize<'de> for Secrets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SecretsVisitor)
    }
}

struct SecretsVisitor;

impl<'de> Visitor<'de> for SecretsVisitor {
    type Value = Secrets;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of \"env:NAME\" or \"file:PATH\"")
    }

    fn visit_str<E: de::Error>(self, _secret: &str) -> Result<Secrets, E> {
        Err(E::custom("write secrets as a list of places, such as [\"env:NAME\"]"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Secrets, A::Error> {
        let mut all = Vec::new();
        while let Some(place) = seq.next_element()? {
            all.push(place);
        }
        Ok(Secrets(all))
    }
}

/// The database's URL, or where it is.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum DatabaseUrl {
    Here(String),
    Elsewhere(SecretRef),
}

impl TryFrom<String> for DatabaseUrl {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.starts_with("env:") || text.starts_with("file:") {
            return SecretRef::try_from(text).map(Self::Elsewhere);
        }
        Ok(Self::Here(text))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(url) => f.write_str(&without_password(url)),
            Self::Elsewhere(place) => fmt::Display::fmt(place, f),
        }
    }
}

/// A URL whose engine is known.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Database {
    Sqlite(PathBuf),
    Postgres(String),
}

impl DatabaseUrl {
    /// Reads the URL and tells the engine by it.
    pub(crate) fn resolve(&self, base: &Path) -> Result<Database, String> {
        let url = match self {
            Self::Here(url) => url.clone(),
            Self::Elsewhere(place) => place.read(base)?,
        };
        if let Some(path) = url.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path.starts_with(':') || path.contains('?') {
                return Err("database.url: write \"sqlite:PATH\" with the path of a file".into());
            }
            return Ok(Database::Sqlite(base.join(path)));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Database::Postgres(url));
        }
        Err("database.url: write \"sqlite:PATH\" or \"postgres://user@host/name\"".into())
    }
}

/// What of a URL's query may be shown: everything else may be a password under some spelling.
const SHOWN: [&str; 16] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "load_balance_hosts",
    "port",
    "sslmode",
    "sslrootcert",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];
const HIDDEN: &str = "***";

/// The URL as far as it is known to hold no password; the rest is `***`.
pub(crate) fn without_password(url: &str) -> String {
    // A file, or the place of a URL: neither is a URL with a password.
    if ["sqlite:", "env:", "file:"].iter().any(|start| url.starts_with(start)) {
        return url.to_owned();
    }
    let parts = url.split_once("://").filter(|(scheme, _)| scheme.starts_with("postgres"));
    let Some((scheme, rest)) = parts else { return HIDDEN.to_owned() };
    let plain = |text: &str| text.chars().all(|c| c.is_alphanumeric() || "._-,:[]/%".contains(c));
    // The last `@`: a password may hold one, or a `?`, that nobody encoded.
    let (user, rest) = match rest.rsplit_once('@') {
        None => (String::new(), rest),
        Some((user, rest)) => match user.split_once(':') {
            Some((user, _)) if plain(user) => (format!("{user}:{HIDDEN}@"), rest),
            None if plain(user) => (format!("{user}@"), rest),
            _ => (format!("{HIDDEN}@"), rest),
        },
    };
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (rest, None),
    };
    let place = if plain(place) { place } else { HIDDEN };
    let query = query.map_or(String::new(), |query| {
        let shown = query.split('&').map(|pair| match pair.split_once('=') {
            Some((key, _)) if SHOWN.contains(&key) => pair.to_owned(),
            Some((key, _)) if key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
                format!("{key}={HIDDEN}")
            }
            _ => HIDDEN.to_owned(),
        });
        format!("?{}", shown.collect::<Vec<_>>().join("&"))
    });
    format!("{scheme}://{user}{place}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_secret_is_refused_and_not_shown() {
        let refused = SecretRef::try_from("whsec_abc".to_owned()).expect_err("literal");
        assert!(refused.contains("env:NAME") && !refused.contains("whsec"), "{refused}");
    }

    #[test]
    fn a_password_is_hidden_wherever_it_stands() {
        let shown = without_password("postgres://u:p@ss@h/d?password=geheim&x=1");
        assert_eq!(shown, "postgres://u:***@h/d?password=***&x=***");
        assert_eq!(without_password("sqlite:a.db"), "sqlite:a.db");
        for url in [
            "host=127.0.0.1 user=u password=geheim",
            "postgres:/u:geheim@h/x",
            "postgres://u:ge?heim@h/x",
            "postgres://h/x?pass%77ord=geheim",
            "mysql://u:geheim@h/x",
            "postgres://u@x:geheim@h/x",
        ] {
            assert!(!without_password(url).contains("heim"), "{url}: {}", without_password(url));
        }
        let harmless = "postgres://u@[::1]:5432/d?sslmode=verify-full&application_name=a";
        assert_eq!(without_password(harmless), harmless);
    }

    #[test]
    fn a_url_of_another_engine_is_refused() {
        let url = DatabaseUrl::Here("mysql://root:pw@h/d".into());
        let refused = url.resolve(Path::new("/")).err().expect("refused");
        assert!(refused.contains("sqlite:PATH") && !refused.contains("pw"), "{refused}");
    }
}
