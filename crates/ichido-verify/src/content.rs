//! Whether two bodies of one event say the same.
//!
//! Called only when their digests differ, so it may cost more than a pass. It must never call two
//! different amounts equal: numbers are compared by their text, not as floating point.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How deep objects are compared by meaning; below that their text must be the same.
const DEPTH_MAX: u32 = 32;

/// Compares two bodies without the top-level members named.
pub(crate) fn same(a: &[u8], b: &[u8], volatile: &[Cow<'static, str>]) -> bool {
    if a == b {
        return true;
    }
    let object = |body| serde_json::from_slice::<Object>(body).ok();
    let (Some(mut a), Some(mut b)) = (object(a), object(b)) else { return false };
    for name in volatile {
        a.0.remove(&**name);
        b.0.remove(&**name);
    }
    same_objects(&a, &b, DEPTH_MAX)
}

fn same_objects(a: &Object, b: &Object, depth: u32) -> bool {
    a.0.len() == b.0.len()
        && a.0
            .iter()
            .zip(&b.0)
            .all(|((a_key, a), (b_key, b))| a_key == b_key && same_values(a, b, depth))
}

fn same_values(a: &RawValue, b: &RawValue, depth: u32) -> bool {
    let (a, b) = (a.get(), b.get());
    if a == b {
        return true;
    }
    let kind = |text: &str| text.as_bytes().first().copied();
    if depth == 0 || kind(a) != kind(b) {
        return false;
    }
    match kind(a) {
        Some(b'{') => matches!(
            (serde_json::from_str(a), serde_json::from_str(b)),
            (Ok(a), Ok(b)) if same_objects(&a, &b, depth - 1)
        ),
        Some(b'[') => {
            let items = |text| serde_json::from_str::<Vec<&RawValue>>(text);
            let (Ok(a), Ok(b)) = (items(a), items(b)) else { return false };
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_values(a, b, depth - 1))
        }
        Some(b'"') => matches!(
            (serde_json::from_str::<String>(a), serde_json::from_str::<String>(b)),
            (Ok(a), Ok(b)) if a == b
        ),
        _ => false,
    }
}

/// The members of an object by name. Duplicates have no meaning to compare: they are an error.
struct Object<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Deserialize<'a> for Object<'a> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'a> Visitor<'a> for Members {
            type Value = Object<'a>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Object<'a>, M::Error> {
                let mut members = BTreeMap::new();
                while let Some((name, value)) = map.next_entry()? {
                    if members.insert(name, value).is_some() {
                        return Err(M::Error::custom("duplicate member"));
                    }
                }
                Ok(Object(members))
            }
        }
        from.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::same;

    fn stripe(a: &str, b: &str) -> bool {
        same(a.as_bytes(), b.as_bytes(), &["pending_webhooks".into()])
    }

    #[test]
    fn volatile_members_order_and_white_space_make_no_difference() {
        assert!(stripe(r#"{"a":1,"pending_webhooks":2}"#, r#"{"a":1,"pending_webhooks":1}"#));
        assert!(stripe(r#"{"a":1,"pending_webhooks":2}"#, r#"{ "a" : 1 }"#));
        assert!(stripe(
            r#"{"a":{"b":[1,{"c":"\u00e9"}],"d":2}}"#,
            r#"{"a":{"d":2,"b":[1, {"c":"é"}]}}"#
        ));
    }

    #[test]
    fn content_makes_a_difference() {
        assert!(!stripe(r#"{"a":1}"#, r#"{"a":2}"#));
        assert!(!stripe(r#"{"a":1}"#, r#"{"a":1,"b":1}"#));
        assert!(!stripe(r#"{"a":{"pending_webhooks":1}}"#, r#"{"a":{"pending_webhooks":2}}"#));
        assert!(!stripe(r#"{"a":9007199254740992}"#, r#"{"a":9007199254740993}"#));
        assert!(!stripe(r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#));
        assert!(!stripe(r#"{"a":"1"}"#, r#"{"a":1}"#));
    }

    #[test]
    fn what_is_not_an_object_is_compared_byte_by_byte() {
        assert!(stripe("a=1", "a=1"));
        assert!(!stripe("a=1", "a=2"));
        assert!(!stripe("[1]", "[1 ]"));
        assert!(!stripe(r#"{"a":1,"a":2}"#, r#"{"a":1,"a":2 }"#));
        let deep = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
        assert!(!stripe(&deep(100_000), &deep(100_001)));
    }
}
