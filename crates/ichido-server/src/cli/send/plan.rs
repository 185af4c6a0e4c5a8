//! Which event each delivery of a `send` carries, and its signed request.
//!
//! A repeat must never be a copy of the first request: real senders sign anew, with a new time.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use ichido_verify::{Request, Timestamp, Verifier};

use super::{
    Args,
    body::{Bodies, Places},
    target::Target,
};

/// When an event with an id of the user's own says that it was created (1 January 2026), in Unix
/// seconds: always the same, so that a second `send` of that id is a retry and not a conflict.
const CREATED: i64 = 1_767_225_600;

/// The deliveries of one `send`, given out one by one.
pub(super) struct Plan {
    verifier: Verifier,
    bodies: Bodies,
    /// What every id begins with; the whole id when there is one event.
    id: String,
    /// Whether a single event of the user's own body keeps the id it has.
    keep_id: bool,
    count: u64,
    duplicate_percent: u64,
    next: AtomicU64,
}

/// One event: what it takes to sign a delivery of it.
pub(super) struct Event {
    id: String,
    body: Bytes,
}

impl Plan {
    /// Reads the body. Fails with the fix named.
    pub(super) fn new(args: &Args, target: Target) -> anyhow::Result<Self> {
        // Asked once: a repeat that is made a second later still has the bytes of the first.
        let created = if args.id.is_some() { CREATED } else { Timestamp::now().as_second() };
        let places = Places::of(&target.provider, target.settings.generic.as_ref());
        let (event_type, data) = (args.event_type.clone(), args.data.as_deref());
        let bodies = Bodies::new(&target.provider, places, event_type, data, created)?;
        let id = args.id.clone().unwrap_or_else(|| format!("evt_{:012x}", fastrand::u64(..) >> 16));
        let plan = Self {
            verifier: target.verifier,
            bodies,
            keep_id: args.id.is_none() && args.count == 1,
            id,
            count: args.count,
            duplicate_percent: args.duplicate_percent,
            next: AtomicU64::new(0),
        };
        // What cannot be signed is told before anything is sent.
        plan.sign(&plan.event(0)?, Timestamp::now())?;
        Ok(plan)
    }

    /// The number of the event that the next delivery carries; `None` when all are given out.
    pub(super) fn next(&self) -> Option<u64> {
        let delivery = self.next.fetch_add(1, Ordering::Relaxed);
        (delivery < self.count).then(|| event_of(delivery, self.duplicate_percent))
    }

    /// The event of that number.
    pub(super) fn event(&self, number: u64) -> anyhow::Result<Event> {
        let id = match self.count {
            1 => self.id.clone(),
            _ => format!("{}_{number}", self.id),
        };
        Ok(Event { body: self.bodies.body(&id, self.keep_id)?, id })
    }

    /// A delivery of `event`, signed at `now`.
    pub(super) fn sign(&self, event: &Event, now: Timestamp) -> anyhow::Result<Request> {
        let mut request =
            Request { method: "POST".into(), body: event.body.clone(), ..Request::default() };
        self.verifier.sign(&mut request, &event.id, self.bodies.event_type(), now)?;
        Ok(request)
    }
}

/// Spreads the repeats evenly: of each hundred deliveries, `percent` carry an earlier event.
fn event_of(delivery: u64, percent: u64) -> u64 {
    let repeats = |deliveries: u64| deliveries * percent / 100;
    let firsts = delivery - repeats(delivery);
    if repeats(delivery + 1) > repeats(delivery) && firsts > 0 {
        return fastrand::u64(..firsts);
    }
    firsts
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::event_of;

    #[test]
    fn so_many_of_a_hundred_deliveries_repeat_an_earlier_event() {
        for percent in [0, 1, 10, 90, 99] {
            let mut seen = BTreeSet::new();
            let fresh = (0..1000).filter(|n| seen.insert(event_of(*n, percent))).count() as u64;
            assert_eq!(fresh, 1000 - 10 * percent, "{percent} %");
        }
    }
}
