//! The one writer: a thread, a bounded queue, and group commit without a timer.
//!
//! Each delivery has a savepoint, all of a group have one COMMIT, and nobody is answered before
//! it returned success. A delivery that nobody waits for any more is skipped.

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

use super::{Config, Run, file, receive::Receiver, watch::Watch};
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
}

/// What the writer does.
pub(super) enum Work {
    Receive(Box<Job>),
    Script(String, oneshot::Sender<Result<(), Error>>),
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
                Thread { connection, receiver, waiting, duplicates: HashMap::new() }.run();
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

struct Thread {
    connection: Connection,
    receiver: Receiver,
    waiting: Queue<Work>,
    /// Duplicates by endpoint that the file has not been told of.
    duplicates: HashMap<Arc<str>, usize>,
}

impl Thread {
    fn run(mut self) {
        while let Some(first) = self.next() {
            let mut works = self.group(first);
            while !works.is_empty() {
                if let Some(Work::Script(..)) = works.front() {
                    if let Some(Work::Script(script, answer)) = works.pop_front() {
                        drop(answer.send(self.script(&script)));
                    }
                    continue;
                }
                let commit = AssertUnwindSafe(|| self.commit(&mut works));
                if catch_unwind(commit).is_err() {
                    // Those who wait are told by the drop of their jobs.
                    error!("the writer panicked; its deliveries were not acknowledged");
                    drop(self.connection.execute_batch("ROLLBACK"));
                    self.receiver.endpoints.clear();
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
            Work::Script(..) => 0,
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
        let open = self.connection.execute_batch("BEGIN IMMEDIATE");
        let mut taken = Vec::new();
        let mut ended = false;
        while let Some(job) = next_delivery(works) {
            job.started.store(true, Ordering::Release);
            if job.answer.is_closed() {
                continue;
            }
            let answer = match &open {
                Ok(()) => self.savepoint(&job.intake),
                Err(error) => Err(file::error(error)),
            };
            ended = open.is_ok() && self.connection.is_autocommit();
            if ended {
                self.broken(job, works, &mut taken);
                break;
            }
            taken.push((job, answer));
            if began.elapsed() > GROUP_TIME {
                break;
            }
        }
        let duplicates = self.duplicates_among(&taken);
        if !ended && duplicates < taken.len() {
            // This group writes anyhow.
            self.count_duplicates();
        }
        let committed = match open {
            Ok(()) if !ended => self.connection.execute_batch("COMMIT"),
            _ => Ok(()),
        };
        if committed.is_err() {
            // Perhaps it is still open, and what was registered in it is not.
            drop(self.connection.execute_batch("ROLLBACK"));
            self.receiver.endpoints.clear();
        }
        for (job, answer) in taken {
            let answer = match &committed {
                Ok(()) => answer,
                Err(error) => Err(file::error(error)),
            };
            drop(job.answer.send(answer));
        }
    }

    /// Remembers the duplicates of a group, and gives the number of deliveries that are nothing
    /// else.
    fn duplicates_among(&mut self, taken: &[(Box<Job>, Answer)]) -> usize {
        let mut only = 0;
        for (job, answer) in taken {
            let Ok(events) = answer else { continue };
            let found = events.iter().filter(|event| event.outcome == Outcome::Duplicate).count();
            only += usize::from(found == events.len());
            if found > 0 {
                *self.duplicates.entry(job.intake.endpoint.name.clone()).or_default() += found;
            }
        }
        only
    }

    /// A handler's `OR ROLLBACK` or `RAISE (ROLLBACK)` undid the whole transaction, its
    /// neighbours included: it is refused, and they are done once more without it.
    fn broken(
        &mut self,
        job: Box<Job>,
        works: &mut VecDeque<Work>,
        taken: &mut Vec<(Box<Job>, Answer)>,
    ) {
        self.receiver.endpoints.clear();
        for (neighbour, _) in taken.drain(..).rev() {
            works.push_front(Work::Receive(neighbour));
        }
        let why = "the handler rolled the whole transaction back: use OR ABORT or RAISE (ABORT)";
        drop(job.answer.send(Err(Error::new(ErrorKind::Handler, why))));
    }

    fn savepoint(&mut self, intake: &Intake<dyn Run>) -> Answer {
        let failed = |e: rusqlite::Error| file::error(&e);
        self.connection.execute_batch("SAVEPOINT ichido_delivery").map_err(failed)?;
        let taken = self.receiver.receive(&self.connection, intake);
        let mut end = "RELEASE ichido_delivery";
        if taken.is_err() {
            self.receiver.endpoints.remove(&intake.endpoint.name);
            end = "ROLLBACK TO ichido_delivery; RELEASE ichido_delivery";
        }
        self.connection.execute_batch(end).map_err(failed)?;
        taken
    }

    fn script(&self, script: &str) -> Result<(), Error> {
        let failed = |e: rusqlite::Error| file::error(&e);
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
        let ran = self.connection.execute_batch(script);
        let end = if ran.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.connection.execute_batch(end);
        ran.and(ended).map_err(failed)
    }
}

/// The delivery at the front, unless a script is there.
fn next_delivery(works: &mut VecDeque<Work>) -> Option<Box<Job>> {
    match works.pop_front()? {
        Work::Receive(job) => Some(job),
        script @ Work::Script(..) => {
            works.push_front(script);
            None
        }
    }
}
