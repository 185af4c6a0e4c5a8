//! The SQLite engine: one file, one writer thread. Only this module and those below it touch
//! the driver.
//!
//! In the order of the data: [`Config`], `file` (opening, migrations, the lock), `writer` (the
//! queue and group commit), `receive` (the statements of a delivery), `work` (what was stored
//! first), `attempt` (one run of a handler), `handler` (what runs). It must never acknowledge what
//! a COMMIT has not made durable.

mod attempt;
mod check;
mod config;
mod desk;
mod file;
mod handler;
mod receive;
mod report;
pub mod testing;
mod time;
mod watch;
mod work;
mod writer;

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

pub use config::{Config, RECEIVE_WAIT, WAITING_MAX};
pub use handler::{Run, Tx};
use rusqlite::Connection;
use tokio::sync::{oneshot, watch as watch_channel};

use self::{
    file::Lock,
    writer::{Job, Thread, Work, Writer},
};
use crate::{
    Claim, Claimed, EndpointSpec, Error, ErrorKind, Failed, Fault, Finding, Intake, Outcome, Stats,
    Store, Taken, Worked,
};

/// An inbox in one SQLite file.
pub struct Sqlite {
    path: PathBuf,
    receive_wait: Duration,
    endpoints: RwLock<Vec<Arc<EndpointSpec>>>,
    /// `None`: opened for reading, or closed.
    writer: Mutex<Option<Writer>>,
    /// Told when something was stored for a worker.
    arrivals: watch_channel::Sender<()>,
    /// Held as long as we may write.
    _lock: Option<Lock>,
}

impl Sqlite {
    /// Opens the file for receiving, makes and migrates it as needed, and starts the writer.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] when another process receives into this file (it is named) or
    /// the file cannot be opened; [`ErrorKind::Schema`] when it belongs to a newer version.
    pub fn open(config: Config) -> Result<Self, Error> {
        let lock = Lock::take(&config.path)?;
        let connection = file::open(&config)?;
        let writer = Writer::start(connection, &config)?;
        Ok(Self {
            path: config.path,
            receive_wait: config.receive_wait,
            endpoints: RwLock::default(),
            writer: Mutex::new(Some(writer)),
            arrivals: watch_channel::Sender::new(()),
            _lock: Some(lock),
        })
    }

    /// Opens the file to look at it, beside a process that receives into it.
    ///
    /// # Errors
    /// As [`Sqlite::open`]; also when the file does not exist.
    pub fn open_reader(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        file::check(&file::reader(&path)?)?;
        Ok(Self {
            path,
            receive_wait: RECEIVE_WAIT,
            endpoints: RwLock::default(),
            writer: Mutex::new(None),
            arrivals: watch_channel::Sender::new(()),
            _lock: None,
        })
    }

    /// Runs a script of the user's own, such as the schema of the business tables, in one
    /// transaction of ours: BEGIN and COMMIT in it are refused.
    ///
    /// # Errors
    /// When a statement fails: nothing of the script stays. Cancel safety: the script runs to its
    /// end, whether or not anyone waits.
    pub async fn apply(&self, script: &str) -> Result<(), Error> {
        let script = script.to_owned();
        self.writer(move |thread| {
            thread.transaction(|connection, watch| {
                let ran = watch.script(|| connection.execute_batch(&script));
                ran.map(|()| ((), true)).map_err(|error| script_error(&error))
            })
        })
        .await
    }

    /// Has the writer do something between its groups.
    async fn writer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Thread) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, done) = oneshot::channel();
        self.send(Work::Alone(Box::new(move |thread| drop(answer.send(work(thread))))))?;
        done.await.unwrap_or_else(|_| Err(closed()))
    }

    fn send(&self, work: Work) -> Result<(), Error> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.as_ref().ok_or_else(closed)?.send(work)
    }

    /// Runs `read` with a connection of its own, off the async threads.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let path = self.path.clone();
        let task = tokio::task::spawn_blocking(move || {
            let connection = file::reader(&path)?;
            file::check(&connection)?;
            read(&connection).map_err(|e| file::error(&e))
        });
        task.await.unwrap_or_else(|e| Err(Error::new(ErrorKind::Unavailable, e.to_string())))
    }
}

fn script_error(error: &rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::AuthorizationForStatementDenied) => {
            let why = "a script runs in a transaction of its own: leave out BEGIN and COMMIT";
            Error::new(ErrorKind::Data, why)
        }
        _ => file::error(error),
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Unavailable, "the inbox is closed, or was opened for reading only")
}

impl Store for Sqlite {
    type Handler = dyn Run;

    const HANDLER_TIMEOUT: Duration = Duration::from_millis(250);
    const HANDLER_TIMEOUT_MAX: Duration = Duration::from_secs(2);

    /// The writer registers an endpoint with its first delivery.
    fn configure(&self, endpoints: Vec<Arc<EndpointSpec>>) {
        *self.endpoints.write().unwrap_or_else(PoisonError::into_inner) = endpoints;
    }

    async fn receive(&self, intake: Intake<dyn Run>) -> Result<Vec<Taken>, Error> {
        let (answer, mut committed) = oneshot::channel();
        let started = Arc::new(AtomicBool::new(false));
        self.send(Work::Receive(Box::new(Job::new(intake, answer, started.clone()))))?;
        let waited = tokio::time::timeout(self.receive_wait, &mut committed).await;
        let taken = match waited {
            Ok(taken) => taken.unwrap_or_else(|_| Err(closed()))?,
            Err(_) if started.load(Ordering::Acquire) => {
                committed.await.unwrap_or_else(|_| Err(closed()))?
            }
            // Nobody waits any more, so the writer skips it.
            Err(_) => {
                let wait = self.receive_wait.as_secs_f64();
                let why = format!("the writer was not free within {wait} s");
                return Err(Error::new(ErrorKind::Busy, why));
            }
        };
        if taken.iter().any(|taken| taken.outcome == Outcome::Accepted) {
            self.arrivals.send_replace(());
        }
        Ok(taken)
    }

    async fn claim(&self, claim: &Claim<'_>) -> Result<Vec<Claimed>, Error> {
        let claim = work::Claim {
            queues: claim.queues.to_vec(),
            lanes: claim.lanes.to_vec(),
            most: claim.most,
            lease: claim.lease,
        };
        self.writer(move |thread| work::claim(thread, &claim)).await
    }

    async fn process(
        &self,
        claimed: &Claimed,
        handler: &Arc<dyn Run>,
        limit: Duration,
    ) -> Result<Worked, Error> {
        let (claimed, handler) = (claimed.clone(), handler.clone());
        self.writer(move |thread| work::process(thread, &claimed, &*handler, limit)).await
    }

    async fn fail(&self, claimed: &Claimed, fault: &Fault) -> Result<Failed, Error> {
        let (claimed, fault) = (claimed.clone(), fault.clone());
        self.writer(move |thread| work::fail(thread, &claimed, &fault)).await
    }

    async fn release(&self, claimed: &Claimed, delay: Duration) -> Result<bool, Error> {
        let claimed = claimed.clone();
        self.writer(move |thread| work::release(thread, &claimed, delay)).await
    }

    /// One writer moves every line in the transaction of its head: none stands still.
    async fn sweep(&self) -> Result<u32, Error> {
        Ok(0)
    }

    fn arrivals(&self) -> watch_channel::Receiver<()> {
        self.arrivals.subscribe()
    }

    async fn check(&self) -> Result<(), Error> {
        let endpoints = self.endpoints.read().unwrap_or_else(PoisonError::into_inner).clone();
        self.read(move |connection| Ok(check::handlers(connection, &endpoints))).await?
    }

    async fn stats(&self) -> Result<Stats, Error> {
        self.read(report::stats).await
    }

    async fn audit(&self) -> Result<Vec<Finding>, Error> {
        self.read(report::audit).await
    }

    async fn close(&self) {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            drop(tokio::task::spawn_blocking(move || writer.finish()).await);
        }
    }
}

impl std::fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sqlite").field("path", &self.path).finish_non_exhaustive()
    }
}
