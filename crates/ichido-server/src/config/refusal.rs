//! Says where a value was refused: file, line and key, or the variable or option that it is from.
//!
//! It must never repeat the value: it may be a secret in the wrong place.

use std::{collections::BTreeMap, path::Path};

use anyhow::anyhow;
use serde_path_to_error::{Error, Segment};
use toml::de::{DeTable, DeValue};

use super::{
    load::{KeyPath, Source, one_line},
    show::dotted,
};

/// A file that was read, and its text.
pub(super) type Read<'f> = Option<(&'f Path, &'f str)>;

/// The refusal of one value of the merged configuration.
pub(super) fn refusal(
    error: &Error<toml::de::Error>,
    sources: &BTreeMap<KeyPath, Source>,
    file: Read<'_>,
) -> anyhow::Error {
    let message = without_value(&one_line(error.inner().message()));
    let path = path_of(error);
    let (key, from) = (dotted(&path), sources.iter().find(|(known, _)| known.starts_with(&path)));
    match (from.map(|(_, source)| source), file) {
        (Some(source @ (Source::Env(_) | Source::Flag(_))), _) => {
            anyhow!("{source}: {key}: {message}")
        }
        (_, Some((file, text))) => {
            let (file, line) = (file.display(), line_of(text, &path));
            anyhow!("{file}:{line}: {key}: {message}")
        }
        (_, None) => anyhow!("configuration: {key}: {message}"),
    }
}

/// The keys that lead to the value; an item of a list counts as its list.
fn path_of(error: &Error<toml::de::Error>) -> KeyPath {
    let keys = error.path().iter().map_while(|segment| match segment {
        Segment::Map { key } => Some(key.clone()),
        _ => None,
    });
    keys.collect()
}

/// The line of the last key of `path` that the file has, from 1.
fn line_of(text: &str, path: &[String]) -> usize {
    let Ok(table) = DeTable::parse(text) else { return 1 };
    let mut here = Some(table.get_ref());
    let mut at = 0;
    for key in path {
        let mut entries = here.into_iter().flat_map(DeTable::iter);
        let Some((name, value)) = entries.find(|(name, _)| name.get_ref() == key) else { break };
        at = name.span().start;
        here = match value.get_ref() {
            DeValue::Table(inner) => Some(inner),
            _ => None,
        };
    }
    text[..at].matches('\n').count() + 1
}

/// The message without the text that it quotes: `invalid type: string "...", expected ...`.
fn without_value(message: &str) -> String {
    match (message.find("string \""), message.rfind('"')) {
        (Some(start), Some(end)) if end > start + "string \"".len() - 1 => {
            format!("{}text{}", &message[..start], &message[end + 1..])
        }
        _ => message.to_owned(),
    }
}
