//! A row of the catalogue as text, and how it becomes a [`Provider`].
//!
//! A row says what an endpoint of the provider `generic` says in its configuration, in the same
//! words, and some more. It is constant: a mistake in it is found by the first test that runs.
//!
//! A source is `header:a|b` (the first that is there), `json:path` (text or an integer),
//! `text:path` (text only), `field:NAME` (of a form), `query:NAME`, or a template with such
//! sources in braces: `{json:type}.{json:action}`. A message is a template of `{body}`,
//! `{timestamp}`, `{header:a|b}`, `{url}`, `{decoded_url}` and `{method}`.

use std::borrow::Cow::{self, Borrowed, Owned};
use std::time::Duration;

use crate::provider::{
    Accepted, Algorithm, Challenge, Encoding, Events, Facts, Form, Handshake, KeyForm, List, Names,
    Part, Provider, Reply, Scheme, Source, Special, Sureness, TimestampRule, TimestampSource, Unit,
};

/// One provider, all of it text and numbers.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) deadline: Duration,
    pub(crate) retry_horizon: Option<Duration>,
    pub(crate) facts: Facts,
    pub(crate) id_signed: bool,
    pub(crate) bad_signature_status: u16,
    pub(crate) volatile: &'static [&'static str],
    pub(crate) header: &'static str,
    pub(crate) form: Form,
    pub(crate) accepts: &'static [(&'static str, Algorithm)],
    pub(crate) encoding: Encoding,
    pub(crate) key: KeyForm,
    pub(crate) message: &'static str,
    pub(crate) time: Option<Time>,
    pub(crate) batch: &'static [&'static str],
    pub(crate) json_field: Option<&'static str>,
    pub(crate) id: &'static [&'static str],
    pub(crate) event_type: &'static [&'static str],
    pub(crate) order_key: &'static [&'static str],
    pub(crate) occurred_at: &'static [(&'static str, Unit)],
    pub(crate) handshakes: &'static [Ask],
    pub(crate) special: Special,
}

/// A signed time: `header:NAME`, `label:NAME` or `json:path`.
#[derive(Clone, Copy)]
pub(crate) struct Time {
    pub(crate) source: &'static str,
    pub(crate) unit: Unit,
    pub(crate) tolerance: Duration,
    pub(crate) future_bounded: bool,
}

/// A handshake.
#[derive(Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) method: &'static str,
    pub(crate) when: &'static [(&'static str, &'static str)],
    pub(crate) with: &'static [&'static str],
    pub(crate) unless_fields: &'static [&'static str],
    pub(crate) signed: bool,
    pub(crate) reply: Say,
}

/// What a handshake is answered with.
#[derive(Clone, Copy)]
pub(crate) enum Say {
    Status(u16),
    Echo(&'static str),
    EchoJson(&'static str, &'static str),
    Json(&'static str),
    Mac(Challenge, &'static str),
    Headers(&'static [(&'static str, &'static str)]),
}

/// What most handshakes have in common: an unsigned GET.
pub(crate) const GET: Ask = Ask {
    method: "GET",
    when: &[],
    with: &[],
    unless_fields: &[],
    signed: false,
    reply: Say::Status(200),
};

/// What is not known about a provider's way of sending.
pub(crate) const UNKNOWN: Facts = Facts {
    schedule: "not known",
    keeps_id: None,
    client_error: "not known",
    source: "",
    as_of: "2026-09",
    sureness: Sureness::Unsure,
};

/// The commonest scheme: HMAC-SHA256 of the body, hexadecimal, in a header of its own.
pub(crate) const HMAC: Row = Row {
    name: "",
    deadline: Duration::from_secs(10),
    retry_horizon: Some(Duration::from_hours(3 * 24)),
    facts: UNKNOWN,
    id_signed: true,
    bad_signature_status: 400,
    volatile: &[],
    header: "",
    form: Form::Whole,
    accepts: &[("", Algorithm::HmacSha256)],
    encoding: Encoding::Hex,
    key: KeyForm::Text,
    message: "{body}",
    time: None,
    batch: &[],
    json_field: None,
    id: &[],
    event_type: &[],
    order_key: &[],
    occurred_at: &[],
    handshakes: &[],
    special: Special::None,
};

impl Row {
    pub(crate) fn compile(&self) -> Provider {
        Provider {
            name: self.name,
            deadline: self.deadline,
            retry_horizon: self.retry_horizon,
            id_signed: self.id_signed,
            bad_signature_status: self.bad_signature_status,
            volatile: self.volatile.iter().copied().map(Borrowed).collect(),
            facts: Some(self.facts),
            scheme: Scheme {
                header: names(self.header),
                form: self.form,
                accepts: self
                    .accepts
                    .iter()
                    .map(|(label, algorithm)| Accepted {
                        label: Borrowed(*label),
                        algorithm: *algorithm,
                    })
                    .collect(),
                encoding: self.encoding,
                key: self.key,
                message: template(self.message, Part::Literal, part),
                timestamp: self.time.as_ref().map(Time::compile),
            },
            events: Events {
                batch: self.batch.iter().copied().map(Borrowed).collect(),
                json_field: self.json_field.map(Borrowed),
                id: sources(self.id),
                event_type: sources(self.event_type),
                order_key: sources(self.order_key),
                occurred_at: self
                    .occurred_at
                    .iter()
                    .map(|(at, unit)| (source(at), *unit))
                    .collect(),
            },
            handshakes: self.handshakes.iter().map(Ask::compile).collect(),
            special: self.special,
        }
    }
}

impl Time {
    fn compile(&self) -> TimestampRule {
        let (kind, name) = self.source.split_once(':').unwrap_or_default();
        TimestampRule {
            source: match kind {
                "label" => TimestampSource::Label(Borrowed(name)),
                "json" => TimestampSource::Body(Borrowed(name)),
                _ => TimestampSource::Header(names(name)),
            },
            unit: self.unit,
            tolerance: self.tolerance,
            future_bounded: self.future_bounded,
        }
    }
}

impl Ask {
    fn compile(&self) -> Handshake {
        Handshake {
            method: self.method,
            when: self.when.iter().map(|(at, text)| (source(at), Borrowed(*text))).collect(),
            with: sources(self.with),
            unless_fields: self.unless_fields.iter().copied().map(Borrowed).collect(),
            signed: self.signed,
            reply: match self.reply {
                Say::Status(status) => Reply::Status(status),
                Say::Echo(at) => Reply::Echo(source(at)),
                Say::EchoJson(member, at) => Reply::EchoJson(member, source(at)),
                Say::Json(text) => Reply::Json(text),
                Say::Mac(challenge, at) => Reply::Mac(challenge, source(at)),
                Say::Headers(names) => Reply::Headers(names),
            },
        }
    }
}

fn names(text: &'static str) -> Names {
    text.split('|').filter(|name| !name.is_empty()).map(Borrowed).collect()
}

fn sources(texts: &[&'static str]) -> List<Source> {
    texts.iter().map(|text| source(text)).collect()
}

fn source(text: &'static str) -> Source {
    if text.contains('{') {
        return Source::Join(template(text, Source::Literal, source));
    }
    let (kind, name) = text.split_once(':').unwrap_or_default();
    match kind {
        "header" => Source::Header(names(name)),
        "json" => Source::JsonOrInteger(Borrowed(name)),
        "text" => Source::Json(Borrowed(name)),
        "field" => Source::Field(Borrowed(name)),
        "has" => Source::Has(names(name)),
        "query" => Source::Query(Borrowed(name)),
        _ => unreachable!("a row of the catalogue has the source {text:?}"),
    }
}

fn part(text: &'static str) -> Part {
    match text {
        "body" => Part::Body,
        "timestamp" => Part::Timestamp,
        "url" => Part::Url,
        "decoded_url" => Part::UrlDecoded,
        "method" => Part::Method,
        _ => match text.strip_prefix("header:") {
            Some(name) => Part::Header(names(name)),
            None => unreachable!("a row of the catalogue signs {text:?}"),
        },
    }
}

/// Splits text at its braces.
fn template<T: Clone>(
    text: &'static str,
    literal: fn(Cow<'static, str>) -> T,
    inner: fn(&'static str) -> T,
) -> List<T> {
    let mut parts = Vec::new();
    for piece in text.split_inclusive(['{', '}']) {
        match piece.strip_suffix('}') {
            Some(name) => parts.push(inner(name)),
            None => match piece.strip_suffix('{').unwrap_or(piece) {
                "" => {}
                text => parts.push(literal(Borrowed(text))),
            },
        }
    }
    Owned(parts)
}
