//! A private PgBouncer in transaction mode, as many production databases are reached.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio_postgres::NoTls;

use crate::{eventually, free_port, user};

/// A pooler in front of a database of 127.0.0.1.
#[derive(Debug)]
pub struct PgBouncer {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl PgBouncer {
    /// Where Debian installs it; `None`: not installed.
    pub fn binary() -> Option<PathBuf> {
        let places = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"];
        places.into_iter().map(PathBuf::from).find(|path| path.exists())
    }

    /// Starts a pooler in front of the server of `url`, with few server connections, so that
    /// sessions really are shared.
    ///
    /// # Errors
    /// When it is not installed or does not become ready.
    pub async fn start(url: &str) -> Result<Self> {
        let binary = Self::binary().context("install Debian's `pgbouncer`")?;
        let server: tokio_postgres::Config = url.parse()?;
        let database = server.get_dbname().context("a URL with a database")?;
        let server_port = server.get_ports().first().context("a URL with a port")?;
        let folder = tempfile::Builder::new().prefix("ichido-pgbouncer-").tempdir()?;
        let port = free_port()?;
        let users = folder.path().join("users.txt");
        fs::write(&users, "\"postgres\" \"\"\n")?;
        let config = folder.path().join("pgbouncer.ini");
        fs::write(&config, ini(*server_port, port, &users))?;
        user::give(folder.path())?;
        let child = user::command(&binary)?
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let bouncer = Self { child, port, _folder: folder };
        let through = bouncer.url(database);
        let ready =
            || async { tokio_postgres::connect(&through, NoTls).await.is_ok().then_some(()) };
        eventually("pgbouncer is ready", Duration::from_secs(20), ready).await?;
        Ok(bouncer)
    }

    /// The URL of a database through the pooler.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn ini(server_port: u16, port: u16, users: &Path) -> String {
    format!(
        "[databases]\n* = host=127.0.0.1 port={server_port}\n[pgbouncer]\n\
         listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
         auth_type = trust\nauth_file = {}\npool_mode = transaction\n\
         default_pool_size = 3\nmax_client_conn = 200\nserver_idle_timeout = 5\n",
        users.display()
    )
}
