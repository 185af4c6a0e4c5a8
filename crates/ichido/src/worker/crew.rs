//! The loop of a crew: wait for a slot, claim, start; wait where nothing is due.
//!
//! It must never hold a claimed event that it does not start, nor ask an idle database more than
//! a few times a second.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};
use tracing::warn;

use super::{
    Hand,
    slots::{CrewSlots, Free},
    tell,
};
use crate::{Claim, Error, Lane, Store};

/// How soon an idle crew asks again at first, and at the latest. Between them the wait doubles:
/// what this process stores itself is told at once, so that only other processes' events wait.
const IDLE: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
/// While a backlog waits, how long a claim waits for more slots: one for many events costs less.
const MORE_SLOTS: Duration = Duration::from_millis(5);
/// The order of lanes in turn: fresh ones first, and yet none of the others waits for ever.
const TURNS: [[Lane; 3]; 8] = {
    use Lane::{Backfill, Fresh, Retry};
    const USUAL: [Lane; 3] = [Fresh, Retry, Backfill];
    const OLD: [Lane; 3] = [Retry, Fresh, Backfill];
    [USUAL, USUAL, USUAL, OLD, USUAL, USUAL, USUAL, [Backfill, Retry, Fresh]]
};

pub(super) struct Crew<S: Store> {
    hand: Arc<Hand<S>>,
    queues: Vec<Arc<str>>,
    lease: Duration,
    slots: CrewSlots,
    stopped: watch::Receiver<bool>,
    arrivals: watch::Receiver<()>,
    turn: usize,
    /// The last claim brought all that was asked for.
    backlog: bool,
    idle: Duration,
    /// The last claim failed: said once.
    failing: bool,
}

impl<S: Store> Crew<S> {
    pub(super) fn new(
        hand: Arc<Hand<S>>,
        queues: Vec<Arc<str>>,
        lease: Duration,
        slots: CrewSlots,
        stopped: watch::Receiver<bool>,
    ) -> Self {
        let arrivals = hand.store().arrivals();
        let (turn, backlog, idle, failing) = (0, false, IDLE[0], false);
        Self { hand, queues, lease, slots, stopped, arrivals, turn, backlog, idle, failing }
    }

    /// Works until it is stopped and what it started has ended.
    pub(super) async fn run(mut self) {
        let mut started = JoinSet::new();
        while let Some(free) = self.free().await {
            while let Some(ended) = started.try_join_next() {
                tell(ended);
            }
            self.arrivals.mark_unchanged();
            match self.claim(free, &mut started).await {
                Ok(0) => {
                    self.failing = false;
                    self.wait().await;
                }
                Ok(_) => {
                    self.failing = false;
                    self.idle = IDLE[0];
                }
                Err(error) => {
                    if !self.failing {
                        warn!(%error, "no work can be claimed; asking again until it can");
                    }
                    self.failing = true;
                    self.wait().await;
                }
            }
        }
        while let Some(ended) = started.join_next().await {
            tell(ended);
        }
    }

    /// The slots that are free, at least one; `None` when it is time to stop.
    async fn free(&mut self) -> Option<Free> {
        if *self.stopped.borrow() {
            return None;
        }
        let mut free = tokio::select! {
            free = self.slots.one() => free,
            _ = self.stopped.wait_for(|stopped| *stopped) => return None,
        };
        self.slots.fill(&mut free);
        while self.backlog && free.len() < self.slots.worth() {
            let Ok(more) = timeout(MORE_SLOTS, self.slots.one()).await else { break };
            free.extend(more);
            self.slots.fill(&mut free);
        }
        Some(free)
    }

    /// Claims for the slots and starts what it got. Nothing interrupts it: what was claimed is
    /// started, or given back where it is time to stop.
    async fn claim(&mut self, mut free: Free, tasks: &mut JoinSet<()>) -> Result<usize, Error> {
        let again = self.slots.again();
        let (lanes, most) = match again {
            0 => (&TURNS[0][..1], free.len()),
            _ => (&TURNS[self.turn % TURNS.len()][..], free.len().min(again)),
        };
        self.turn = self.turn.wrapping_add(1);
        let claim = Claim { queues: &self.queues, lanes, most, lease: self.lease };
        let claimed = self.hand.store().claim(&claim).await?;
        let count = claimed.len();
        self.backlog = count == most;
        let stopped = *self.stopped.borrow();
        for claimed in claimed {
            if stopped {
                self.hand.release(&claimed, Duration::ZERO).await;
            } else if let Some(held) = free.pop() {
                let slot = self.slots.take(held, claimed.lane);
                tasks.spawn(self.hand.clone().work(claimed, slot));
            }
        }
        Ok(count)
    }

    /// Waits until something may be due. What came in since the claim is not missed.
    async fn wait(&mut self) {
        let jittered = self.idle.mul_f64(0.75 + fastrand::f64() / 2.0);
        self.idle = (self.idle * 2).min(IDLE[1]);
        tokio::select! {
            () = sleep(jittered) => {}
            // Its sender is the store, which we hold.
            _ = self.arrivals.changed(), if !self.failing => self.idle = IDLE[0],
            _ = self.stopped.wait_for(|stopped| *stopped) => {}
        }
    }
}
