//! The one writer: a thread, a bounded queue, and group commit without a timer.
//!
//! Each delivery has a savepoint, all of a group have one COMMIT, and nobody is answered before
//! it returned success. A delivery that nobody waits for any more is skipped. Whoever breaks the
//! transaction of a group answers for it alone: the others are done once more without it.

use std::{
    collections::{HashMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver as Queue, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use tokio::sync::oneshot;
use tracing::{debug, error};

use super::{
    Config, Run, file,
    receive::{Failed, Receiver},
    watch::Watch,
};
use crate::{Error, ErrorKind, Intake, Outcome, Taken};

/// Deliveries in one transaction: where throughput stops to grow with more.
const GROUP_DELIVERIES_MAX: usize = 50;
/// Bytes of bodies in one transaction.
const GROUP_BYTES_MAX: usize = 1 << 20;
/// A group that took this long is committed before the next delivery: slow handlers must not
/// hold back the answers of those before them.
const GROUP_TIME: Duration = Duration::from_millis(20);

/// How late the count of duplicates may be.
const COUNT_LATE: Duration = Duration::from_secs(1);

type Answer = Result<Vec<Taken>, Error>;

/// A delivery and who waits for it.
pub(super) struct Job {
    pub(super) intake: Intake<dyn Run>,
    pub(super) answer: oneshot::Sender<Answer>,
    /// Set when the writer has begun with it.
    pub(super) started: Arc<AtomicBool>,
    /// Why its handler failed, where the whole transaction was lost with that.
    handler_failed: Option<String>,
    /// Its group could not be committed: it has a transaction of its own.
    alone: bool,
}

impl Job {
    pub(super) fn new(
        intake: Intake<dyn Run>,
        answer: oneshot::Sender<Answer>,
        started: Arc<AtomicBool>,
    ) -> Self {
        Self { intake, answer, started, handler_failed: None, alone: false }
    }
}

/// Something that has a transaction of its own.
pub(super) type Alone = Box<dyn FnOnce(&mut Thread) + Send>;

/// What the writer does.
pub(super) enum Work {
    Receive(Box<Job>),
    Alone(Alone),
}

/// The thread's handle and its queue.
pub(super) struct Writer {
    queue: SyncSender<Work>,
    thread: JoinHandle<()>,
    waiting_max: usize,
}

impl Writer {
    pub(super) fn start(mut connection: Connection, config: &Config) -> Result<Self, Error> {
        let watch = Watch::install(&mut connection).map_err(|e| file::error(&e))?;
        let receiver = Receiver { watch, endpoints: HashMap::new() };
        let waiting_max = config.waiting_max.max(1);
        let (queue, waiting) = sync_channel(waiting_max);
        let thread = std::thread::Builder::new()
            .name("ichido-writer".into())
            .spawn(move || {
                let (duplicates, counted) = (HashMap::new(), Instant::now());
                Thread { connection, receiver, waiting, duplicates, counted }.run();
            })
            .map_err(|e| Error::new(ErrorKind::Unavailable, "no thread").because(e))?;
        Ok(Self { queue, thread, waiting_max })
    }

    pub(super) fn send(&self, work: Work) -> Result<(), Error> {
        self.queue.try_send(work).map_err(|error| match error {
            TrySendError::Full(_) => {
                let why = format!("{} deliveries wait for the writer already", self.waiting_max);
                Error::new(ErrorKind::Busy, why)
            }
            TrySendError::Disconnected(_) => {
                Error::new(ErrorKind::Unavailable, "the writer has ended; see the log")
            }
        })
    }

    /// Lets it finish what waits, then ends it.
    pub(super) fn finish(self) {
        drop(self.queue);
        drop(self.thread.join());
    }
}

pub(super) struct Thread {
    connection: Connection,
    receiver: Receiver,
    waiting: Queue<Work>,
    /// Duplicates by endpoint that the file has not been told of.
    duplicates: HashMap<Arc<str>, usize>,
    /// When it was told last.
    counted: Instant,
}

impl Thread {
    fn run(mut self) {
        while let Some(first) = self.next() {
            let mut works = self.group(first);
            while !works.is_empty() {
                let next = AssertUnwindSafe(|| match works.pop_front() {
                    Some(Work::Alone(alone)) => alone(&mut self),
                    Some(delivery) => {
                        works.push_front(delivery);
                        self.commit(&mut works);
                    }
                    None => {}
                });
                if catch_unwind(next).is_err() {
                    // Those who wait are told by the drop of their jobs.
                    error!("the writer panicked; nothing of that was acknowledged");
                    self.roll_back();
                }
            }
        }
    }

    /// The next work; `None` when there will be none. Duplicates are counted meanwhile.
    fn next(&mut self) -> Option<Work> {
        if self.duplicates.is_empty() {
            return self.waiting.recv().ok();
        }
        match self.waiting.recv_timeout(COUNT_LATE) {
            Ok(work) => Some(work),
            Err(RecvTimeoutError::Timeout) => {
                self.count_duplicates();
                self.waiting.recv().ok()
            }
            Err(RecvTimeoutError::Disconnected) => {
                self.count_duplicates();
                None
            }
        }
    }

    /// Writes the count, in whatever transaction is open. What cannot be written is forgotten:
    /// it is a figure, not a receipt.
    fn count_duplicates(&mut self) {
        self.counted = Instant::now();
        for (name, more) in self.duplicates.drain() {
            let add = include_str!("../../sql/sqlite/duplicates_add.sql");
            let added = self.connection.prepare_cached(add);
            if let Err(error) = added.and_then(|mut add| add.execute((&*name, more))) {
                debug!(%error, "duplicates were not counted");
            }
        }
    }

    /// Takes what waits, within the limits of a group.
    fn group(&self, first: Work) -> VecDeque<Work> {
        let bytes = |work: &Work| match work {
            Work::Receive(job) => job.intake.delivery.request.body.len(),
            Work::Alone(_) => 0,
        };
        let mut all = bytes(&first);
        let mut works = VecDeque::from([first]);
        while works.len() < GROUP_DELIVERIES_MAX && all < GROUP_BYTES_MAX {
            let Ok(work) = self.waiting.try_recv() else { break };
            all += bytes(&work);
            works.push_back(work);
        }
        works
    }

    /// One transaction: deliveries from the front of `works` until one is slow.
    fn commit(&mut self, works: &mut VecDeque<Work>) {
        let began = Instant::now();
        let open = self.begin();
        let mut taken = Vec::new();
        while let Some(job) = next_delivery(works, taken.is_empty()) {
            job.started.store(true, Ordering::Release);
            if job.answer.is_closed() {
                continue;
            }
            let alone = job.alone;
            let answer = match &open {
                Ok(()) => match self.savepoint(&job) {
                    answer if self.connection.is_autocommit() => {
                        return self.lost(job, answer, taken, works);
                    }
                    answer => answer.map_err(Failed::into_error),
                },
                Err(error) => Err(file::error(error)),
            };
            taken.push((job, answer));
            if alone || began.elapsed() > GROUP_TIME {
                break;
            }
        }
        // With a group that writes anyhow, and where there is none but duplicates, in time.
        if open.is_ok() && (self.counted.elapsed() > COUNT_LATE || writes(&taken)) {
            self.count_duplicates();
        }
        if let Err(error) = open.and_then(|()| self.connection.execute_batch("COMMIT")) {
            self.roll_back();
            return not_committed(&error, taken, works);
        }
        for (job, answer) in taken {
            self.remember_duplicates(&job, &answer);
            drop(job.answer.send(answer));
        }
    }

    fn remember_duplicates(&mut self, job: &Job, answer: &Answer) {
        let events = answer.iter().flatten();
        let found = events.filter(|event| event.outcome == Outcome::Duplicate).count();
        if found > 0 {
            *self.duplicates.entry(job.intake.endpoint.name.clone()).or_default() += found;
        }
    }

    /// Opens a transaction. One that was left open must never swallow it.
    fn begin(&mut self) -> rusqlite::Result<()> {
        if !self.connection.is_autocommit() {
            self.roll_back();
        }
        self.connection.execute_batch("BEGIN IMMEDIATE")
    }

    /// What was registered in the transaction is not.
    fn roll_back(&mut self) {
        drop(self.connection.execute_batch("ROLLBACK"));
        self.receiver.endpoints.clear();
    }

    fn savepoint(&mut self, job: &Job) -> Result<Vec<Taken>, Failed> {
        let failed = |e: rusqlite::Error| Failed::Delivery(file::error(&e));
        self.connection.execute_batch("SAVEPOINT ichido_delivery").map_err(failed)?;
        let handler_failed = job.handler_failed.as_deref();
        let taken = self.receiver.receive(&self.connection, &job.intake, handler_failed);
        let end = match taken {
            Ok(_) => "RELEASE ichido_delivery",
            Err(Failed::Delivery(_)) if !self.connection.is_autocommit() => {
                self.receiver.endpoints.remove(&job.intake.endpoint.name);
                "ROLLBACK TO ichido_delivery; RELEASE ichido_delivery"
            }
            Err(_) => return taken,
        };
        if let Err(error) = self.connection.execute_batch(end) {
            // What must not be committed might still be in it.
            self.roll_back();
            return Err(failed(error));
        }
        taken
    }

    /// A delivery took the transaction along, its neighbours included: they are done once more.
    /// So is the delivery itself where its handler failed, but without running that again.
    fn lost(
        &mut self,
        mut job: Box<Job>,
        answer: Result<Vec<Taken>, Failed>,
        neighbours: Vec<(Box<Job>, Answer)>,
        works: &mut VecDeque<Work>,
    ) {
        self.receiver.endpoints.clear();
        match answer {
            Err(Failed::Transaction(why)) => {
                job.handler_failed = Some(why);
                works.push_front(Work::Receive(job));
            }
            Err(Failed::Delivery(error)) => drop(job.answer.send(Err(error))),
            Ok(_) => {
                let why = "the transaction is gone, and nobody knows why";
                drop(job.answer.send(Err(Error::new(ErrorKind::Unavailable, why))));
            }
        }
        give_back(neighbours, works);
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Runs `work` in a transaction of its own, and commits it where it says so.
    pub(super) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&Connection, &Watch) -> Result<(T, bool), Error>,
    ) -> Result<T, Error> {
        self.begin().map_err(|e| file::error(&e))?;
        let worked = work(&self.connection, &self.receiver.watch);
        let ended = match worked {
            Ok((value, true)) => match self.connection.execute_batch("COMMIT") {
                Ok(()) => Ok(value),
                Err(error) => Err(file::error(&error)),
            },
            Ok((value, false)) => Ok(value),
            Err(error) => Err(error),
        };
        if !self.connection.is_autocommit() {
            self.roll_back();
        }
        ended
    }
}

/// The delivery at the front, unless something else is there, or one that goes alone and not
/// first.
fn next_delivery(works: &mut VecDeque<Work>, first: bool) -> Option<Box<Job>> {
    match works.pop_front()? {
        Work::Receive(job) if first || !job.alone => Some(job),
        other => {
            works.push_front(other);
            None
        }
    }
}

/// Puts deliveries back to the front, in their order.
fn give_back(taken: Vec<(Box<Job>, Answer)>, works: &mut VecDeque<Work>) {
    for (job, _) in taken.into_iter().rev() {
        works.push_front(Work::Receive(job));
    }
}

/// COMMIT or BEGIN failed, so nobody is acknowledged. Where a handler left a constraint
/// broken for COMMIT to find, each is tried alone, and then it is that handler's failure.
fn not_committed(
    error: &rusqlite::Error,
    mut taken: Vec<(Box<Job>, Answer)>,
    works: &mut VecDeque<Work>,
) {
    let broken = error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation);
    match taken.as_mut_slice() {
        [(job, _)] if broken && job.handler_failed.is_none() => {
            job.handler_failed = Some(error.to_string());
            give_back(taken, works);
        }
        [_, _, ..] if broken => {
            for (job, _) in &mut taken {
                job.alone = true;
            }
            give_back(taken, works);
        }
        _ => {
            for (job, _) in taken {
                drop(job.answer.send(Err(file::error(error))));
            }
        }
    }
}

/// Whether anything but duplicates and refusals is in the group.
fn writes(taken: &[(Box<Job>, Answer)]) -> bool {
    let events = taken.iter().filter_map(|(_, answer)| answer.as_ref().ok()).flatten();
    events.into_iter().any(|event| event.outcome != Outcome::Duplicate)
}
