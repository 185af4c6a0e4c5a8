//! Times as providers write them, read strictly.
//!
//! `now` is always an argument: nothing here may look at a clock.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;

use crate::json::{self, Found, Wanted};
use crate::provider::{TimestampRule, Unit};
use crate::{Refused, Rejection};

/// Reads a number that consists of digits only, without overflow.
pub(crate) fn digits(text: &[u8]) -> Option<i64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Reads a time in the unit given.
pub(crate) fn parse(text: &[u8], unit: Unit) -> Option<Timestamp> {
    match unit {
        Unit::Seconds => Timestamp::from_second(digits(text)?).ok(),
        Unit::Millis => Timestamp::from_millisecond(digits(text)?).ok(),
        Unit::Rfc3339 => std::str::from_utf8(text).ok()?.parse().ok(),
    }
}

/// Reads a time: digits in the unit given, anything else as RFC 3339.
pub(crate) fn parse_any(text: &str, unit: Unit) -> Option<Timestamp> {
    let only_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    parse(text.as_bytes(), if only_digits { unit } else { Unit::Rfc3339 }).or_else(|| {
        // Some senders leave the zone out and mean UTC.
        let civil: jiff::civil::DateTime = text.parse().ok()?;
        jiff::tz::Offset::UTC.to_timestamp(civil).ok()
    })
}

/// The text or the digits of a time in a body whose signature matched.
pub(crate) fn in_body(body: &[u8], path: &str) -> Option<String> {
    let mut wanted = Wanted::default();
    let slot = wanted.want(path);
    match wanted.read(body).ok()?.get(slot) {
        Found::Raw(raw) => {
            json::integer(raw).map(str::to_owned).or(json::string(raw).map(Cow::into_owned))
        }
        _ => None,
    }
}

/// Writes a time so that [`parse`] reads it.
pub(crate) fn write(time: Timestamp, unit: Unit) -> Option<String> {
    match unit {
        Unit::Seconds => (time.as_second() >= 0).then(|| time.as_second().to_string()),
        Unit::Millis => (time.as_millisecond() >= 0).then(|| time.as_millisecond().to_string()),
        Unit::Rfc3339 => Some(time.to_string()),
    }
}

/// Holds the signed time against `now`. Exactly the tolerance is still good.
pub(crate) fn check(
    text: &[u8],
    rule: &TimestampRule,
    tolerance: Duration,
    now: Timestamp,
) -> Result<(), Refused> {
    let signed_at = parse(text, rule.unit).ok_or(Rejection::MalformedTimestamp)?;
    // Both are cut to the unit: senders do not send the fraction of the second.
    let (signed, now, tolerance) = match rule.unit {
        Unit::Seconds => (
            i128::from(signed_at.as_second()),
            i128::from(now.as_second()),
            i128::from(tolerance.as_secs()),
        ),
        Unit::Millis | Unit::Rfc3339 => (
            i128::from(signed_at.as_millisecond()),
            i128::from(now.as_millisecond()),
            i128::try_from(tolerance.as_millis()).unwrap_or(i128::MAX),
        ),
    };
    let reason = if now - signed > tolerance {
        Rejection::TooOld
    } else if rule.future_bounded && signed - now > tolerance {
        Rejection::TooNew
    } else {
        return Ok(());
    };
    Err(Refused { reason, signed_at: Some(signed_at) })
}
