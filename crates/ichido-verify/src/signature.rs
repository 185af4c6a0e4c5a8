//! Reads the signature header into candidates.
//!
//! Unknown labels are skipped and are never a fallback; what does not decode strictly is no
//! candidate. Nothing here compares anything.

use crate::check::Candidate;
use crate::key::Signature;
use crate::provider::{Accepted, Form, Names, Scheme, TimestampSource};
use crate::{Headers, Rejection};

/// How many signatures of one header are looked at: a sender that rotates keys sends two or
/// three, and each costs a comparison with every secret.
pub(crate) const SIGNATURES_MAX: usize = 16;

/// What the signature header said.
pub(crate) struct Claimed<'a> {
    pub(crate) candidates: Vec<Candidate>,
    /// The literal timestamp, for schemes that send it in the same header.
    pub(crate) timestamp: Option<&'a [u8]>,
}

/// Finds the header under the first of its names that is present; it may be there only once.
pub(crate) fn only<'a>(
    headers: &'a Headers,
    names: &'a Names,
) -> Result<Option<&'a [u8]>, Rejection> {
    for name in names.iter() {
        let mut values = headers.get_all(name);
        if let Some(value) = values.next() {
            let again = values.next().is_some();
            return if again { Err(Rejection::RepeatedHeader) } else { Ok(Some(value)) };
        }
    }
    Ok(None)
}

/// Reads the signature header.
pub(crate) fn claimed<'a>(
    headers: &'a Headers,
    scheme: &'a Scheme,
) -> Result<Claimed<'a>, Rejection> {
    if scheme.form == Form::Numbered {
        return numbered(headers, scheme);
    }
    let value = only(headers, &scheme.header)?
        .filter(|value| !value.is_empty())
        .ok_or(Rejection::NoSignature)?;
    let mut claimed = Claimed { candidates: Vec::new(), timestamp: None };
    match scheme.form {
        Form::Whole => {
            for accepted in scheme.accepts.iter() {
                let text = value.strip_prefix(accepted.label.as_bytes());
                claimed.candidates.extend(text.and_then(|text| decode(text, accepted, scheme)));
            }
        }
        Form::Labelled { between, after_label } => {
            labelled(value, (between, after_label), scheme, &mut claimed)?;
        }
        Form::Numbered => {}
    }
    if claimed.candidates.is_empty() {
        return Err(Rejection::MalformedSignature);
    }
    Ok(claimed)
}

/// Reads one header a signature.
fn numbered<'a>(headers: &Headers, scheme: &Scheme) -> Result<Claimed<'a>, Rejection> {
    let is_one = |name: &str| {
        scheme.header.iter().any(|known| {
            let number = name.strip_prefix(&**known).and_then(|rest| rest.strip_prefix('-'));
            number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        })
    };
    let mut values = headers.iter().filter(|(name, _)| is_one(name)).map(|(_, value)| value);
    let mut values = values.by_ref().take(SIGNATURES_MAX).peekable();
    values.peek().ok_or(Rejection::NoSignature)?;
    let accepted = scheme.accepts.first().ok_or(Rejection::MalformedSignature)?;
    let candidates: Vec<_> = values.filter_map(|text| decode(text, accepted, scheme)).collect();
    if candidates.is_empty() {
        return Err(Rejection::MalformedSignature);
    }
    Ok(Claimed { candidates, timestamp: None })
}

fn labelled<'a>(
    value: &'a [u8],
    (between, after_label): (u8, u8),
    scheme: &Scheme,
    claimed: &mut Claimed<'a>,
) -> Result<(), Rejection> {
    let time_label = scheme.timestamp.as_ref().and_then(|rule| match &rule.source {
        TimestampSource::Label(label) => Some(label.as_bytes()),
        TimestampSource::Header(_) | TimestampSource::Body(_) => None,
    });
    let mut looked_at = 0;
    for item in value.split(|byte| *byte == between) {
        let Some(at) = item.iter().position(|byte| *byte == after_label) else { continue };
        let (label, text) = (&item[..at], &item[at + 1..]);
        if time_label == Some(label) {
            // Two times: which one was signed would be a guess.
            if claimed.timestamp.replace(text).is_some() {
                return Err(Rejection::MalformedTimestamp);
            }
        } else if looked_at < SIGNATURES_MAX {
            let accepted = scheme.accepts.iter().find(|known| known.label.as_bytes() == label);
            looked_at += usize::from(accepted.is_some());
            claimed.candidates.extend(accepted.and_then(|accepted| decode(text, accepted, scheme)));
        }
    }
    Ok(())
}

fn decode(text: &[u8], accepted: &Accepted, scheme: &Scheme) -> Option<Candidate> {
    let algorithm = accepted.algorithm;
    Signature::decode(text, scheme.encoding, algorithm.size())
        .map(|signature| Candidate { algorithm, signature })
}
