//! Compares what the sender expects with what was answered and found.
//!
//! `lost` and `doubled` must never be assumed: they are counted, event by event and invoice by
//! invoice.

use std::{collections::BTreeMap, time::Duration};

use ichido::Finding;
use serde::Serialize;

use super::{found::Found, play::Played, story::Expected};
use crate::cli::send::tally::Summary;

/// A figure that the model foretold.
#[derive(Debug, Clone, Copy, Serialize)]
struct Pair {
    expected: i64,
    found: i64,
}

impl Pair {
    fn new(expected: impl TryInto<i64>, found: impl TryInto<i64>) -> Self {
        // No count here comes near the limit; one that did would not be equal to anything.
        let expected = expected.try_into().unwrap_or(i64::MAX);
        Self { expected, found: found.try_into().unwrap_or(i64::MIN) }
    }

    fn holds(self) -> bool {
        self.expected == self.found
    }
}

/// The whole result.
#[derive(Debug, Serialize)]
pub(super) struct Verdict {
    /// Whether everything is as it must be.
    pub(super) good: bool,
    sending: Summary,
    processed: Pair,
    duplicate: Pair,
    ignored: Pair,
    refused: Pair,
    ledger_entries: Pair,
    ledger_sum: Pair,
    messages: Pair,
    flags: Pair,
    /// Invoices with the status that they must have.
    invoices: Pair,
    /// Acknowledged events that are not there or not done, and their effects that are missing.
    lost: u64,
    /// Effects beyond the first, and events that were called processed twice.
    doubled: u64,
    /// Forgeries that were answered 2xx.
    believed: u64,
    audit: Vec<Finding>,
}

impl Verdict {
    /// Counts.
    pub(super) fn new(
        expected: &Expected,
        mut played: Played,
        found: &Found,
        audit: Vec<Finding>,
        took: Duration,
    ) -> Self {
        let sending = played.summary(took);
        let outcome = |name| sending.outcomes.get(name).copied().unwrap_or(0);
        let right = |(invoice, status): &(&String, &&str)| {
            found.status.get(*invoice).is_some_and(|is| is == **status)
        };
        let mut verdict = Self {
            good: false,
            processed: Pair::new(expected.processed, outcome("processed")),
            duplicate: Pair::new(expected.duplicate, outcome("duplicate")),
            ignored: Pair::new(expected.ignored, outcome("ignored")),
            refused: Pair::new(expected.refused, played.refused),
            ledger_entries: Pair::new(expected.booked.len(), found.entries.values().sum::<u64>()),
            ledger_sum: Pair::new(expected.booked.values().sum::<i64>(), found.sum),
            messages: Pair::new(expected.booked.len(), found.messages.values().sum::<u64>()),
            flags: Pair::new(expected.flags, found.flags),
            invoices: Pair::new(
                expected.status.len(),
                expected.status.iter().filter(right).count(),
            ),
            lost: lost(expected, &played, found),
            doubled: doubled(&played, found),
            believed: played.believed,
            sending,
            audit,
        };
        verdict.good = verdict.is_good();
        verdict
    }

    fn is_good(&self) -> bool {
        let pairs = [self.refused, self.ledger_entries, self.ledger_sum, self.messages];
        let more = [self.flags, self.invoices];
        // An answer that got lost and was asked for again comes back as a duplicate.
        let answers = [self.processed, self.duplicate, self.ignored];
        let answered = answers.iter().all(|pair| pair.holds()) || self.sending.resent > 0;
        pairs.iter().chain(&more).all(|pair| pair.holds())
            && answered
            && (self.lost, self.doubled, self.believed) == (0, 0, 0)
            && self.audit.is_empty()
    }

    /// The table.
    pub(super) fn text(&self) -> String {
        let sending = &self.sending;
        let answers: Vec<_> =
            sending.statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
        let mut lines = vec![
            format!(
                "sent             {:>10}  in {:.1} s, {:.0}/s",
                sending.sent + sending.resent,
                sending.seconds,
                sending.per_second
            ),
            format!("answered             {}", answers.join(", ")),
            String::new(),
            "                   expected       found".into(),
        ];
        for (name, pair) in [
            ("processed", self.processed),
            ("duplicate", self.duplicate),
            ("ignored", self.ignored),
            ("refused", self.refused),
            ("invoices", self.invoices),
            ("ledger entries", self.ledger_entries),
            ("ledger sum", self.ledger_sum),
            ("messages", self.messages),
            ("flags", self.flags),
        ] {
            let mark = if pair.holds() { "" } else { "  <-" };
            lines.push(format!("{name:<16} {:>10}  {:>10}{mark}", pair.expected, pair.found));
        }
        lines.push(String::new());
        lines.push(format!("lost {}, doubled {}", self.lost, self.doubled));
        for finding in &self.audit {
            lines.push(format!("audit: broken: {} ({})", finding.invariant, finding.count));
        }
        if self.audit.is_empty() {
            lines.push("audit: every invariant holds".into());
        }
        if !self.good {
            lines.push("something is off: see the lines marked above".into());
        }
        lines.join("\n")
    }
}

fn lost(expected: &Expected, played: &Played, found: &Found) -> u64 {
    let acknowledged = played.fates.iter().filter(|(_, fate)| fate.acknowledged > 0);
    let events = acknowledged.filter(|(id, _)| found.events.get(*id) != Some(&true)).count();
    let missing = |there: &BTreeMap<String, u64>| {
        expected.booked.keys().filter(|invoice| !there.contains_key(*invoice)).count()
    };
    count(events + missing(&found.entries) + missing(&found.messages))
}

fn doubled(played: &Played, found: &Found) -> u64 {
    let beyond = |counts: &BTreeMap<String, u64>| {
        counts.values().map(|count| count.saturating_sub(1)).sum::<u64>()
    };
    let twice = played.fates.values().map(|fate| fate.processed.saturating_sub(1)).sum::<u64>();
    beyond(&found.entries) + beyond(&found.messages) + twice
}

fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::demo::play::Fate;

    /// One paid invoice, as it must be.
    fn world() -> (Expected, Played, Found) {
        let mut expected = Expected::default();
        expected.booked.insert("in_1".into(), 500);
        expected.status.insert("in_1".into(), "paid");
        let mut played = Played::default();
        played.fates.insert("evt_1".into(), Fate { acknowledged: 1, processed: 1 });
        let found = Found {
            events: BTreeMap::from([("evt_1".into(), true)]),
            entries: BTreeMap::from([("in_1".into(), 1)]),
            messages: BTreeMap::from([("in_1".into(), 1)]),
            sum: 500,
            flags: 0,
            status: BTreeMap::from([("in_1".into(), "paid".into())]),
        };
        (expected, played, found)
    }

    fn counts((expected, played, found): &(Expected, Played, Found)) -> (u64, u64) {
        (lost(expected, played, found), doubled(played, found))
    }

    #[test]
    fn an_acknowledged_event_that_is_gone_or_waits_is_lost() {
        let mut world = world();
        assert_eq!(counts(&world), (0, 0));
        world.2.events.insert("evt_1".into(), false);
        assert_eq!(counts(&world), (1, 0));
        world.2.events.clear();
        assert_eq!(counts(&world), (1, 0));
    }

    #[test]
    fn a_payment_that_is_not_in_the_ledger_is_lost() {
        let mut world = world();
        world.2.entries.clear();
        assert_eq!(counts(&world), (1, 0));
    }

    #[test]
    fn a_second_message_and_a_second_processed_are_doubled() {
        let mut world = world();
        world.2.messages.insert("in_1".into(), 2);
        world.1.fates.insert("evt_1".into(), Fate { acknowledged: 2, processed: 2 });
        assert_eq!(counts(&world), (0, 2));
    }

    #[test]
    fn a_wrong_sum_alone_is_off() {
        let (expected, played, mut found) = world();
        found.sum = 499;
        let verdict = Verdict::new(&expected, played, &found, Vec::new(), Duration::from_secs(1));
        assert!(!verdict.good);
        assert!(verdict.text().contains("something is off"), "{}", verdict.text());
    }
}
