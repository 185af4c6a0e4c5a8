//! A process of ours: started, watched line by line, signalled by its id, ended on drop.

use std::{
    collections::HashMap,
    ffi::OsStr,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::eventually;

/// A running program whose output is kept.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Process {
    /// Starts `program`. Its environment is ours with `env` on top.
    ///
    /// # Errors
    /// When it does not start.
    pub fn spawn<A: AsRef<OsStr>>(
        program: &Path,
        args: impl IntoIterator<Item = A>,
        env: &HashMap<&str, String>,
        folder: &Path,
    ) -> Result<Self> {
        let mut child = Command::new(program)
            .args(args)
            .envs(env)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} does not start", program.display()))?;
        let lines = Arc::new(Mutex::new(Vec::new()));
        collect(child.stdout.take().context("no stdout")?, lines.clone());
        collect(child.stderr.take().context("no stderr")?, lines.clone());
        Ok(Self { child, lines })
    }

    /// Everything it wrote so far, both streams together.
    pub fn output(&self) -> String {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// Waits for a line that contains `text`.
    ///
    /// # Errors
    /// When it does not come in time; the error holds what came instead.
    pub async fn line(&self, text: &str, deadline: Duration) -> Result<String> {
        let look = || async {
            let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.iter().find(|line| line.contains(text)).cloned()
        };
        let found = eventually(text, deadline, look).await;
        found.with_context(|| format!("output so far:\n{}", self.output()))
    }

    /// Sends a signal, e.g. `Signal::SIGKILL`.
    ///
    /// # Errors
    /// When the process has ended and was waited for.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let id = i32::try_from(self.child.id()).context("a process id is small")?;
        kill(Pid::from_raw(id), signal).context("no such process")
    }

    /// Kills it as `kill -9` does, and waits until it is gone.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// When it still runs at the deadline.
    pub async fn ended(&mut self, deadline: Duration) -> Result<ExitStatus> {
        let child = Mutex::new(&mut self.child);
        let look = || async {
            child.lock().unwrap_or_else(PoisonError::into_inner).try_wait().ok().flatten()
        };
        eventually("the process ends", deadline, look).await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn collect(stream: impl Read + Send + 'static, lines: Arc<Mutex<Vec<String>>>) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    });
}
