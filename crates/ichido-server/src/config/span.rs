//! Durations as people write them: a whole number and a unit.
//!
//! It must never guess a unit: `30` alone is refused.

use std::time::Duration;

use serde::Deserialize;

/// A duration of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Span(pub(crate) Duration);

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is no duration: write \"250ms\", \"5s\", \"2m\" or \"90d\"");
        let unit_at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let count: u64 = text[..unit_at].parse().map_err(|_| wrong())?;
        let unit_ms = match &text[unit_at..] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        count.checked_mul(unit_ms).map(|ms| Self(Duration::from_millis(ms))).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(text: &str) -> Result<Duration, String> {
        Span::try_from(text.to_owned()).map(|span| span.0)
    }

    #[test]
    fn each_unit_is_understood() {
        assert_eq!(span("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(span("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(span("2m"), Ok(Duration::from_mins(2)));
        assert_eq!(span("24h"), Ok(Duration::from_hours(24)));
        assert_eq!(span("90d"), Ok(Duration::from_hours(24 * 90)));
    }

    #[test]
    fn a_number_without_a_unit_and_other_words_are_refused() {
        for text in ["", "5", "s", "-5s", "1.5s", "5 s", "5y", "99999999999999999999d"] {
            assert!(span(text).is_err(), "{text}");
        }
    }
}
