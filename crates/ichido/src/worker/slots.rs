//! Who may start: a slot for each handler that runs, of all crews together and of one.
//!
//! It must never let what came back crowd out what is new: a share of the slots is kept for fresh
//! events.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Lane;

/// Of so many slots one is kept for fresh events, where there are as many.
const FRESH_SHARE: usize = 4;

/// The slots of a process.
pub(super) struct Slots {
    all: Arc<Semaphore>,
    most: usize,
}

/// The slots of one crew.
pub(super) struct CrewSlots {
    all: Arc<Semaphore>,
    own: Arc<Semaphore>,
    /// What retries and backfills may take of `own`.
    again: Arc<Semaphore>,
    most: usize,
}

/// Held while a handler runs.
pub(super) struct Slot {
    _held: [OwnedSemaphorePermit; 2],
    _again: Option<OwnedSemaphorePermit>,
}

/// Slots that nobody fills yet.
pub(super) type Free = Vec<[OwnedSemaphorePermit; 2]>;

impl Slots {
    pub(super) fn new(most: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(most)), most }
    }

    /// The slots of a crew that takes at most so many.
    pub(super) fn within(&self, most: usize) -> CrewSlots {
        let most = most.min(self.most);
        let again = most - most / FRESH_SHARE;
        CrewSlots {
            all: self.all.clone(),
            own: Arc::new(Semaphore::new(most)),
            again: Arc::new(Semaphore::new(again)),
            most,
        }
    }
}

impl CrewSlots {
    /// How many make a claim worth its transaction, while a backlog waits.
    pub(super) fn worth(&self) -> usize {
        self.most.div_ceil(FRESH_SHARE)
    }

    /// Waits for one slot.
    pub(super) async fn one(&self) -> Free {
        let own = self.own.clone().acquire_owned().await;
        let all = self.all.clone().acquire_owned().await;
        own.into_iter().zip(all).map(|(own, all)| [own, all]).collect()
    }

    /// Adds every slot that is free.
    pub(super) fn fill(&self, free: &mut Free) {
        while let Ok(own) = self.own.clone().try_acquire_owned() {
            let Ok(all) = self.all.clone().try_acquire_owned() else { break };
            free.push([own, all]);
        }
    }

    /// How many events that are not fresh may start now.
    pub(super) fn again(&self) -> usize {
        self.again.available_permits()
    }

    /// Fills a slot with an event of this lane.
    pub(super) fn take(&self, held: [OwnedSemaphorePermit; 2], lane: Lane) -> Slot {
        let again = match lane {
            Lane::Fresh => None,
            Lane::Retry | Lane::Backfill => self.again.clone().try_acquire_owned().ok(),
        };
        Slot { _held: held, _again: again }
    }
}
