//! Turns a scheme from the configuration into a row like any other.
//!
//! Nothing here may accept a scheme that looks safe and is not: a message without the body, or a
//! timestamp that the signature does not cover, is refused.

use std::borrow::Cow;
use std::time::Duration;

use crate::provider::{
    Accepted, Algorithm, Encoding, Events, Form, KeyForm, Part, Provider, Scheme, Source, Special,
    TimestampRule, TimestampSource, Unit,
};
use crate::settings::{GenericAlgorithm, GenericEncoding, GenericKey, GenericUnit};
use crate::{ConfigError, GenericHmac};

/// The name of the provider whose scheme is in the configuration.
pub(crate) const NAME: &str = "generic";

const TOLERANCE: Duration = Duration::from_mins(5);
const DEADLINE: Duration = Duration::from_secs(10);
const RETRY_HORIZON: Duration = Duration::from_hours(3 * 24);

/// Builds the row.
pub(crate) fn row(generic: &GenericHmac) -> Result<Provider, ConfigError> {
    let message = message(&generic.message)?;
    let timestamp = timestamp(generic, &message)?;
    let id = source(&generic.id, "id")?;
    let id_signed = match &id {
        Source::Header(names) => {
            message.iter().any(|part| matches!(part, Part::Header(signed) if signed == names))
        }
        _ => true,
    };
    Ok(Provider {
        name: NAME,
        deadline: generic.deadline.unwrap_or(DEADLINE),
        retry_horizon: match generic.retry_horizon {
            None => Some(RETRY_HORIZON),
            Some(Duration::ZERO) => None,
            set => set,
        },
        id_signed,
        bad_signature_status: 400,
        volatile: generic.volatile.iter().map(|name| Cow::Owned(name.clone())).collect(),
        scheme: Scheme {
            header: header(&generic.header, "header")?,
            form: Form::Whole,
            accepts: Cow::Owned(vec![Accepted {
                label: Cow::Owned(generic.prefix.clone()),
                algorithm: match generic.algorithm {
                    GenericAlgorithm::Sha1 => Algorithm::HmacSha1,
                    GenericAlgorithm::Sha256 => Algorithm::HmacSha256,
                    GenericAlgorithm::Sha512 => Algorithm::HmacSha512,
                },
            }]),
            encoding: encoding(generic.encoding),
            key: match generic.key {
                GenericKey::Text => KeyForm::Text,
                GenericKey::Hex => KeyForm::Hex,
                GenericKey::Base64 => KeyForm::Base64,
            },
            message: Cow::Owned(message),
            timestamp,
        },
        events: Events {
            batch: Cow::Borrowed(&[]),
            json_field: None,
            id: Cow::Owned(vec![id]),
            event_type: sources(generic.event_type.as_deref(), "event_type")?,
            order_key: sources(generic.order_key.as_deref(), "order_key")?,
            occurred_at: sources(generic.occurred_at.as_deref(), "occurred_at")?
                .iter()
                .map(|source| (source.clone(), unit(generic.occurred_at_unit)))
                .collect(),
        },
        facts: None,
        handshakes: Cow::Borrowed(&[]),
        special: Special::None,
    })
}

fn encoding(encoding: GenericEncoding) -> Encoding {
    match encoding {
        GenericEncoding::Hex => Encoding::Hex,
        GenericEncoding::Base64 => Encoding::Base64,
        GenericEncoding::Base64url => Encoding::Base64Url,
    }
}

fn unit(unit: GenericUnit) -> Unit {
    match unit {
        GenericUnit::Seconds => Unit::Seconds,
        GenericUnit::Milliseconds => Unit::Millis,
        GenericUnit::Rfc3339 => Unit::Rfc3339,
    }
}

fn timestamp(
    generic: &GenericHmac,
    message: &[Part],
) -> Result<Option<TimestampRule>, ConfigError> {
    let signed = message.contains(&Part::Timestamp);
    match (&generic.timestamp_header, signed) {
        (None, false) => Ok(None),
        (None, true) => Err(ConfigError::new(
            "generic.message has {timestamp}: name its header in generic.timestamp_header",
        )),
        (Some(_), false) => Err(ConfigError::new(
            "generic.timestamp_header protects nothing unless generic.message has {timestamp}",
        )),
        (Some(name), true) => Ok(Some(TimestampRule {
            source: TimestampSource::Header(header(name, "timestamp_header")?),
            unit: unit(generic.timestamp_unit),
            tolerance: TOLERANCE,
            future_bounded: true,
        })),
    }
}

/// Reads a message template.
fn message(template: &str) -> Result<Vec<Part>, ConfigError> {
    let mut parts = Vec::new();
    let mut rest = template;
    while !rest.is_empty() {
        let open = rest.find('{').unwrap_or(rest.len());
        let (literal, after) = rest.split_at(open);
        if literal.contains('}') {
            return Err(ConfigError::new("generic.message has a } without its {"));
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(Cow::Owned(literal.to_owned())));
        }
        let Some(inner) = after.strip_prefix('{') else { break };
        let Some((name, after)) = inner.split_once('}') else {
            return Err(ConfigError::new("generic.message has a { without its }"));
        };
        parts.push(match (name, name.strip_prefix("header:")) {
            ("body", _) => Part::Body,
            ("timestamp", _) => Part::Timestamp,
            ("method", _) => Part::Method,
            ("url", _) => Part::Url,
            (_, Some(name)) => Part::Header(header(name, "message")?),
            _ => {
                return Err(ConfigError::new(
                    "generic.message knows {body}, {timestamp}, {header:NAME}, {method}, {url}",
                ));
            }
        });
        rest = after;
    }
    if parts.iter().filter(|part| **part == Part::Body).count() != 1 {
        return Err(ConfigError::new("generic.message must have {body} once"));
    }
    Ok(parts)
}

fn sources(text: Option<&str>, member: &str) -> Result<Cow<'static, [Source]>, ConfigError> {
    text.map(|text| source(text, member)).transpose().map(|found| found.into_iter().collect())
}

fn source(text: &str, member: &str) -> Result<Source, ConfigError> {
    let (kind, name) = text.split_once(':').unwrap_or(("", text));
    match kind {
        "header" => Ok(Source::Header(header(name, member)?)),
        "json" if name.split('.').all(|key| !key.is_empty()) => {
            Ok(Source::JsonOrInteger(Cow::Owned(name.to_owned())))
        }
        "field" if !name.is_empty() => Ok(Source::Field(Cow::Owned(name.to_owned()))),
        _ => Err(ConfigError::new(format!(
            "generic.{member} must be header:NAME, json:path.to.member or field:NAME"
        ))),
    }
}

fn header(name: &str, member: &str) -> Result<Cow<'static, [Cow<'static, str>]>, ConfigError> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(ConfigError::new(format!("generic.{member} must name a header")));
    }
    Ok(Cow::Owned(vec![Cow::Owned(name.to_ascii_lowercase())]))
}
