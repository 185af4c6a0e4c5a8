//! The settings of one endpoint, as they stand in the file.
//!
//! It must never decide what contradicts what: `ichido::Endpoint` refuses that, for everyone.

use std::{collections::BTreeMap, fmt, num::NonZeroUsize, path::PathBuf};

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::{PerEngine, secret::Secrets, span::Span};

/// One `[endpoint.NAME]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndpointConfig {
    pub(crate) provider: String,
    pub(crate) secrets: Secrets,
    #[serde(default)]
    pub(crate) mode: Mode,
    #[serde(default)]
    pub(crate) on_failure: OnFailure,
    #[serde(default)]
    pub(crate) repeated_body: RepeatedBody,
    pub(crate) order_by_key: Option<OrderByKey>,
    pub(crate) handler_timeout: Option<Span>,
    pub(crate) lease: Option<Span>,
    pub(crate) max_attempts: Option<u16>,
    pub(crate) concurrency: Option<NonZeroUsize>,
    pub(crate) keep_identity: Option<Span>,
    pub(crate) tolerance: Option<Span>,
    pub(crate) public_url: Option<String>,
    pub(crate) generic: Option<ichido_verify::GenericHmac>,
    #[serde(default)]
    pub(crate) handlers: BTreeMap<String, HandlerConfig>,
}

/// When handlers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    #[default]
    Sync,
    Async,
}

/// What becomes of a sync event whose handler fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnFailure {
    #[default]
    Keep,
    Refuse,
}

/// What becomes of a known body under another, unsigned id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RepeatedBody {
    #[default]
    Mark,
    Refuse,
}

/// What an event that fails does to those of its order key that came after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OrderByKey {
    Block,
    Skip,
}

impl From<OrderByKey> for ichido::OrderByKey {
    fn from(policy: OrderByKey) -> Self {
        match policy {
            OrderByKey::Block => Self::Block,
            OrderByKey::Skip => Self::Skip,
        }
    }
}

impl From<RepeatedBody> for ichido::RepeatedBody {
    fn from(repeated_body: RepeatedBody) -> Self {
        match repeated_body {
            RepeatedBody::Mark => Self::Mark,
            RepeatedBody::Refuse => Self::Refuse,
        }
    }
}

impl From<Mode> for ichido::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Sync => Self::Sync,
            Mode::Async => Self::Async,
        }
    }
}

impl From<OnFailure> for ichido::OnFailure {
    fn from(on_failure: OnFailure) -> Self {
        match on_failure {
            OnFailure::Keep => Self::Keep,
            OnFailure::Refuse => Self::Refuse,
        }
    }
}

/// Who works on a type: one file for both engines, a file an engine, or an outside queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HandlerConfig {
    File(PathBuf),
    PerEngine(PerEngine),
    Queue(String),
}

impl<'de> Deserialize<'de> for HandlerConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HandlerVisitor)
    }
}

/// Tells the forms apart by hand: an untagged enum would answer a typing error with "no variant
/// matched".
struct HandlerVisitor;

/// The table form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HandlerTable {
    sqlite: Option<PathBuf>,
    postgres: Option<PathBuf>,
    queue: Option<String>,
}

impl<'de> Visitor<'de> for HandlerVisitor {
    type Value = HandlerConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "an SQL file, { sqlite = \"FILE\", postgres = \"FILE\" } or { queue = \"NAME\" }",
        )
    }

    fn visit_str<E: de::Error>(self, file: &str) -> Result<HandlerConfig, E> {
        Ok(HandlerConfig::File(file.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HandlerConfig, A::Error> {
        let table = HandlerTable::deserialize(MapAccessDeserializer::new(map))?;
        match table {
            HandlerTable { sqlite: None, postgres: None, queue: Some(queue) } => {
                Ok(HandlerConfig::Queue(queue))
            }
            HandlerTable { sqlite, postgres, queue: None }
                if sqlite.is_some() || postgres.is_some() =>
            {
                Ok(HandlerConfig::PerEngine(PerEngine { sqlite, postgres }))
            }
            _ => Err(de::Error::custom(format_args!(
                "a handler is either files or a queue: write {}",
                Expected(&self)
            ))),
        }
    }
}

/// What a visitor expects, as text.
struct Expected<'a>(&'a HandlerVisitor);

impl fmt::Display for Expected<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handler(text: &str) -> Result<HandlerConfig, String> {
        let table: BTreeMap<String, HandlerConfig> =
            toml::from_str(&format!("h = {text}")).map_err(|error| error.to_string())?;
        Ok(table["h"].clone())
    }

    #[test]
    fn a_handler_is_a_file_a_file_an_engine_or_a_queue() {
        assert_eq!(handler("\"a.sql\""), Ok(HandlerConfig::File("a.sql".into())));
        assert_eq!(handler("{ queue = \"q\" }"), Ok(HandlerConfig::Queue("q".into())));
        let files = PerEngine { sqlite: Some("a".into()), postgres: None };
        assert_eq!(handler("{ sqlite = \"a\" }"), Ok(HandlerConfig::PerEngine(files)));
    }

    #[test]
    fn files_and_a_queue_together_are_refused() {
        let refused = handler("{ sqlite = \"a\", queue = \"q\" }").expect_err("both");
        assert!(refused.contains("either files or a queue"), "{refused}");
        assert!(handler("{ mysql = \"a\" }").expect_err("unknown").contains("mysql"));
        assert!(handler("{}").is_err());
    }
}
