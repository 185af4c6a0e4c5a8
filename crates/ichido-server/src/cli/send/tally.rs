//! Counts answers: statuses, outcomes, how long they took.
//!
//! It must never count a delivery that was sent again as two: its last answer is its fate.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;

use super::client::{Answer, Delivered, Lost};

/// What came back so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    deliveries: u64,
    requests: u64,
    not_acknowledged: u64,
    statuses: BTreeMap<String, u64>,
    outcomes: BTreeMap<String, u64>,
    micros: Vec<u32>,
    /// Why the first unanswered request had no answer.
    lost: Option<Lost>,
}

impl Tally {
    /// Counts one delivery with all its answers.
    pub(crate) fn add(&mut self, delivered: Delivered) {
        self.deliveries += 1;
        let last = delivered.last();
        self.not_acknowledged += u64::from(!last.is_success());
        if let Answer::Status(_, Some(outcome)) = last {
            *self.outcomes.entry(outcome.clone()).or_default() += 1;
        }
        for (answer, took) in delivered.answers {
            self.requests += 1;
            let status = match answer {
                Answer::Status(status, _) => status.as_str().to_owned(),
                Answer::None(no_answer) => {
                    let why = no_answer.why.to_owned();
                    self.lost.get_or_insert(no_answer);
                    why
                }
            };
            *self.statuses.entry(status).or_default() += 1;
            self.micros.push(took.as_micros().try_into().unwrap_or(u32::MAX));
        }
    }

    /// Adds what another sender counted.
    pub(crate) fn merge(&mut self, other: Self) {
        self.deliveries += other.deliveries;
        self.requests += other.requests;
        self.not_acknowledged += other.not_acknowledged;
        self.micros.extend(other.micros);
        self.lost = self.lost.take().or(other.lost);
        for (to, from) in
            [(&mut self.statuses, other.statuses), (&mut self.outcomes, other.outcomes)]
        {
            for (key, count) in from {
                *to.entry(key).or_default() += count;
            }
        }
    }

    /// Why a request had no answer, if one had none.
    pub(super) fn lost(&self) -> Option<&Lost> {
        self.lost.as_ref()
    }

    /// The figures, for a run that took `elapsed`.
    pub(crate) fn summary(mut self, elapsed: Duration) -> Summary {
        self.micros.sort_unstable();
        let seconds = elapsed.as_secs_f64();
        Summary {
            sent: self.deliveries,
            resent: self.requests - self.deliveries,
            seconds,
            per_second: count_f64(self.requests) / seconds.max(1e-6),
            statuses: self.statuses,
            outcomes: self.outcomes,
            not_acknowledged: self.not_acknowledged,
            p50_ms: percentile(&self.micros, 50),
            p95_ms: percentile(&self.micros, 95),
            p99_ms: percentile(&self.micros, 99),
        }
    }
}

/// The least time that `percent` of all answers stayed within, in milliseconds.
fn percentile(sorted: &[u32], percent: usize) -> f64 {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).map_or(0.0, |micros| f64::from(*micros) / 1e3)
}

/// A count as a number to divide; exact up to four thousand million, which no run reaches.
fn count_f64(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The figures of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    /// Deliveries, each counted once.
    pub(crate) sent: u64,
    /// Requests beyond the first of a delivery.
    pub(crate) resent: u64,
    pub(crate) seconds: f64,
    /// Requests a second.
    pub(crate) per_second: f64,
    /// Requests by status, or by why there was none.
    pub(crate) statuses: BTreeMap<String, u64>,
    /// Deliveries by outcome.
    pub(crate) outcomes: BTreeMap<String, u64>,
    /// Deliveries whose last answer was not 2xx.
    pub(crate) not_acknowledged: u64,
    pub(crate) p50_ms: f64,
    pub(crate) p95_ms: f64,
    pub(crate) p99_ms: f64,
}

impl Summary {
    /// For people.
    pub(super) fn text(&self) -> String {
        let resent = match self.resent {
            0 => String::new(),
            resent => format!(", {resent} of them again"),
        };
        let list = |counts: &BTreeMap<String, u64>| {
            let all: Vec<_> = counts.iter().map(|(k, n)| format!("{k}: {n}")).collect();
            if all.is_empty() { "none".to_owned() } else { all.join(", ") }
        };
        format!(
            "sent             {}{resent}\nanswers          {}\noutcomes         {}\n\
             not acknowledged {}\nrate             {:.0}/s over {:.1} s\n\
             answered within  p50 {:.1} ms, p95 {:.1} ms, p99 {:.1} ms",
            self.sent + self.resent,
            list(&self.statuses),
            list(&self.outcomes),
            self.not_acknowledged,
            self.per_second,
            self.seconds,
            self.p50_ms,
            self.p95_ms,
            self.p99_ms,
        )
    }
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;

    use super::*;

    fn answer(status: u16, outcome: Option<&str>) -> (Answer, Duration) {
        let status = StatusCode::from_u16(status).expect("a status");
        (Answer::Status(status, outcome.map(str::to_owned)), Duration::from_millis(2))
    }

    #[test]
    fn a_delivery_that_was_sent_again_counts_once_with_its_last_answer() {
        let mut tally = Tally::default();
        let answers = vec![answer(503, None), answer(200, Some("processed"))];
        tally.add(Delivered { answers });
        let summary = tally.summary(Duration::from_secs(1));
        assert_eq!((summary.sent, summary.resent, summary.not_acknowledged), (1, 1, 0));
        assert_eq!(summary.statuses, BTreeMap::from([("200".into(), 1), ("503".into(), 1)]));
        assert_eq!(summary.outcomes, BTreeMap::from([("processed".into(), 1)]));
    }

    #[test]
    fn a_percentile_is_an_answer_that_was_given() {
        let sorted: Vec<_> = (1..=100).map(|ms| ms * 1000).collect();
        let all = [50, 95, 99].map(|percent| percentile(&sorted, percent).to_string());
        assert_eq!(all, ["50", "95", "99"]);
        assert_eq!(percentile(&[], 50).to_string(), "0");
    }
}
