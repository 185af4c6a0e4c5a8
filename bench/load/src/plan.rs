//! Which event is next, when it is due, and when there are no more.
//!
//! It must never let a slow answer move the time at which a later event was due: latency counts
//! from there, so that a stall shows in every event that had to wait for it.

use std::{cell::Cell, time::Duration};

use tokio::{sync::Semaphore, time::Instant};

/// A repeat is one of this many events before the newest.
const REPEATS_FROM: u64 = 1000;
/// At a fixed rate, how long after the end a turn that was due before it may still be sent.
const LATE_MAX: Duration = Duration::from_secs(1);

/// How much is sent, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amount {
    /// Requests a second; `None`: as fast as answers come.
    pub(crate) rate: Option<f64>,
    pub(crate) seconds: f64,
    /// Stop after this many requests.
    pub(crate) count: Option<u64>,
    /// Of a hundred requests, how many repeat an earlier event.
    pub(crate) duplicates: u8,
}

/// One request that is to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) event: u64,
    /// When it should be sent: from here its latency counts.
    pub(crate) due: Instant,
}

/// Shared by the connections of one thread.
pub(crate) struct Plan {
    amount: Amount,
    start: Instant,
    turns: Cell<u64>,
    events: Cell<u64>,
    /// At a fixed rate: turns that are due and not taken yet.
    due: Semaphore,
}

impl Plan {
    pub(crate) fn new(amount: Amount, start: Instant) -> Self {
        Self { amount, start, turns: Cell::new(0), events: Cell::new(0), due: Semaphore::new(0) }
    }

    /// Different events so far.
    pub(crate) fn events(&self) -> u64 {
        self.events.get()
    }

    /// True at a fixed rate.
    pub(crate) fn is_paced(&self) -> bool {
        self.amount.rate.is_some()
    }

    /// When the turns were due that nobody took in time: the other side was that slow.
    pub(crate) fn untaken(&self) -> impl Iterator<Item = Instant> {
        let all = if self.is_paced() { self.turns_in_all() } else { 0 };
        (self.turns.get()..all).filter_map(|turn| self.due_at(turn))
    }

    /// After this no request is sent.
    pub(crate) fn end(&self) -> Instant {
        let late = if self.is_paced() { LATE_MAX } else { Duration::ZERO };
        self.start + Duration::from_secs_f64(self.amount.seconds) + late
    }

    /// The next request, once it is due.
    pub(crate) async fn next(&self) -> Option<Turn> {
        if self.is_paced() {
            self.due.acquire().await.ok()?.forget();
        }
        let now = Instant::now();
        let turn = self.turns.get();
        if now >= self.end() || turn >= self.turns_in_all() {
            return None;
        }
        self.turns.set(turn + 1);
        let due = self.due_at(turn).unwrap_or(now);
        Some(Turn { event: self.event(), due })
    }

    fn event(&self) -> u64 {
        let newest = self.events.get();
        if newest > 0 && fastrand::u8(..100) < self.amount.duplicates {
            return fastrand::u64(newest.saturating_sub(REPEATS_FROM)..newest);
        }
        self.events.set(newest + 1);
        newest
    }

    /// At a fixed rate: when turn number `turn` is due.
    fn due_at(&self, turn: u64) -> Option<Instant> {
        let rate = self.amount.rate?;
        #[expect(clippy::cast_precision_loss, reason = "a run has far fewer than 2^52 turns")]
        let after = turn as f64 / rate;
        Some(self.start + Duration::from_secs_f64(after))
    }

    fn turns_in_all(&self) -> u64 {
        let count = self.amount.count.unwrap_or(u64::MAX);
        let Some(rate) = self.amount.rate else { return count };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        let by_time = (rate * self.amount.seconds) as u64;
        count.min(by_time)
    }

    /// At a fixed rate: hands out what is due by `now`, of which `released` went before; says how
    /// many are out by now, and when the next one is due, if there is one.
    pub(crate) fn release(&self, released: u64, now: Instant) -> (u64, Option<Instant>) {
        let all = self.turns_in_all();
        let mut out = released;
        while out < all && self.due_at(out).is_some_and(|due| due <= now) {
            out += 1;
        }
        self.due.add_permits(usize::try_from(out - released).unwrap_or(0));
        (out, self.due_at(out).filter(|_| out < all))
    }

    /// After the last turn: wakes who waits for another, to find that there is none.
    pub(crate) fn finish(&self, connections: u16) {
        self.due.add_permits(connections.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOR_LONG: Amount = Amount { rate: None, seconds: 60.0, count: None, duplicates: 0 };

    #[tokio::test]
    async fn a_late_turn_was_due_when_it_was_due() {
        let start = Instant::now() - Duration::from_secs(1);
        let plan = Plan::new(Amount { rate: Some(100.0), ..FOR_LONG }, start);
        let (out, _) = plan.release(0, start + Duration::from_millis(25));
        assert_eq!(out, 3);
        for number in 0..3 {
            let turn = plan.next().await.expect("due");
            assert_eq!(turn.due, start + Duration::from_millis(10) * number);
        }
    }

    #[test]
    fn a_fixed_rate_hands_out_as_many_turns_as_it_says() {
        let start = Instant::now();
        let amount = Amount { rate: Some(100.0), seconds: 2.0, ..FOR_LONG };
        let plan = Plan::new(amount, start);
        let (out, next) = plan.release(0, start + Duration::from_secs(9));
        assert_eq!((out, next), (200, None));
        assert_eq!(plan.untaken().count(), 200);
    }

    #[tokio::test]
    async fn a_share_of_the_requests_repeats_an_earlier_event() {
        let amount = Amount { count: Some(10_000), duplicates: 90, ..FOR_LONG };
        let plan = Plan::new(amount, Instant::now());
        while let Some(turn) = plan.next().await {
            assert!(turn.event < plan.events());
        }
        assert!((800..1200).contains(&plan.events()), "{} events", plan.events());
    }

    #[tokio::test]
    async fn after_the_last_turn_nobody_waits() {
        let start = Instant::now();
        let plan = Plan::new(Amount { rate: Some(1000.0), seconds: 0.003, ..FOR_LONG }, start);
        plan.release(0, start + Duration::from_secs(1));
        plan.finish(2);
        for _ in 0..3 {
            assert!(plan.next().await.is_some());
        }
        assert!(plan.next().await.is_none());
        assert!(plan.next().await.is_none());
    }

    #[tokio::test]
    async fn a_count_ends_the_run() {
        let plan = Plan::new(Amount { count: Some(2), ..FOR_LONG }, Instant::now());
        assert!(plan.next().await.is_some());
        assert!(plan.next().await.is_some());
        assert!(plan.next().await.is_none());
    }
}
