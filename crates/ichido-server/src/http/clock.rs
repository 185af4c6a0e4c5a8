//! Whether it is our own clock that is wrong.
//!
//! A delivery whose signature is good and whose time is not is refused as any other. But when
//! several in a row are all about as far away, the sender is hardly to blame, and we say so. It
//! must never take a delivery for that, and never send the load balancer elsewhere: who replays
//! old deliveries could have us do that.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ichido_verify::Timestamp;
use tracing::{error, info};

use crate::metrics::EndpointMetrics;

/// So many different signed times in a row, none of them good, are no accident.
const ENOUGH: usize = 3;
/// "About as far": between the nearest and the farthest, in seconds. Deliveries take a while.
const SPREAD_SECONDS: u64 = 60;
/// What is older says nothing any more.
const FORGET: Duration = Duration::from_mins(10);

/// What the signed times of each endpoint say about our clock.
#[derive(Debug)]
pub(super) struct Clock {
    endpoints: HashMap<Arc<str>, Mutex<Evidence>>,
    /// Endpoints with evidence, so that a good delivery rarely looks for any.
    doubted: AtomicUsize,
}

/// Times out of tolerance since the last one within.
#[derive(Debug, Default)]
struct Evidence {
    /// When each was signed, and how far we were ahead, in seconds.
    times: Vec<(i64, i64)>,
    last: Option<Instant>,
    told: bool,
}

impl Evidence {
    /// How far we seem to be ahead, in seconds; `None` without enough evidence.
    fn ahead(&self) -> Option<i64> {
        let fresh = self.last.is_some_and(|last| last.elapsed() < FORGET);
        (fresh && self.times.len() >= ENOUGH).then(|| self.times[self.times.len() / 2].1)
    }

    fn add(&mut self, signed: i64, ahead: i64) {
        let forgotten = self.last.is_some_and(|last| last.elapsed() >= FORGET);
        let near = self.times.iter().all(|(_, other)| other.abs_diff(ahead) <= SPREAD_SECONDS);
        if forgotten || !near {
            *self = Self::default();
        }
        self.last = Some(Instant::now());
        // One delivery again and again is a replay.
        if self.times.len() < ENOUGH && self.times.iter().all(|(other, _)| *other != signed) {
            self.times.push((signed, ahead));
        }
    }
}

impl Clock {
    /// A clock that nobody doubts.
    pub(super) fn new<'a>(endpoints: impl IntoIterator<Item = &'a Arc<str>>) -> Self {
        let endpoints = endpoints.into_iter().map(|name| (name.clone(), Mutex::default()));
        Self { endpoints: endpoints.collect(), doubted: AtomicUsize::new(0) }
    }

    fn evidence(&self, endpoint: &str) -> Option<MutexGuard<'_, Evidence>> {
        let evidence = self.endpoints.get(endpoint)?;
        Some(evidence.lock().expect("nothing panics while it holds this lock"))
    }

    /// A delivery was refused for its time alone.
    pub(super) fn refused(&self, metrics: &EndpointMetrics, signed_at: Timestamp) {
        let Some(mut evidence) = self.evidence(&metrics.name) else { return };
        if evidence.last.is_none() {
            self.doubted.fetch_add(1, Ordering::Relaxed);
        }
        let (signed, now) = (signed_at.as_second(), Timestamp::now().as_second());
        evidence.add(signed, now.saturating_sub(signed));
        let ahead = evidence.ahead();
        metrics.clock_off.set(ahead.unwrap_or(0));
        if let Some(ahead) = ahead
            && !std::mem::replace(&mut evidence.told, true)
        {
            error!(endpoint = metrics.name, "clock: {}", says(ahead));
        }
    }

    /// A delivery was verified, its time too, if it has one.
    pub(super) fn agrees(&self, metrics: &EndpointMetrics) {
        if self.doubted.load(Ordering::Relaxed) == 0 {
            return;
        }
        let Some(mut evidence) = self.evidence(&metrics.name) else { return };
        if evidence.last.is_some() {
            self.doubted.fetch_sub(1, Ordering::Relaxed);
            metrics.clock_off.set(0);
            if evidence.told {
                info!(endpoint = metrics.name, "clock: signed times are good again");
            }
            *evidence = Evidence::default();
        }
    }

    /// For `/readyz`: a line for each endpoint whose senders disagree with our clock.
    pub(super) fn lines(&self) -> String {
        let mut lines: Vec<_> = self
            .endpoints
            .keys()
            .filter_map(|name| {
                let ahead = self.evidence(name)?.ahead()?;
                Some(format!("clock: endpoint {name}: {}\n", says(ahead)))
            })
            .collect();
        lines.sort();
        lines.concat()
    }
}

fn says(ahead: i64) -> String {
    let (seconds, way) = (ahead.abs(), if ahead < 0 { "behind" } else { "ahead" });
    format!(
        "this machine seems to be {seconds} s {way} of its senders, whose deliveries are refused \
         for it: check its time synchronisation"
    )
}
