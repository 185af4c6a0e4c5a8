//! Reads fields of a form body (`application/x-www-form-urlencoded`), strictly.
//!
//! Only wanted fields are decoded; one that is there twice is ambiguous.

use std::borrow::Cow;

use crate::Unreadable;

/// A field of a form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    Absent,
    Text(Cow<'a, str>),
    Ambiguous,
}

/// Looks a field up.
pub(crate) fn field<'a>(body: &'a [u8], name: &str) -> Result<Field<'a>, Unreadable> {
    let mut found = Field::Absent;
    for pair in body.split(|byte| *byte == b'&') {
        let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        if *decode(&pair[..at])? != *name.as_bytes() {
            continue;
        }
        if found != Field::Absent {
            return Ok(Field::Ambiguous);
        }
        let value = decode(pair.get(at + 1..).unwrap_or_default())?;
        found = Field::Text(match value {
            Cow::Borrowed(value) => {
                Cow::Borrowed(std::str::from_utf8(value).map_err(|_| Unreadable::NotUtf8)?)
            }
            Cow::Owned(value) => {
                Cow::Owned(String::from_utf8(value).map_err(|_| Unreadable::NotUtf8)?)
            }
        });
    }
    Ok(found)
}

fn decode(text: &[u8]) -> Result<Cow<'_, [u8]>, Unreadable> {
    if !text.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Ok(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let hex = rest.get(..2).ok_or(Unreadable::NotJson)?;
                let mut byte = [0];
                data_encoding::HEXLOWER_PERMISSIVE
                    .decode_mut(hex, &mut byte)
                    .map_err(|_| Unreadable::NotJson)?;
                bytes.extend(byte);
                rest = &rest[2..];
            }
            byte => bytes.push(*byte),
        }
    }
    Ok(Cow::Owned(bytes))
}

#[cfg(test)]
mod tests {
    use super::{Field, field};
    use crate::Unreadable;

    #[test]
    fn fields_are_decoded_once_and_must_be_there_once() {
        let body = b"a=1+%2B%C3%A9&b&c=&%61b=x&d=1&d=2";
        let text = |text: &'static str| Ok(Field::Text(text.into()));
        assert_eq!(field(body, "a"), text("1 +é"));
        assert_eq!(field(body, "b"), text(""));
        assert_eq!(field(body, "c"), text(""));
        assert_eq!(field(body, "ab"), text("x"));
        assert_eq!(field(body, "d"), Ok(Field::Ambiguous));
        assert_eq!(field(body, "e"), Ok(Field::Absent));
    }

    #[test]
    fn broken_escapes_are_refused() {
        assert_eq!(field(b"a=%2", "a"), Err(Unreadable::NotJson));
        assert_eq!(field(b"a=%zz", "a"), Err(Unreadable::NotJson));
        assert_eq!(field(b"a=%ff", "a"), Err(Unreadable::NotUtf8));
    }
}
