//! For our tests and the users': a private PostgreSQL, a fault proxy that knows COMMIT, process
//! control, and waiting for a condition.
//!
//! It never touches a server or a process that it did not start, and talks to 127.0.0.1 only.
#![forbid(unsafe_code)]

mod bouncer;
mod cluster;
mod database;
mod process;
mod proxy;
pub mod tls;
mod user;

use std::{future::Future, net::TcpListener, time::Duration};

use anyhow::{Context, Result, bail};

pub use bouncer::PgBouncer;
pub use cluster::{Cluster, StopMode};
pub use database::Database;
pub use process::Process;
pub use proxy::{Fault, Proxy};

/// A TCP port of 127.0.0.1 that was free a moment ago.
///
/// # Errors
/// When the machine has none left.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port")?;
    Ok(listener.local_addr()?.port())
}

/// Asks `condition` again and again until it gives a value.
///
/// # Errors
/// When `deadline` has passed; the error names `what`.
pub async fn eventually<T, F>(
    what: &str,
    deadline: Duration,
    mut condition: impl FnMut() -> F,
) -> Result<T>
where
    F: Future<Output = Option<T>>,
{
    const PAUSE: Duration = Duration::from_millis(10);
    let asking = async {
        loop {
            if let Some(value) = condition().await {
                return value;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    match tokio::time::timeout(deadline, asking).await {
        Ok(value) => Ok(value),
        Err(_) => bail!("not within {deadline:?}: {what}"),
    }
}
