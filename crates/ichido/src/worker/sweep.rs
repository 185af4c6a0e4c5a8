//! Lets lines go on that nobody moves, now and then.
//!
//! It must never be what order depends on: a line moves with its head's own transaction.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use tracing::{debug, info};

use crate::{Inbox, Store};

/// How long a line may stand still after somebody forgot to move it.
const EVERY: Duration = Duration::from_secs(30);

/// Sweeps until it is stopped.
pub(super) async fn run<S: Store>(inbox: Inbox<S>, mut stopped: watch::Receiver<bool>) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
        match inbox.store().sweep().await {
            Ok(0) => {}
            Ok(count) => info!(count, "events whose order key nobody held are due now"),
            // The crews say it where the database is away.
            Err(error) => debug!(%error, "lines were not looked at"),
        }
    }
}
