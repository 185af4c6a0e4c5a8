//! A private PostgreSQL cluster in a temporary folder, durable as in production.
//!
//! It must never outlive its owner: dropped or not, the server ends with the process.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;
use tokio_postgres::NoTls;

use crate::{free_port, tls, user};

/// How long a server may take to start or stop.
const PATIENCE: Duration = Duration::from_mins(1);

/// How to stop a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Ends sessions and writes everything.
    Fast,
    /// As a power cut: the next start recovers from the log.
    Immediate,
}

/// A private server on 127.0.0.1.
#[derive(Debug)]
pub struct Cluster {
    folder: TempDir,
    bin: PathBuf,
    port: u16,
    server: Option<Child>,
    /// Ends the server when our end of its pipe closes, however we die.
    watchdog: Option<Child>,
}

impl Cluster {
    /// Makes a cluster and starts its server. `settings` go into its configuration.
    ///
    /// # Errors
    /// When no server binaries are found (set `ICHIDO_PG_BIN`), or they fail.
    pub async fn start(settings: &[(&str, &str)]) -> Result<Self> {
        Self::start_in(folder()?, settings).await
    }

    /// The same, speaking TLS as `localhost` too. Also gives the file with the root certificate,
    /// for `sslrootcert`.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub async fn start_with_tls() -> Result<(Self, PathBuf)> {
        let folder = folder()?;
        let root = tls::write(folder.path())?;
        let file = |name: &str| folder.path().join(name).display().to_string();
        let (cert, key) = (file(tls::CERT), file(tls::KEY));
        let settings = [("ssl", "on"), ("ssl_cert_file", &*cert), ("ssl_key_file", &*key)];
        Ok((Self::start_in(folder, &settings).await?, root))
    }

    async fn start_in(folder: TempDir, settings: &[(&str, &str)]) -> Result<Self> {
        let bin = binaries()?;
        let data = folder.path().join("data");
        let made = user::command(&bin.join("initdb"))?
            .args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(&data)
            .current_dir(folder.path())
            .output()
            .context("initdb does not start")?;
        if !made.status.success() {
            bail!("initdb: {}", String::from_utf8_lossy(&made.stderr));
        }
        let port = free_port()?;
        fs::write(folder.path().join("settings.conf"), config(port, folder.path(), settings))?;
        let mut own = fs::OpenOptions::new().append(true).open(data.join("postgresql.conf"))?;
        std::io::Write::write_all(&mut own, b"\ninclude '../settings.conf'\n")?;
        let mut cluster = Self { folder, bin, port, server: None, watchdog: None };
        cluster.run().await?;
        Ok(cluster)
    }

    /// The URL of a database of this cluster.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// The port of 127.0.0.1; the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops the server and waits until it is gone.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn stop(&mut self, mode: StopMode) -> Result<()> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        let signal = match mode {
            StopMode::Fast => Signal::SIGINT,
            StopMode::Immediate => Signal::SIGQUIT,
        };
        kill(pid(&server), signal).context("the server is gone already")?;
        let end = Instant::now() + PATIENCE;
        while server.try_wait()?.is_none() {
            if Instant::now() > end {
                bail!("the server does not stop");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        if let Some(mut watchdog) = self.watchdog.take() {
            watchdog.kill()?;
            watchdog.wait()?;
        }
        Ok(())
    }

    /// Starts the server again, on the same port, after [`Cluster::stop`].
    ///
    /// # Errors
    /// When it does not become ready in time.
    pub async fn run(&mut self) -> Result<()> {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder.path().join("server.log"))?;
        let server = user::command(&self.bin.join("postgres"))?
            .arg("-D")
            .arg(self.folder.path().join("data"))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("postgres does not start")?;
        self.watchdog = Some(watchdog(server.id(), self.folder.path())?);
        self.server = Some(server);
        let url = self.url("postgres");
        let ready = || async { tokio_postgres::connect(&url, NoTls).await.is_ok().then_some(()) };
        if crate::eventually("the server is ready", PATIENCE, ready).await.is_err() {
            bail!("{}", fs::read_to_string(self.folder.path().join("server.log"))?);
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.stop(StopMode::Immediate));
    }
}

/// A folder that belongs to the server's user.
fn folder() -> Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("ichido-pg-").tempdir()?;
    user::give(folder.path())?;
    Ok(folder)
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("a process id is small"))
}

/// Waits for the end of our pipe, which comes with the end of our process, then stops the server
/// by its id and removes its folder.
fn watchdog(server: u32, folder: &Path) -> Result<Child> {
    const SCRIPT: &str = "trap '' INT TERM; cat >/dev/null; kill -QUIT \"$1\"; \
                          while kill -0 \"$1\"; do sleep 0.1; done; rm -rf -- \"$2\"";
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, "watchdog", &server.to_string()]).arg(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().context("no sh")
}

fn config(port: u16, folder: &Path, settings: &[(&str, &str)]) -> String {
    let mut all = vec![
        ("listen_addresses".to_owned(), "127.0.0.1".to_owned()),
        ("port".into(), port.to_string()),
        ("unix_socket_directories".into(), folder.display().to_string()),
        ("max_connections".into(), "200".into()),
        ("fsync".into(), "on".into()),
        ("synchronous_commit".into(), "on".into()),
        ("shared_buffers".into(), "128MB".into()),
        ("max_wal_size".into(), "512MB".into()),
    ];
    all.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    all.iter().fold(String::new(), |text, (name, value)| format!("{text}{name} = '{value}'\n"))
}

/// Where `postgres` and `initdb` are: `ICHIDO_PG_BIN`, else Debian's newest.
fn binaries() -> Result<PathBuf> {
    if let Some(bin) = std::env::var_os("ICHIDO_PG_BIN") {
        return Ok(bin.into());
    }
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            let bin = entry.path().join("bin");
            bin.join("postgres").exists().then_some((version, bin))
        })
        .collect();
    found.sort();
    let newest = found.pop().map(|(_, bin)| bin);
    newest
        .context("no PostgreSQL server found: install Debian's `postgresql`, or set ICHIDO_PG_BIN")
}
