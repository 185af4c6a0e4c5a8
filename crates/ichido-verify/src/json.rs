//! Finds a handful of members in a JSON body, in one pass, without building a tree.
//!
//! The time is linear in the body and the stack is bounded by the depth of the wanted paths,
//! never by that of the input: what is not wanted is skipped by the parser's iterative skipper.
//! A wanted member that is there twice is ambiguous, since parsers disagree on which one counts.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::Unreadable;

/// Paths that are wanted, as a tree. Built once per endpoint.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    root: Node,
    paths: Vec<Box<str>>,
}

#[derive(Debug, Default)]
struct Node {
    /// Where to put the member itself.
    slot: Option<usize>,
    children: Vec<(Box<str>, Node)>,
}

/// What was found at a path.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Found<'a> {
    /// Not there, or null.
    #[default]
    Absent,
    /// The raw text of the value.
    Raw(&'a RawValue),
    /// There twice.
    Ambiguous,
}

/// What a body held, by the slots of [`Wanted::slot`].
#[derive(Debug)]
pub(crate) struct Members<'a>(Vec<Found<'a>>);

impl Wanted {
    /// Wants the member at a path joined by dots; asking twice gives the same slot.
    pub(crate) fn want(&mut self, path: &str) -> usize {
        if let Some(slot) = self.slot(path) {
            return slot;
        }
        let mut node = &mut self.root;
        for key in path.split('.') {
            let at = node.children.iter().position(|(have, _)| **have == *key);
            let at = at.unwrap_or_else(|| {
                node.children.push((key.into(), Node::default()));
                node.children.len() - 1
            });
            node = &mut node.children[at].1;
        }
        node.slot = Some(self.paths.len());
        self.paths.push(path.into());
        self.paths.len() - 1
    }

    /// The slot of a path that was asked for.
    pub(crate) fn slot(&self, path: &str) -> Option<usize> {
        self.paths.iter().position(|have| **have == *path)
    }

    /// Reads the wanted members out of a body whose top level must be an object.
    pub(crate) fn read<'a>(&self, body: &'a [u8]) -> Result<Members<'a>, Unreadable> {
        if body.is_empty() {
            return Err(Unreadable::EmptyBody);
        }
        let text = std::str::from_utf8(body).map_err(|_| Unreadable::NotUtf8)?;
        // The quick way reads strings and numbers on the way to a wanted member, and stumbles over
        // those that no type can hold (a lone surrogate, 1e999). The careful way does not.
        self.walk(text, false).or_else(|_| self.walk(text, true))
    }

    fn walk<'a>(&self, text: &'a str, careful: bool) -> Result<Members<'a>, Unreadable> {
        let mut members = Members(vec![Found::Absent; self.paths.len()]);
        let mut is_object = false;
        let mut parser = serde_json::Deserializer::from_str(text);
        let members_mut = &mut members;
        Walk { node: &self.root, members: members_mut, is_object: &mut is_object, careful }
            .deserialize(&mut parser)
            .and_then(|()| parser.end())
            .map_err(|_| Unreadable::NotJson)?;
        if is_object { Ok(members) } else { Err(Unreadable::NotAnObject) }
    }
}

impl<'a> Members<'a> {
    pub(crate) fn get(&self, slot: usize) -> Found<'a> {
        self.0.get(slot).copied().unwrap_or_default()
    }
}

/// The text of a JSON string; `None` for any other value, and for text that is not Unicode.
pub(crate) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get();
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(text).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// The digits of a JSON integer, exactly as sent, whatever their number.
pub(crate) fn integer(raw: &RawValue) -> Option<&str> {
    let text = raw.get();
    let digits = text.strip_prefix('-').unwrap_or(text);
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

/// Walks one object that has wanted members below it.
struct Walk<'w, 'a> {
    node: &'w Node,
    members: &'w mut Members<'a>,
    is_object: &'w mut bool,
    careful: bool,
}

impl<'a> Walk<'_, 'a> {
    /// The walk of a member below.
    fn below<'s>(&'s mut self, node: &'s Node, is_object: &'s mut bool) -> Walk<'s, 'a> {
        Walk { node, members: &mut *self.members, is_object, careful: self.careful }
    }
}

impl<'a> DeserializeSeed<'a> for Walk<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, parser: D) -> Result<(), D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Walk<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<M: MapAccess<'a>>(mut self, mut map: M) -> Result<(), M::Error> {
        *self.is_object = true;
        let mut seen = 0_u64;
        while let Some(child) = map.next_key_seed(Key(self.node))? {
            let Some(at) = child else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let node = &self.node.children[at].1;
            // No row wants 64 members of one object; too many would be refused, not mixed up.
            let bit = 1 << at.min(63);
            if seen & bit != 0 {
                node.mark_ambiguous(self.members);
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            seen |= bit;
            if !node.children.is_empty() && node.slot.is_none() && !self.careful {
                map.next_value_seed(self.below(node, &mut false))?;
                continue;
            }
            let raw: &'a RawValue = map.next_value()?;
            node.store(raw, self.members);
            if !node.children.is_empty() && raw.get().starts_with('{') {
                // Read again what is below, once for each level of a wanted path.
                self.below(node, &mut false)
                    .deserialize(&mut serde_json::Deserializer::from_str(raw.get()))
                    .map_err(M::Error::custom)?;
            }
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'a>>(self, mut seq: S) -> Result<(), S::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

impl Node {
    fn store<'a>(&self, raw: &'a RawValue, members: &mut Members<'a>) {
        if let Some(slot) = self.slot
            && raw.get() != "null"
        {
            members.0[slot] = Found::Raw(raw);
        }
    }

    /// Recurses along wanted paths only.
    fn mark_ambiguous(&self, members: &mut Members<'_>) {
        if let Some(slot) = self.slot {
            members.0[slot] = Found::Ambiguous;
        }
        for (_, child) in &self.children {
            child.mark_ambiguous(members);
        }
    }
}

/// Matches one key with the wanted children. Read as bytes, so that a key with a lone surrogate
/// (valid JSON, not valid Unicode) is simply one that nobody wants.
struct Key<'w>(&'w Node);

impl<'a> DeserializeSeed<'a> for Key<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'a>>(self, parser: D) -> Result<Option<usize>, D::Error> {
        parser.deserialize_bytes(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_bytes<E>(self, key: &[u8]) -> Result<Option<usize>, E> {
        Ok(self.0.children.iter().position(|(have, _)| have.as_bytes() == key))
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Option<usize>, E> {
        self.visit_bytes(key.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::{Found, Wanted, integer, string};
    use crate::Unreadable;

    fn read(paths: &[&str], body: &str) -> Result<Vec<String>, Unreadable> {
        let mut wanted = Wanted::default();
        let slots: Vec<_> = paths.iter().map(|path| wanted.want(path)).collect();
        let members = wanted.read(body.as_bytes())?;
        let text = |slot: &usize| match members.get(*slot) {
            Found::Absent => "-".to_owned(),
            Found::Ambiguous => "twice".to_owned(),
            Found::Raw(raw) => raw.get().to_owned(),
        };
        Ok(slots.iter().map(text).collect())
    }

    #[test]
    fn wanted_members_are_found_at_any_of_their_depths() {
        let body = r#"{"x":[{"id":0}],"id":"a","d":{"o":{"id":12345678901234567890123},"id":1}}"#;
        let found = read(&["id", "d.o.id", "d", "d.none", "x.id"], body).unwrap();
        assert_eq!(
            found,
            [
                "\"a\"",
                "12345678901234567890123",
                r#"{"o":{"id":12345678901234567890123},"id":1}"#,
                "-",
                "-"
            ]
        );
    }

    #[test]
    fn a_wanted_member_that_is_there_twice_is_ambiguous() {
        assert_eq!(read(&["id"], r#"{"id":"a","id":"a"}"#).unwrap(), ["twice"]);
        assert_eq!(read(&["id"], r#"{"id":"a","i\u0064":"b"}"#).unwrap(), ["twice"]);
        assert_eq!(read(&["d.id"], r#"{"d":{"id":1},"d":{}}"#).unwrap(), ["twice"]);
        assert_eq!(read(&["id"], r#"{"id":"a","x":1,"x":2}"#).unwrap(), ["\"a\""]);
    }

    #[test]
    fn only_an_object_will_do() {
        for body in ["[]", "1", "\"id\"", "null", "true", "1.5", "-1"] {
            assert_eq!(read(&["id"], body), Err(Unreadable::NotAnObject), "{body}");
        }
        for body in ["{", "{}x", "{\"id\":}", " ", "\u{feff}{}"] {
            assert_eq!(read(&["id"], body), Err(Unreadable::NotJson), "{body}");
        }
        assert_eq!(read(&["id"], ""), Err(Unreadable::EmptyBody));
    }

    #[test]
    fn deep_nesting_is_skipped_wherever_it_is() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(read(&["id"], &deep), Err(Unreadable::NotAnObject));
        let found = read(&["id", "d.id"], &format!(r#"{{"d":{deep},"id":{deep},"x":{deep}}}"#));
        assert_eq!(found.unwrap(), [&*deep, "-"]);
    }

    #[test]
    fn what_is_not_wanted_may_be_odd() {
        for odd in [r#""\ud800""#, r#""\u0000""#, "1e999", "[[]]", "null"] {
            let body = format!(r#"{{"\ud800":{odd},"id":"a","d":{odd}}}"#);
            assert_eq!(read(&["id", "d.o.id"], &body).unwrap(), ["\"a\"", "-"], "{odd}");
        }
    }

    #[test]
    fn strings_and_integers_are_told_apart() {
        let raw = |text: &str| serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
        assert_eq!(string(&raw(r#""a\u00e9""#)).as_deref(), Some("aé"));
        assert_eq!(string(&raw(r#""\ud800""#)), None);
        assert_eq!(string(&raw("12")), None);
        assert_eq!(integer(&raw("-12")), Some("-12"));
        assert_eq!((integer(&raw("1.0")), integer(&raw("1e3"))), (None, None));
    }
}
