//! Reads a verified request: its events and what they say about themselves.
//!
//! Called only after a signature matched (an unsigned handshake excepted, whose answer is fixed).
//! Nothing here can fail a delivery: what can't be read becomes an `unreadable` event.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::event::{FACT_BYTES_MAX, Facts, VerifiedEvent};
use crate::form::{self, Field};
use crate::json::{self, Found, Members, Wanted};
use crate::provider::{Events, Handshake, Provider, Reply, Source, Unit};
use crate::time::parse_any;
use crate::{Answer, Headers, Request, Unreadable};

/// The wanted members of a row's bodies, compiled once per endpoint.
pub(crate) struct Reader {
    /// What is wanted of the whole body.
    body: Wanted,
    /// What is wanted of each event of a batch; empty without one.
    item: Wanted,
    /// Whether the provider sends forms at all.
    forms: bool,
}

/// A fact as it was found.
enum Lookup<'a> {
    Absent,
    Text(Cow<'a, str>),
    Ambiguous,
    NotText,
    Broken(Unreadable),
}

/// Where facts can come from.
struct Place<'a> {
    headers: &'a Headers,
    /// The body, when it is a form.
    form: Option<&'a [u8]>,
    /// The JSON, when there is any.
    json: Option<&'a Result<Members<'a>, Unreadable>>,
    wanted: &'a Wanted,
}

/// What a verified request turned out to be.
pub(crate) enum Content {
    Events(Vec<VerifiedEvent>),
    Handshake(Answer),
}

impl Reader {
    pub(crate) fn new(row: &Provider) -> Self {
        let mut reader =
            Self { body: Wanted::default(), item: Wanted::default(), forms: row.has_forms() };
        let Events { batch, id, event_type, order_key, occurred_at, .. } = &row.events;
        let facts = id
            .iter()
            .chain(event_type.iter())
            .chain(order_key.iter())
            .chain(occurred_at.iter().map(|(source, _)| source));
        let target = if batch.is_some() { &mut reader.item } else { &mut reader.body };
        facts.for_each(|source| want(source, target));
        if let Some(path) = batch {
            reader.body.want(path);
        }
        for handshake in row.handshakes.iter() {
            handshake.when.iter().for_each(|(source, _)| want(source, &mut reader.body));
            if let Reply::Echo(source) = &handshake.reply {
                want(source, &mut reader.body);
            }
        }
        reader
    }

    /// Reads a request whose signature matched.
    pub(crate) fn read(&self, row: &Provider, request: &Request) -> Content {
        self.open(row, request, |place| {
            let asked = row.handshakes.iter().find(|handshake| place.asks(handshake));
            if let Some(answer) = asked.and_then(|handshake| place.answer(handshake)) {
                return Content::Handshake(answer);
            }
            match &row.events.batch {
                None => Content::Events(vec![VerifiedEvent::signed(
                    &request.body,
                    0..request.body.len(),
                    place.facts(&row.events),
                )]),
                Some(path) => self.batch(row, request, place, path),
            }
        })
    }

    /// Answers a handshake that needs no signature, if the request is one.
    pub(crate) fn unsigned_handshake(&self, row: &Provider, request: &Request) -> Option<Answer> {
        /// A probe is a few bytes; nothing larger is parsed without a signature.
        const PROBE_BYTES_MAX: usize = 4096;
        if request.body.len() > PROBE_BYTES_MAX
            || row.handshakes.iter().all(|handshake| handshake.signed)
        {
            return None;
        }
        self.open(row, request, |place| {
            let mut unsigned = row.handshakes.iter().filter(|handshake| !handshake.signed);
            unsigned.find(|handshake| place.asks(handshake)).and_then(|found| place.answer(found))
        })
    }

    /// Finds out whether the body is a form, from its bytes alone: `Content-Type` is not signed.
    fn open<T>(&self, row: &Provider, request: &Request, then: impl FnOnce(&Place) -> T) -> T {
        let body: &[u8] = &request.body;
        let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
        let form = (self.forms && !matches!(first, None | Some(b'{' | b'['))).then_some(body);
        let field = row.events.json_field.as_deref();
        let payload = form.zip(field).map(|(form, name)| form::field(form, name));
        let json = match (form, &payload) {
            (None, _) => Some(self.body.read(body)),
            (_, Some(Ok(Field::Text(text)))) => Some(self.body.read(text.as_bytes())),
            (_, Some(Ok(Field::Ambiguous))) => Some(Err(Unreadable::IdAmbiguous)),
            (_, Some(Err(reason))) => Some(Err(*reason)),
            (_, Some(Ok(Field::Absent)) | None) => None,
        };
        then(&Place { headers: &request.headers, form, json: json.as_ref(), wanted: &self.body })
    }

    fn batch(&self, row: &Provider, request: &Request, place: &Place, path: &str) -> Content {
        let body = &request.body;
        let items: Result<Vec<&RawValue>, Unreadable> = match place.json {
            Some(Ok(members)) => match self.body.slot(path).map(|slot| members.get(slot)) {
                Some(Found::Raw(raw)) => {
                    serde_json::from_str(raw.get()).map_err(|_| Unreadable::NotAnObject)
                }
                Some(Found::Ambiguous) => Err(Unreadable::IdAmbiguous),
                _ => Err(Unreadable::IdMissing),
            },
            Some(Err(reason)) => Err(*reason),
            None => Err(Unreadable::NotJson),
        };
        match items {
            Err(reason) => {
                let event = VerifiedEvent::signed(body, 0..body.len(), Err(reason));
                Content::Events(vec![event])
            }
            // A heartbeat: nothing happened.
            Ok(items) if items.is_empty() => Content::Handshake(Answer::empty()),
            Ok(items) => {
                let event = |item: &&RawValue| {
                    let members = self.item.read(item.get().as_bytes());
                    let json = Some(&members);
                    let place =
                        Place { headers: place.headers, form: None, json, wanted: &self.item };
                    let range = range_in(body, item.get().as_bytes());
                    VerifiedEvent::signed(body, range, place.facts(&row.events))
                };
                Content::Events(items.iter().map(event).collect())
            }
        }
    }
}

fn want(source: &Source, wanted: &mut Wanted) {
    if let Source::Json(path) | Source::JsonOrInteger(path) = source {
        wanted.want(path);
    }
}

/// Where `part` lies in `body`; all of it when it was decoded out of a form.
fn range_in(body: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr().wrapping_sub(body.as_ptr().addr());
    match start.checked_add(part.len()) {
        Some(end) if end <= body.len() => start..end,
        _ => 0..body.len(),
    }
}

impl<'a> Place<'a> {
    fn look(&self, source: &'a Source) -> Lookup<'a> {
        match source {
            Source::Header(names) => {
                for name in names.iter() {
                    let mut values = self.headers.get_all(name);
                    if let Some(value) = values.next() {
                        return match std::str::from_utf8(value) {
                            _ if values.next().is_some() => Lookup::Ambiguous,
                            Ok(text) => Lookup::Text(Cow::Borrowed(text)),
                            Err(_) => Lookup::NotText,
                        };
                    }
                }
                Lookup::Absent
            }
            Source::Json(path) => self.member(path, false),
            Source::JsonOrInteger(path) => self.member(path, true),
            Source::Field(name) => match self.form.map(|form| form::field(form, name)) {
                None | Some(Ok(Field::Absent)) => Lookup::Absent,
                Some(Ok(Field::Text(text))) => Lookup::Text(text),
                Some(Ok(Field::Ambiguous)) => Lookup::Ambiguous,
                Some(Err(reason)) => Lookup::Broken(reason),
            },
        }
    }

    fn member(&self, path: &str, integers: bool) -> Lookup<'a> {
        let members = match self.json {
            None => return Lookup::Absent,
            Some(Err(reason)) => return Lookup::Broken(*reason),
            Some(Ok(members)) => members,
        };
        match self.wanted.slot(path).map(|slot| members.get(slot)) {
            None | Some(Found::Absent) => Lookup::Absent,
            Some(Found::Ambiguous) => Lookup::Ambiguous,
            Some(Found::Raw(raw)) => json::string(raw)
                .or_else(|| json::integer(raw).filter(|_| integers).map(Cow::Borrowed))
                .map_or(Lookup::NotText, Lookup::Text),
        }
    }

    /// Collects the facts of one event. Only a bad id or an ambiguous type makes it unreadable.
    fn facts(&self, events: &'a Events) -> Result<Facts, Unreadable> {
        let id = self.id(&events.id)?;
        let event_type = match self.first(&events.event_type) {
            Lookup::Ambiguous => return Err(Unreadable::TypeAmbiguous),
            found => found.short_text(),
        };
        let order_key = self.first(&events.order_key).short_text();
        let occurred_at = events.occurred_at.iter().find_map(|(source, unit)| {
            let Lookup::Text(text) = self.look(source) else { return None };
            parse_any(&text, *unit)
        });
        Ok(Facts { id, event_type, occurred_at, order_key })
    }

    fn id(&self, sources: &'a [Source]) -> Result<Box<str>, Unreadable> {
        let mut broken = None;
        for source in sources {
            match self.look(source) {
                Lookup::Absent => {}
                Lookup::Text(text) => return Ok(text.into()),
                Lookup::Ambiguous => return Err(Unreadable::IdAmbiguous),
                Lookup::NotText => return Err(Unreadable::IdNotText),
                Lookup::Broken(reason) => broken = broken.or(Some(reason)),
            }
        }
        Err(broken.unwrap_or(Unreadable::IdMissing))
    }

    /// The first source that says anything.
    fn first(&self, sources: &'a [Source]) -> Lookup<'a> {
        let mut found = sources.iter().map(|source| self.look(source));
        found.find(|found| !matches!(found, Lookup::Absent)).unwrap_or(Lookup::Absent)
    }

    fn asks(&self, handshake: &'a Handshake) -> bool {
        let said = |(source, expected): &'a (Source, Cow<'static, str>)| match self.look(source) {
            Lookup::Text(text) => text == *expected,
            _ => false,
        };
        let absent = |name: &Cow<'static, str>| {
            self.form.is_none_or(|form| form::field(form, name) == Ok(Field::Absent))
        };
        handshake.when.iter().all(said) && handshake.unless_fields.iter().all(absent)
    }

    fn answer(&self, handshake: &'a Handshake) -> Option<Answer> {
        match &handshake.reply {
            Reply::Empty => Some(Answer::empty()),
            Reply::Echo(source) => match self.look(source) {
                Lookup::Text(text) => Some(Answer::plain(&text)),
                _ => None,
            },
        }
    }
}

impl Lookup<'_> {
    /// Text that can stand in a column; anything else counts as not there.
    fn short_text(self) -> Option<Box<str>> {
        match self {
            Self::Text(text)
                if text.len() <= FACT_BYTES_MAX && !text.chars().any(char::is_control) =>
            {
                Some(text.into())
            }
            _ => None,
        }
    }
}

impl Provider {
    fn has_forms(&self) -> bool {
        let field = |source: &Source| matches!(source, Source::Field(_));
        let Events { json_field, id, event_type, order_key, occurred_at, .. } = &self.events;
        json_field.is_some()
            || id.iter().chain(event_type.iter()).chain(order_key.iter()).any(field)
            || occurred_at.iter().any(|(source, _): &(Source, Unit)| field(source))
            || self.handshakes.iter().flat_map(|asked| asked.when.iter()).any(|(s, _)| field(s))
    }
}
