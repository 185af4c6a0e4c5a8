//! Times as the file keeps them: UTC text of one length, which sorts.

use ichido_verify::Timestamp;

/// `2026-01-02T03:04:05.678901Z`.
pub(super) fn text(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// Now. One file has one machine, so its clock is the database's.
pub(super) fn now() -> String {
    text(Timestamp::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_one_length_so_that_they_sort() {
        let whole = Timestamp::from_second(1_760_000_000).expect("in range");
        assert_eq!(text(whole), "2025-10-09T08:53:20.000000Z");
    }
}
