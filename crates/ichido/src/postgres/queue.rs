//! A bounded queue in front of committers: a free committer takes what waits, so that a lone
//! delivery never does, and many share one commit.
//!
//! It must never answer for its committers: a job that is dropped tells its sender so.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::{
    sync::{Mutex as AsyncMutex, Notify, mpsc, oneshot},
    task::JoinHandle,
    time::sleep,
};
use tracing::error;

use super::{core::Core, handler::Run};
use crate::{Error, ErrorKind, Intake};

/// Bytes of bodies in one transaction, so that a batch of large ones is not a burst.
const BYTES_MAX: usize = 1 << 20;
/// While another commit is under way, a batch that is not enough waits for more, but only this
/// long: fewer, fuller commits cost less, and where commits are slow a second one helps.
const PATIENCE: Duration = Duration::from_millis(5);

/// A delivery and who waits for it.
pub(super) struct Job<A> {
    pub(super) intake: Intake<dyn Run>,
    pub(super) answer: oneshot::Sender<A>,
}

/// Commits jobs, and answers each of them.
pub(super) type Commit<A> = fn(Arc<Core>, Vec<Job<A>>) -> BoxFuture<'static, ()>;

/// How many commit, and how much.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Commits under way at once.
    pub(super) committers: usize,
    /// Deliveries in one of them.
    pub(super) deliveries_max: usize,
    /// Deliveries with which a commit does not wait for the one under way.
    pub(super) enough: usize,
    /// Deliveries that may wait; above it one is refused as busy.
    pub(super) waiting_max: usize,
}

pub(super) struct Queue<A> {
    core: Arc<Core>,
    shape: Shape,
    commit: Commit<A>,
    running: Mutex<Running<A>>,
}

enum Running<A> {
    NotYet,
    Open(mpsc::Sender<Job<A>>, Vec<JoinHandle<()>>),
    Closed,
}

impl<A: Send + 'static> Queue<A> {
    pub(super) fn new(core: Arc<Core>, shape: Shape, commit: Commit<A>) -> Self {
        Self { core, shape, commit, running: Mutex::new(Running::NotYet) }
    }

    /// Waits until a committer has answered.
    pub(super) async fn put(&self, intake: Intake<dyn Run>) -> Result<A, Error> {
        let (answer, answered) = oneshot::channel();
        match self.sender()?.try_send(Job { intake, answer }) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => {
                let waiting = self.shape.waiting_max;
                let why = format!("{waiting} deliveries wait for the database already");
                return Err(Error::new(ErrorKind::Busy, why));
            }
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(closed()),
        }
        answered.await.map_err(|_| closed())
    }

    /// Lets the committers finish what waits, then stops them.
    pub(super) async fn close(&self) {
        let running = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *running, Running::Closed)
        };
        if let Running::Open(sender, tasks) = running {
            drop(sender);
            for task in tasks {
                drop(task.await);
            }
        }
    }

    /// Starts the committers with the first delivery: construction needs no runtime.
    fn sender(&self) -> Result<mpsc::Sender<Job<A>>, Error> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Running::NotYet = *running {
            let (sender, waiting) = mpsc::channel(self.shape.waiting_max.max(1));
            let line = Arc::new(Line {
                waiting: AsyncMutex::new(waiting),
                shape: self.shape,
                busy: AtomicUsize::new(0),
                done: Notify::new(),
            });
            let start = |_| tokio::spawn(line.clone().serve(self.core.clone(), self.commit));
            let tasks = (0..self.shape.committers.max(1)).map(start).collect();
            *running = Running::Open(sender, tasks);
        }
        match &*running {
            Running::Open(sender, _) => Ok(sender.clone()),
            Running::NotYet | Running::Closed => Err(closed()),
        }
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Unavailable, "the inbox is closing")
}

/// What the committers share.
struct Line<A> {
    waiting: AsyncMutex<mpsc::Receiver<Job<A>>>,
    shape: Shape,
    /// Commits under way.
    busy: AtomicUsize,
    /// Rung when one of them ended.
    done: Notify,
}

impl<A: Send + 'static> Line<A> {
    async fn serve(self: Arc<Self>, core: Arc<Core>, commit: Commit<A>) {
        loop {
            let jobs = {
                let mut waiting = self.waiting.lock().await;
                let jobs = self.take(&mut waiting).await;
                // Counted before the next committer may look.
                self.busy.fetch_add(1, Ordering::AcqRel);
                jobs
            };
            if jobs.is_empty() {
                return;
            }
            // Those who wait are told by the drop of their jobs; the next ones need a committer.
            if AssertUnwindSafe(commit(core.clone(), jobs)).catch_unwind().await.is_err() {
                error!("a group commit panicked; its deliveries were not acknowledged");
            }
            self.busy.fetch_sub(1, Ordering::AcqRel);
            self.done.notify_waiters();
        }
    }

    /// Waits for one delivery, then takes what is there. Empty: the queue is closed.
    async fn take(&self, waiting: &mut mpsc::Receiver<Job<A>>) -> Vec<Job<A>> {
        let deliveries_max = self.shape.deliveries_max;
        let mut batch = Batch { jobs: Vec::new(), bytes: 0, deliveries_max };
        let Some(first) = waiting.recv().await else { return batch.jobs };
        batch.push(first);
        let patience = sleep(PATIENCE);
        tokio::pin!(patience);
        while !batch.is_full() {
            if let Ok(job) = waiting.try_recv() {
                batch.push(job);
                continue;
            }
            let done = self.done.notified();
            if batch.jobs.len() >= self.shape.enough || self.busy.load(Ordering::Acquire) == 0 {
                break;
            }
            tokio::select! {
                job = waiting.recv() => match job {
                    Some(job) => batch.push(job),
                    None => break,
                },
                () = done => {}
                () = &mut patience => break,
            }
        }
        batch.jobs
    }
}

struct Batch<A> {
    jobs: Vec<Job<A>>,
    bytes: usize,
    deliveries_max: usize,
}

impl<A> Batch<A> {
    fn push(&mut self, job: Job<A>) {
        self.bytes += job.intake.delivery.request.body.len();
        self.jobs.push(job);
    }

    fn is_full(&self) -> bool {
        self.jobs.len() >= self.deliveries_max || self.bytes >= BYTES_MAX
    }
}
