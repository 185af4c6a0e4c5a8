//! Durations in words, as the configuration writes them. Must never round.

use std::time::Duration;

/// A duration in the largest unit that it is a whole number of, as the configuration writes it.
pub fn span_text(span: Duration) -> String {
    let ms = span.as_millis();
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let whole = units.into_iter().find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit));
    let (unit, name) = whole.unwrap_or((1, "ms"));
    format!("{}{name}", ms / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_written_as_in_the_configuration() {
        for (ms, expected) in
            [(0, "0ms"), (250, "250ms"), (7_200, "7200ms"), (90_000, "90s"), (1_800_000, "30m")]
        {
            assert_eq!(span_text(Duration::from_millis(ms)), expected);
        }
        assert_eq!(span_text(Duration::from_hours(100)), "100h");
        assert_eq!(span_text(Duration::from_hours(96)), "4d");
    }
}
