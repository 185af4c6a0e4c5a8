//! What came of a run, counted while it runs and written as one JSON object.
//!
//! It must never leave out what was not answered: a server that drops requests would look fast.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    time::Duration,
};

use hdrhistogram::Histogram;
use serde::Serialize;
use tokio::time::Instant;

/// Latencies from a microsecond to two minutes, to three digits.
const LATENCY_US: (u64, u64, u8) = (1, 120_000_000, 3);

/// Counts of one thread.
pub(crate) struct Tally {
    statuses: RefCell<BTreeMap<u16, u64>>,
    latency: RefCell<Histogram<u64>>,
    sent: Cell<u64>,
    sent_bytes: Cell<u64>,
    broken: Cell<u64>,
    unsent: Cell<u64>,
    last: Cell<Option<Instant>>,
}

/// Microseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Latency {
    mean: f64,
    p50: u64,
    p90: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

/// What the run gave.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Requests that were sent.
    requests: u64,
    /// Requests answered with the expected status.
    ok: u64,
    statuses: BTreeMap<u16, u64>,
    /// Connections that broke with a request on them.
    broken: u64,
    /// Sent and not answered when the run was ended.
    unanswered: u64,
    /// Due and never sent, since no connection was free.
    unsent: u64,
    /// Different events among the requests.
    events: u64,
    /// From the start to the last answer.
    seconds: f64,
    /// Answers with the expected status a second.
    rate: f64,
    /// At a fixed rate: what was asked for.
    offered: Option<f64>,
    latency_us: Latency,
    payload_bytes: usize,
    /// A request with its head, on average.
    request_bytes: u64,
    /// Processor time of this generator for a request.
    cpu_us: f64,
}

/// What the report needs to know beside the counts.
pub(crate) struct Run {
    pub(crate) start: Instant,
    pub(crate) expected: u16,
    pub(crate) offered: Option<f64>,
    pub(crate) events: u64,
    pub(crate) payload_bytes: usize,
    pub(crate) cpu: Duration,
}

impl Tally {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let (low, high, digits) = LATENCY_US;
        Ok(Self {
            statuses: RefCell::default(),
            latency: RefCell::new(Histogram::new_with_bounds(low, high, digits)?),
            sent: Cell::new(0),
            sent_bytes: Cell::new(0),
            broken: Cell::new(0),
            unsent: Cell::new(0),
            last: Cell::new(None),
        })
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.sent.set(self.sent.get() + 1);
        self.sent_bytes.set(self.sent_bytes.get() + bytes as u64);
    }

    pub(crate) fn answered(&self, status: u16, took: Duration) {
        *self.statuses.borrow_mut().entry(status).or_default() += 1;
        self.took(took);
        self.last.set(Some(Instant::now()));
    }

    /// It was due `ago` and never sent, so its latency is longer than that.
    pub(crate) fn unsent(&self, ago: Duration) {
        self.unsent.set(self.unsent.get() + 1);
        self.took(ago);
    }

    fn took(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.latency.borrow_mut().saturating_record(micros);
    }

    pub(crate) fn broken(&self) {
        self.broken.set(self.broken.get() + 1);
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of a run are far below 2^52")]
    pub(crate) fn report(&self, run: &Run) -> Report {
        let statuses = self.statuses.borrow().clone();
        let latency = self.latency.borrow();
        let seconds = self.last.get().unwrap_or(run.start) - run.start;
        let seconds = seconds.as_secs_f64();
        let (requests, broken) = (self.sent.get(), self.broken.get());
        let answered: u64 = statuses.values().sum();
        let ok = statuses.get(&run.expected).copied().unwrap_or(0);
        Report {
            requests,
            ok,
            broken,
            unanswered: requests - answered - broken,
            unsent: self.unsent.get(),
            events: run.events,
            seconds,
            rate: if ok == 0 { 0.0 } else { ok as f64 / seconds },
            offered: run.offered,
            latency_us: Latency {
                mean: latency.mean(),
                p50: latency.value_at_quantile(0.5),
                p90: latency.value_at_quantile(0.9),
                p99: latency.value_at_quantile(0.99),
                p999: latency.value_at_quantile(0.999),
                max: latency.max(),
            },
            payload_bytes: run.payload_bytes,
            request_bytes: self.sent_bytes.get() / requests.max(1),
            cpu_us: run.cpu.as_secs_f64() * 1e6 / requests.max(1) as f64,
            statuses,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_answered_as_expected_is_shown_and_does_not_count_as_speed() {
        let tally = Tally::new().expect("made");
        let start = Instant::now() - Duration::from_secs(1);
        for status in [200, 200, 503] {
            tally.sent(10);
            tally.answered(status, Duration::from_millis(1));
        }
        tally.sent(10);
        tally.sent(10);
        tally.broken();
        let run = Run {
            start,
            expected: 200,
            offered: None,
            events: 5,
            payload_bytes: 10,
            cpu: Duration::ZERO,
        };
        let report = tally.report(&run);
        assert_eq!((report.requests, report.ok), (5, 2));
        assert_eq!((report.broken, report.unanswered), (1, 1));
        assert!(report.rate <= 2.0 && report.rate > 1.9, "{}", report.rate);
    }
}
