//! Finds the events of a delivery that holds several, each with its own bytes of the body.
//!
//! Called only after the signature matched. An event that is found is never left out.

use std::ops::Range;

use serde_json::value::RawValue;

use crate::Unreadable;
use crate::json::{Found, Wanted};

/// The ways to the events of a provider's bodies, compiled once per endpoint.
pub(crate) struct Batch(Vec<Vec<Step>>);

enum Step {
    /// To a member of an object.
    Member(Wanted, String),
    /// To each item of an array.
    Each,
}

impl Batch {
    /// Compiles paths such as `entry[].changes[]`; `[]` alone is the body itself.
    pub(crate) fn new<'p>(paths: impl IntoIterator<Item = &'p str>) -> Self {
        let steps = |path: &str| {
            let mut steps = Vec::new();
            let mut parts = path.split("[]").map(|part| part.trim_start_matches('.')).peekable();
            while let Some(part) = parts.next() {
                if !part.is_empty() {
                    let mut wanted = Wanted::default();
                    wanted.want(part);
                    steps.push(Step::Member(wanted, part.to_owned()));
                }
                if parts.peek().is_some() {
                    steps.push(Step::Each);
                }
            }
            steps
        };
        Self(paths.into_iter().map(steps).collect())
    }

    /// The events in the order of the body. None at all: nothing happened, a heartbeat.
    pub(crate) fn items<'a>(&self, body: &'a [u8]) -> Result<Vec<&'a RawValue>, Unreadable> {
        if body.is_empty() {
            return Err(Unreadable::EmptyBody);
        }
        let text = std::str::from_utf8(body).map_err(|_| Unreadable::NotUtf8)?;
        let whole: &RawValue = serde_json::from_str(text).map_err(|_| Unreadable::NotJson)?;
        let mut found = Vec::new();
        let mut failed = None;
        let mut there = false;
        for steps in &self.0 {
            match walk(whole, steps, &mut found) {
                Ok(()) => there = true,
                Err(reason) => failed = failed.or(Some(reason)),
            }
        }
        match failed {
            // A body that says twice where its events are, or has them nowhere.
            Some(reason) if !there || reason != Unreadable::IdMissing => return Err(reason),
            _ => {}
        }
        // An outer value comes just before the first one within it.
        found.sort_by_key(|item| (range(item).start, std::cmp::Reverse(range(item).end)));
        found.dedup_by_key(|item| range(item));
        let starts: Vec<_> = found.iter().skip(1).map(|item| range(item).start).collect();
        let mut next = starts.into_iter();
        found.retain(|item| next.next().is_none_or(|start| start >= range(item).end));
        Ok(found)
    }
}

fn walk<'a>(
    value: &'a RawValue,
    steps: &[Step],
    found: &mut Vec<&'a RawValue>,
) -> Result<(), Unreadable> {
    match steps {
        [] => {
            found.push(value);
            Ok(())
        }
        [Step::Member(wanted, path), rest @ ..] => {
            let members = wanted.read(value.get().as_bytes())?;
            match wanted.slot(path).map(|slot| members.get(slot)).unwrap_or_default() {
                Found::Raw(member) => walk(member, rest, found),
                Found::Ambiguous => Err(Unreadable::IdAmbiguous),
                Found::Absent => Err(Unreadable::IdMissing),
            }
        }
        // A sender of arrays that sends one event by itself.
        [Step::Each] if value.get().starts_with('{') => {
            found.push(value);
            Ok(())
        }
        [Step::Each, rest @ ..] => {
            let items: Vec<&RawValue> =
                serde_json::from_str(value.get()).map_err(|_| Unreadable::NotAnObject)?;
            let mut there = items.is_empty();
            for item in items {
                match walk(item, rest, found) {
                    Ok(()) => there = true,
                    Err(Unreadable::IdMissing) => {}
                    Err(reason) => return Err(reason),
                }
            }
            if there { Ok(()) } else { Err(Unreadable::IdMissing) }
        }
    }
}

/// Where its text is in memory: all items are pieces of one body.
fn range(item: &RawValue) -> Range<usize> {
    let start = item.get().as_ptr().addr();
    start..start + item.get().len()
}
