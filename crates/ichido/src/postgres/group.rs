//! Group commit of receipts: a free committer takes what waits, so a lone request never does.
//!
//! Each delivery is answered only after the transaction that holds it committed. Row by row is
//! tried only after an error that blames a row, never after an outage.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
};

use deadpool_postgres::Object;
use futures_util::FutureExt;
use tokio::{
    sync::{Mutex as AsyncMutex, mpsc, oneshot},
    task::JoinHandle,
};
use tracing::error;

use super::{
    Config,
    batch::{Batch, Stored, Suspect},
    connect,
    core::{Core, is_unknown_endpoint},
    handler::Run,
    prepared::is_stale,
};
use crate::{Error, ErrorKind, Intake, Taken};

/// Deliveries in one transaction: where throughput stops to grow with more.
const BATCH_DELIVERIES_MAX: usize = 50;
/// Bytes of bodies in one transaction, so that a batch of large ones is not a burst.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// The first try, and two more: the pool may hand out one more connection that has just died.
const TRIES: u32 = 3;

type Answer = Result<Vec<Taken>, Error>;

struct Job {
    intake: Intake<dyn Run>,
    answer: oneshot::Sender<Answer>,
}

/// The queue in front of the committers.
pub(super) struct Group {
    core: Arc<Core>,
    committers: usize,
    waiting_max: usize,
    running: Mutex<Running>,
}

enum Running {
    NotYet,
    Open(mpsc::Sender<Job>, Vec<JoinHandle<()>>),
    Closed,
}

impl Group {
    pub(super) fn new(core: Arc<Core>, config: &Config) -> Self {
        let running = Mutex::new(Running::NotYet);
        let (committers, waiting_max) = (config.committers.max(1), config.waiting_max.max(1));
        Self { core, committers, waiting_max, running }
    }

    pub(super) async fn receive(&self, intake: Intake<dyn Run>) -> Answer {
        let (answer, committed) = oneshot::channel();
        match self.sender()?.try_send(Job { intake, answer }) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => {
                let waiting = self.waiting_max;
                let why = format!("{waiting} deliveries wait for the database already");
                return Err(Error::new(ErrorKind::Busy, why));
            }
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(closed()),
        }
        committed.await.unwrap_or_else(|_| Err(closed()))
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
    fn sender(&self) -> Result<mpsc::Sender<Job>, Error> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Running::NotYet = *running {
            let (sender, waiting) = mpsc::channel(self.waiting_max);
            let waiting = Arc::new(AsyncMutex::new(waiting));
            let commit = |_| tokio::spawn(commit_all(self.core.clone(), waiting.clone()));
            *running = Running::Open(sender, (0..self.committers).map(commit).collect());
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

async fn commit_all(core: Arc<Core>, waiting: Arc<AsyncMutex<mpsc::Receiver<Job>>>) {
    loop {
        let jobs = take(&mut *waiting.lock().await).await;
        if jobs.is_empty() {
            return;
        }
        // Those who wait are told by the drop of their jobs; the next ones need a committer.
        if AssertUnwindSafe(commit(&core, jobs)).catch_unwind().await.is_err() {
            error!("a group commit panicked; its deliveries were not acknowledged");
        }
    }
}

/// Waits for one delivery, then takes what is there. Empty: the queue is closed.
async fn take(waiting: &mut mpsc::Receiver<Job>) -> Vec<Job> {
    let Some(first) = waiting.recv().await else { return Vec::new() };
    let mut bytes = first.intake.delivery.request.body.len();
    let mut jobs = vec![first];
    while jobs.len() < BATCH_DELIVERIES_MAX && bytes < BATCH_BYTES_MAX {
        let Ok(job) = waiting.try_recv() else { break };
        bytes += job.intake.delivery.request.body.len();
        jobs.push(job);
    }
    jobs
}

async fn commit(core: &Core, jobs: Vec<Job>) {
    let (intakes, answers): (Vec<_>, Vec<_>) =
        jobs.into_iter().map(|job| (job.intake, job.answer)).unzip();
    let all: Vec<_> = intakes.iter().collect();
    match store(core, &all).await {
        Ok(rows) => {
            for ((intake, answer), rows) in intakes.iter().zip(answers).zip(rows) {
                drop(answer.send(judge(core, intake, &rows).await));
            }
        }
        // One of them is to blame: each alone, so that it refuses only itself.
        Err(error) if error.kind() == ErrorKind::Data && intakes.len() > 1 => {
            for (intake, answer) in intakes.iter().zip(answers) {
                let taken = match store(core, &[intake]).await {
                    Ok(rows) => judge(core, intake, &rows[0]).await,
                    Err(error) => Err(error),
                };
                drop(answer.send(taken));
            }
        }
        Err(error) => {
            for answer in answers {
                drop(answer.send(Err(Error::new(error.kind(), error.to_string()))));
            }
        }
    }
}

/// Commits the deliveries; rows for each of them. A connection lost on the way leaves the
/// outcome unknown, so it is asked again on a fresh one: our own receipt ids are known again.
async fn store(core: &Core, intakes: &[&Intake<dyn Run>]) -> Result<Vec<Vec<Stored>>, Error> {
    let batch = Batch::new(intakes.iter().copied());
    let mut tries = TRIES;
    let mut rows = loop {
        tries -= 1;
        let connection = core.connection().await?;
        let received = async {
            let receive = core.receiving(&connection).await?;
            batch.receive(&connection, &receive).await
        };
        match received.await {
            Ok(rows) => break rows.into_iter(),
            Err(error) if tries > 0 && is_stale(&error) => drop(Object::take(connection)),
            Err(error) if tries > 0 && is_unknown_endpoint(&error) => core.forget_registration(),
            Err(error) if tries > 0 && connect::is_lost(&error) => {}
            Err(error) => return Err(connect::database(&error)),
        }
    };
    Ok(intakes.iter().map(|i| rows.by_ref().take(i.routes.len()).collect()).collect())
}

async fn judge(core: &Core, intake: &Intake<dyn Run>, rows: &[Stored]) -> Answer {
    let mut all = Vec::with_capacity(rows.len());
    for (index, (row, routed)) in rows.iter().zip(&intake.routes).enumerate() {
        let mut taken = row.taken(&routed.route);
        if row.differs {
            taken.conflict = core.judge(&Suspect::new(intake, index, row.receipt)).await?;
        }
        all.push(taken);
    }
    Ok(all)
}
