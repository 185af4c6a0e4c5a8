//! Keeps a fixed rate: hands out turns when they are due.
//!
//! It must be finer than the runtime's timer, whose millisecond would send ten events at once and
//! count the wait as the server's latency.

use std::{io::ErrorKind, time::Duration};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::{net::unix::pipe, time::Instant};

use crate::plan::Plan;

/// The shortest sleep: a wake-up for each event would cost more than the event.
const TICK: Duration = Duration::from_micros(100);

/// Runs until the last turn of the plan was handed out.
pub(crate) async fn keep(plan: &Plan) -> anyhow::Result<()> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)?;
    // Not a pipe, but read like one: the runtime's own type for it would need unsafe code.
    let expired = pipe::Receiver::from_owned_fd_unchecked(timer.try_clone()?)?;
    let mut released = 0;
    loop {
        let now = Instant::now();
        let (out, next) = plan.release(released, now);
        released = out;
        let Some(next) = next else { return Ok(()) };
        let sleep = Timespec::try_from(next.saturating_duration_since(now).max(TICK))?;
        let once = Itimerspec { it_interval: Timespec::default(), it_value: sleep };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once)?;
        loop {
            expired.readable().await?;
            match expired.try_read(&mut [0; 8]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => break read.map(drop)?,
            }
        }
    }
}
