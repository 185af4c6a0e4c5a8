//! Reads a verified request: its events and what they say about themselves.
//!
//! Called only after a signature matched (an unsigned handshake excepted, whose answer is fixed).
//! Nothing here can fail a delivery: what can't be read becomes an `unreadable` event.

use std::borrow::Cow;
use std::ops::Range;

use subtle::ConstantTimeEq;

use crate::batch::Batch;
use crate::challenge;
use crate::check::NumberedKey;
use crate::event::{FACT_BYTES_MAX, Facts, VerifiedEvent};
use crate::form::{self, Field};
use crate::json::{self, Found, Members, Wanted};
use crate::provider::{Events, Handshake, Provider, Reply, Source, Unit};
use crate::time::parse_any;
use crate::{Answer, Request, Unreadable};

/// The wanted members of a row's bodies, compiled once per endpoint.
pub(crate) struct Reader {
    /// What is wanted of the whole body.
    body: Wanted,
    /// What is wanted of each event of a batch; empty without one.
    item: Wanted,
    /// Whether the provider sends forms at all.
    forms: bool,
    batch: Batch,
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
    request: &'a Request,
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
        let mut reader = Self {
            body: Wanted::default(),
            item: Wanted::default(),
            forms: row.has_forms(),
            batch: Batch::new(row.events.batch.iter().map(|path| &**path)),
        };
        let Events { batch, id, event_type, order_key, occurred_at, .. } = &row.events;
        let facts = id
            .iter()
            .chain(event_type.iter())
            .chain(order_key.iter())
            .chain(occurred_at.iter().map(|(source, _)| source));
        let target = if batch.is_empty() { &mut reader.body } else { &mut reader.item };
        facts.for_each(|source| want(source, target));
        for handshake in row.handshakes.iter() {
            let echoed = match &handshake.reply {
                Reply::Echo(at) | Reply::EchoJson(_, at) | Reply::Mac(_, at) => Some(at),
                Reply::Status(_) | Reply::Json(_) | Reply::Headers(_) => None,
            };
            let when = handshake.when.iter().map(|(source, _)| source);
            for source in when.chain(handshake.with.iter()).chain(echoed) {
                want(source, &mut reader.body);
                // A handshake can come as an item of a batch.
                want(source, &mut reader.item);
            }
        }
        reader
    }

    /// Reads a request whose signature matched.
    pub(crate) fn read(
        &self,
        row: &Provider,
        keys: &[NumberedKey],
        secret: usize,
        request: &Request,
    ) -> Content {
        let key = keys.iter().find(|key| key.secret as usize == secret);
        self.open(row, request, |place| {
            let asked = row.handshakes.iter().find(|handshake| place.asks(handshake));
            if let Some(answer) = asked.and_then(|handshake| place.answer(handshake, key)) {
                return Content::Handshake(answer);
            }
            if row.events.batch.is_empty() {
                let (body, range) = (&request.body, 0..request.body.len());
                let event = VerifiedEvent::signed(body, range, place.facts(&row.events));
                return Content::Events(vec![event]);
            }
            self.batch(row, request, place)
        })
    }

    /// Answers a handshake that needs no signature, if the request is one.
    pub(crate) fn unsigned_handshake(
        &self,
        row: &Provider,
        keys: &[NumberedKey],
        request: &Request,
    ) -> Option<Answer> {
        /// A probe is a few bytes; nothing larger is parsed without a signature.
        const PROBE_BYTES_MAX: usize = 4096;
        if request.body.len() > PROBE_BYTES_MAX
            || row.handshakes.iter().all(|handshake| handshake.signed)
        {
            return None;
        }
        self.open(row, request, |place| {
            let mut unsigned = row.handshakes.iter().filter(|handshake| !handshake.signed);
            let asked = unsigned.find(|handshake| place.asks(handshake))?;
            place.answer(asked, keys.first())
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
        then(&Place { request, form, json: json.as_ref(), wanted: &self.body })
    }

    fn batch(&self, row: &Provider, request: &Request, whole: &Place) -> Content {
        let body = &request.body;
        let items = match self.batch.items(body) {
            Ok(items) => items,
            Err(reason) => {
                let event = VerifiedEvent::signed(body, 0..body.len(), Err(reason));
                return Content::Events(vec![event]);
            }
        };
        let mut events = Vec::with_capacity(items.len());
        for item in items {
            let members = self.item.read(item.get().as_bytes());
            let json = Some(&members);
            let place = Place { request: whole.request, form: None, json, wanted: &self.item };
            let asked = row.handshakes.iter().find(|handshake| place.asks(handshake));
            if let Some(answer) = asked.and_then(|handshake| place.answer(handshake, None)) {
                return Content::Handshake(answer);
            }
            let range = range_in(body, item.get().as_bytes());
            events.push(VerifiedEvent::signed(body, range, place.facts(&row.events)));
        }
        // None: a heartbeat, nothing happened.
        if events.is_empty() {
            return Content::Handshake(Answer::empty());
        }
        Content::Events(events)
    }
}

fn want(source: &Source, wanted: &mut Wanted) {
    match source {
        Source::Json(path) | Source::JsonOrInteger(path) => {
            wanted.want(path);
        }
        Source::Has(names) => names.iter().for_each(|name| {
            wanted.want(name);
        }),
        Source::Join(sources) => sources.iter().for_each(|source| want(source, wanted)),
        _ => {}
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
                    let mut values = self.request.headers.get_all(name);
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
            Source::Field(name) => field(self.form, name),
            Source::Query(name) => {
                let query = self.request.url.split_once('?').map(|(_, query)| query.as_bytes());
                field(query, name)
            }
            Source::Has(names) => {
                let there = names.iter().find(|name| {
                    !matches!(self.member(name, false), Lookup::Absent | Lookup::Broken(_))
                });
                there.map_or(Lookup::Absent, |name| Lookup::Text(Cow::Borrowed(name)))
            }
            Source::Literal(text) => Lookup::Text(Cow::Borrowed(text)),
            Source::Join(sources) => {
                let mut joined = String::new();
                for source in sources.iter() {
                    match self.look(source) {
                        Lookup::Text(text) => joined.push_str(&text),
                        other => return other,
                    }
                }
                Lookup::Text(Cow::Owned(joined))
            }
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
            // One of them is a secret.
            Lookup::Text(text) => bool::from(text.as_bytes().ct_eq(expected.as_bytes())),
            _ => false,
        };
        let there = |source: &'a Source| matches!(self.look(source), Lookup::Text(_));
        let absent = |name: &Cow<'static, str>| {
            self.form.is_none_or(|form| form::field(form, name) == Ok(Field::Absent))
        };
        self.request.method == handshake.method
            && handshake.when.iter().all(said)
            && handshake.with.iter().all(there)
            && handshake.unless_fields.iter().all(absent)
    }

    fn answer(&self, handshake: &'a Handshake, key: Option<&NumberedKey>) -> Option<Answer> {
        let text = |source: &'a Source| match self.look(source) {
            Lookup::Text(text) => Some(text),
            _ => None,
        };
        match &handshake.reply {
            Reply::Status(status) => Some(Answer::status(*status)),
            Reply::Echo(source) => Some(Answer::plain(&text(source)?)),
            Reply::EchoJson(member, source) => {
                let value = serde_json::to_string(&text(source)?).ok()?;
                Some(Answer::json(format!(r#"{{"{member}":{value}}}"#)))
            }
            Reply::Json(json) => Some(Answer::json((*json).to_owned())),
            Reply::Mac(challenge, source) => challenge::answer(*challenge, &text(source)?, key?),
            Reply::Headers(names) => {
                let mut answer = Answer::empty();
                for (name, from) in *names {
                    let value = self.request.headers.get_all(from).next();
                    let value = value.and_then(|value| std::str::from_utf8(value).ok());
                    answer.headers.extend(value.map(|value| (*name, value.to_owned())));
                }
                Some(answer)
            }
        }
    }
}

fn field<'a>(form: Option<&'a [u8]>, name: &str) -> Lookup<'a> {
    match form.map(|form| form::field(form, name)) {
        None | Some(Ok(Field::Absent)) => Lookup::Absent,
        Some(Ok(Field::Text(text))) => Lookup::Text(text),
        Some(Ok(Field::Ambiguous)) => Lookup::Ambiguous,
        Some(Err(reason)) => Lookup::Broken(reason),
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
