//! What one connection waits for, since when, and for how long it may.
//!
//! It must never call a connection overdue while the answer is ours to make.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Mutex, MutexGuard},
    task::Poll,
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::{config::Limits, metrics::Ended};

/// After the last answer, how long the rest of a request that nobody wants is read and thrown
/// away. Without it the client would get a reset in place of the answer.
const LINGER: Duration = Duration::from_secs(2);

/// A connection as its watchdog sees it.
#[derive(Debug)]
pub(crate) struct Line {
    state: Mutex<State>,
    crowded: Notify,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    since: Instant,
    /// Since when the client does not take what we write.
    blocked: Option<Instant>,
    /// The client may still be sending what nobody will read.
    unread: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// TLS is to be agreed upon.
    Handshake,
    /// New: the first head is to come, whole.
    First,
    /// Between two requests.
    Idle,
    /// A later head has begun.
    Head,
    /// A body is being read; `body` answers 408 when it takes too long.
    Body,
    /// It is our turn.
    Answering,
    /// The last answer is written.
    Closing,
}

impl Line {
    /// A connection that was just accepted.
    pub(crate) fn new() -> Self {
        let state =
            State { phase: Phase::First, since: Instant::now(), blocked: None, unread: true };
        Self { state: Mutex::new(state), crowded: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds this lock")
    }

    fn enter(&self, phase: Phase) {
        let mut state = self.state();
        (state.phase, state.since) = (phase, Instant::now());
    }

    /// TLS comes first.
    pub(super) fn shaking_hands(&self) {
        self.enter(Phase::Handshake);
    }

    /// The first head may come.
    pub(super) fn ready(&self) {
        self.enter(Phase::First);
    }

    /// Bytes came.
    pub(super) fn heard(&self) {
        let mut state = self.state();
        if state.phase == Phase::Idle {
            (state.phase, state.since, state.unread) = (Phase::Head, Instant::now(), true);
        }
    }

    /// A head is whole; a body follows or not.
    pub(super) fn asked(&self, body: bool) {
        let mut state = self.state();
        (state.phase, state.since, state.unread) = (Phase::Answering, Instant::now(), body);
    }

    /// The body is being read.
    pub(super) fn reading(&self) {
        self.enter(Phase::Body);
    }

    /// The body is whole.
    pub(super) fn read(&self) {
        self.asked(false);
    }

    /// True while a part of the request is unread: it is not going to be, once there is an answer.
    pub(super) fn is_unread(&self) -> bool {
        self.state().unread
    }

    /// The answer is made; hyper writes it.
    pub(super) fn answered(&self) {
        self.enter(Phase::Idle);
    }

    /// Whether the last write could not go on. Ends with everything that there was to write, so
    /// that a byte now and then does not count as reading.
    pub(super) fn blocked(&self, blocked: bool) {
        let mut state = self.state();
        state.blocked = blocked.then(|| state.blocked.unwrap_or_else(Instant::now));
    }

    /// The write side is closed. True when the client may still be sending.
    pub(super) fn closing(&self) -> bool {
        if self.state().phase != Phase::Closing {
            self.enter(Phase::Closing);
        }
        self.state().unread
    }

    /// Since when it is the client's turn; `None` while it is ours.
    pub(super) fn waiting_since(&self) -> Option<Instant> {
        let state = self.state();
        if state.phase == Phase::Answering { state.blocked } else { Some(state.since) }
    }

    /// Asks it to make room.
    pub(super) fn crowd_out(&self) {
        self.crowded.notify_one();
    }

    fn deadline(&self, limits: &Limits) -> Option<(Instant, Ended)> {
        let state = self.state();
        let own = match state.phase {
            Phase::Handshake => Some((limits.handshake_timeout.0, Ended::HandshakeTimeout)),
            Phase::First | Phase::Head => Some((limits.header_timeout.0, Ended::HeaderTimeout)),
            Phase::Idle => Some((limits.idle_timeout.0, Ended::IdleTimeout)),
            Phase::Closing => Some((LINGER, Ended::Lingered)),
            Phase::Body | Phase::Answering => None,
        };
        let own = own.map(|(time, why)| (state.since + time, why));
        let write = state.blocked.map(|at| (at + limits.write_timeout.0, Ended::WriteTimeout));
        [own, write].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Waits until the connection has to end, and says why. To be polled after whatever changes
    /// the line, on the same task: it sets no alarm that a later change would move forward.
    pub(super) async fn overdue(&self, limits: &Limits) -> Ended {
        tokio::select! {
            () = self.crowded.notified() => Ended::Crowded,
            why = self.late(limits) => why,
        }
    }

    async fn late(&self, limits: &Limits) -> Ended {
        let mut alarm = pin!(sleep_until(Instant::now()));
        poll_fn(|cx| {
            loop {
                let Some((at, why)) = self.deadline(limits) else { return Poll::Pending };
                // Rarely set: a fast client is done long before, and its next deadline is later.
                if alarm.is_elapsed() || at < alarm.deadline() {
                    if at <= Instant::now() {
                        return Poll::Ready(why);
                    }
                    alarm.as_mut().reset(at);
                }
                if alarm.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await
    }
}
