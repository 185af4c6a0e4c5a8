//! Metrics of workers: attempts by what became of them, and how long they took.
//!
//! It must never take a label from an event: endpoints are those of the configuration.

use std::{collections::HashMap, sync::Arc};

use ichido::{Ended, WorkOutcome};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use super::ByEndpoint;

/// From a millisecond to 15 minutes (the longest handler timeout), in steps of three.
const BUCKETS: (f64, f64, u16) = (0.001, 3.0, 14);
const OUTCOMES: [WorkOutcome; 6] = [
    WorkOutcome::Processed,
    WorkOutcome::Retry,
    WorkOutcome::Review,
    WorkOutcome::Lost,
    WorkOutcome::Released,
    WorkOutcome::Unknown,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    endpoint: String,
    outcome: &'static str,
}

/// What is counted of one endpoint's attempts.
#[derive(Debug)]
struct Attempts {
    outcomes: [Counter; 6],
    seconds: Histogram,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Work(HashMap<Arc<str>, Attempts>);

impl Work {
    pub(super) fn new<'a>(
        registry: &mut Registry,
        endpoints: impl Iterator<Item = &'a Arc<str>>,
    ) -> Self {
        let attempts = Family::<ByOutcome, Counter>::default();
        let seconds = Family::<ByEndpoint, Histogram>::new_with_constructor(histogram);
        registry.register("attempts", "Attempts of workers, by outcome", attempts.clone());
        let took = "From the start of an attempt to its end on record";
        registry.register("attempt_seconds", took, seconds.clone());
        let of = |name: &Arc<str>| {
            let endpoint = name.to_string();
            let outcomes = OUTCOMES.map(|outcome| {
                let outcome = outcome.as_str();
                attempts.get_or_create_owned(&ByOutcome { endpoint: endpoint.clone(), outcome })
            });
            let seconds = seconds.get_or_create_owned(&ByEndpoint { endpoint });
            (name.clone(), Attempts { outcomes, seconds })
        };
        Self(endpoints.map(of).collect())
    }

    /// Counts an attempt that ended.
    pub(crate) fn ended(&self, ended: &Ended<'_>) {
        let Some(attempts) = self.0.get(&ended.event.endpoint) else { return };
        let at = OUTCOMES.iter().position(|outcome| *outcome == ended.outcome);
        attempts.outcomes[at.expect("all outcomes are listed")].inc();
        attempts.seconds.observe(ended.took.as_secs_f64());
    }
}

fn histogram() -> Histogram {
    let (start, factor, length) = BUCKETS;
    Histogram::new(exponential_buckets(start, factor, length))
}
