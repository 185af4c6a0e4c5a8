//! Prometheus metrics. Every label is of a closed set: endpoints of the configuration, outcomes,
//! reasons, statuses.
//!
//! It must never take a label from a request: a stranger could make one a request.

mod edge;
mod work;

use std::{collections::HashMap, sync::Arc, time::Duration};

use ichido::{Outcome, Taken};
use ichido_verify::Rejection;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

pub(crate) use edge::{Edge, Ended};
use work::Work;

/// From half a millisecond (a duplicate) to 8 s (the deadline of receive), doubling.
const LATENCY_BUCKETS: (f64, f64, u16) = (0.0005, 2.0, 15);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    endpoint: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    endpoint: String,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByEndpoint {
    endpoint: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByStatus {
    status: u16,
}

/// The counters of one endpoint, looked up once so that a request only adds.
#[derive(Debug)]
pub(crate) struct EndpointMetrics {
    outcomes: [Counter; 4],
    conflicts: Counter,
    repeated_bodies: Counter,
    rejected: HashMap<Rejection, Counter>,
    failed: Family<ByReason, Counter>,
    latency: Histogram,
    /// How far our clock seems to be ahead, in seconds.
    pub(crate) clock_off: Gauge,
    /// The endpoint's name.
    pub(crate) name: String,
}

/// All metrics of the process.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<ByStatus, Counter>,
    endpoints: HashMap<Arc<str>, Arc<EndpointMetrics>>,
    /// What happens before a request has an endpoint.
    pub(crate) edge: Edge,
    /// What workers do.
    pub(crate) work: Work,
    ready: Gauge,
}

const OUTCOMES: [Outcome; 4] =
    [Outcome::Processed, Outcome::Accepted, Outcome::Duplicate, Outcome::Ignored];

impl Metrics {
    /// Registers everything, with a zero for each endpoint and outcome, so that a rate can be
    /// taken from the first one on.
    pub(crate) fn new<'a>(endpoints: impl IntoIterator<Item = &'a Arc<str>>) -> Self {
        let mut registry = Registry::with_prefix("ichido");
        let families = Families::new(&mut registry);
        let requests = Family::<ByStatus, Counter>::default();
        let ready = Gauge::default();
        registry.register("http_requests", "Requests answered, by status", requests.clone());
        registry.register("ready", "1 when /readyz says so", ready.clone());
        let of = |name: &Arc<str>| (name.clone(), Arc::new(families.of(name)));
        let endpoints: HashMap<_, _> = endpoints.into_iter().map(of).collect();
        let edge = Edge::new(&mut registry);
        let work = Work::new(&mut registry, endpoints.keys());
        Self { registry, requests, endpoints, edge, work, ready }
    }

    /// The counters of an endpoint, if it is configured.
    pub(crate) fn endpoint(&self, name: &str) -> Option<&Arc<EndpointMetrics>> {
        self.endpoints.get(name)
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, status: u16) {
        self.requests.get_or_create(&ByStatus { status }).inc();
    }

    /// Remembers what `/readyz` said last.
    pub(crate) fn set_ready(&self, ready: bool) {
        self.ready.set(i64::from(ready));
    }

    /// The text that Prometheus scrapes.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a String cannot fail");
        text
    }
}

/// What is counted for each endpoint.
struct Families {
    events: Family<ByOutcome, Counter>,
    conflicts: Family<ByEndpoint, Counter>,
    repeated_bodies: Family<ByEndpoint, Counter>,
    rejected: Family<ByReason, Counter>,
    failed: Family<ByReason, Counter>,
    latency: Family<ByEndpoint, Histogram>,
    clock_off: Family<ByEndpoint, Gauge>,
}

impl Families {
    fn new(registry: &mut Registry) -> Self {
        let all = Self {
            events: Family::default(),
            conflicts: Family::default(),
            repeated_bodies: Family::default(),
            rejected: Family::default(),
            failed: Family::default(),
            latency: Family::new_with_constructor(new_latency),
            clock_off: Family::default(),
        };
        registry.register("events", "Events received, by outcome", all.events.clone());
        registry.register("conflicts", "Same event key, other content", all.conflicts.clone());
        let repeated = "Events taken whose body came before, under another event id";
        registry.register("repeated_bodies", repeated, all.repeated_bodies.clone());
        let rejected = "Deliveries not believed, by reason";
        registry.register("rejected", rejected, all.rejected.clone());
        registry.register("receive_failed", "Deliveries not taken: 5xx", all.failed.clone());
        let latency = "From the whole body to the committed receipt";
        registry.register("receive_seconds", latency, all.latency.clone());
        let clock_off = "Our clock ahead of signed times, where all are refused for it; else 0";
        registry.register("clock_off_seconds", clock_off, all.clock_off.clone());
        all
    }

    fn of(&self, name: &str) -> EndpointMetrics {
        let by = |outcome: Outcome| {
            let endpoint = name.to_owned();
            self.events.get_or_create_owned(&ByOutcome { endpoint, outcome: outcome.as_str() })
        };
        let by_reason = |reason: &Rejection| {
            let labels = ByReason { endpoint: name.to_owned(), reason: reason.as_str() };
            (*reason, self.rejected.get_or_create_owned(&labels))
        };
        let here = ByEndpoint { endpoint: name.to_owned() };
        EndpointMetrics {
            outcomes: OUTCOMES.map(by),
            conflicts: self.conflicts.get_or_create_owned(&here),
            repeated_bodies: self.repeated_bodies.get_or_create_owned(&here),
            rejected: Rejection::ALL.iter().map(by_reason).collect(),
            failed: self.failed.clone(),
            latency: self.latency.get_or_create_owned(&here),
            clock_off: self.clock_off.get_or_create_owned(&here),
            name: name.to_owned(),
        }
    }
}

impl EndpointMetrics {
    /// Counts the events of a committed delivery.
    pub(crate) fn taken(&self, taken: &[Taken], took: Duration) {
        self.latency.observe(took.as_secs_f64());
        for event in taken {
            let at = OUTCOMES.iter().position(|outcome| *outcome == event.outcome);
            self.outcomes[at.expect("all outcomes are listed")].inc();
            if event.conflict {
                self.conflicts.inc();
            }
            if event.repeated {
                self.repeated_bodies.inc();
            }
        }
    }

    /// Counts a delivery that was not believed.
    pub(crate) fn rejected(&self, reason: Rejection) {
        if let Some(counter) = self.rejected.get(&reason) {
            counter.inc();
        }
    }

    /// Counts a delivery that was not taken for a reason of ours.
    pub(crate) fn failed(&self, reason: &'static str) {
        self.failed.get_or_create(&ByReason { endpoint: self.name.clone(), reason }).inc();
    }
}

fn new_latency() -> Histogram {
    let (start, factor, length) = LATENCY_BUCKETS;
    Histogram::new(exponential_buckets(start, factor, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_endpoint_starts_with_a_zero_for_each_outcome() {
        let name: Arc<str> = "billing".into();
        let text = Metrics::new([&name]).text();
        let line = "ichido_events_total{endpoint=\"billing\",outcome=\"duplicate\"} 0";
        assert!(text.contains(line), "{text}");
    }
}
