//! A fresh database for each test, in a cluster that the tests share.
//!
//! The cluster is the one that `ICHIDO_TEST_POSTGRES` names, else one that this process starts
//! and that ends with it.

use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};

use crate::Cluster;

static SHARED: OnceCell<(String, Option<Cluster>)> = OnceCell::const_new();
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A database of its own for one test.
#[derive(Debug)]
pub struct Database {
    url: String,
}

impl Database {
    /// Makes an empty database; `name` helps to find it.
    ///
    /// # Errors
    /// When there is no server and none can be started.
    pub async fn fresh(name: &str) -> Result<Self> {
        let base = &SHARED.get_or_try_init(shared).await?.0;
        let client = connect(&format!("{base}/postgres")).await?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let word: String = name.chars().filter(char::is_ascii_alphanumeric).take(30).collect();
        let name = format!("t_{word}_{}_{number}", std::process::id()).to_ascii_lowercase();
        // A name of a run that was killed: process ids come again.
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await?;
        client.batch_execute(&format!("CREATE DATABASE {name}")).await?;
        Ok(Self { url: format!("{base}/{name}") })
    }

    /// Its `postgres://` URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A plain connection to it.
    ///
    /// # Errors
    /// When the server is away.
    pub async fn client(&self) -> Result<Client> {
        connect(&self.url).await
    }
}

/// Connects, and drives the connection on a task.
async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.context("connect")?;
    tokio::spawn(connection);
    Ok(client)
}

async fn shared() -> Result<(String, Option<Cluster>)> {
    if let Ok(url) = std::env::var("ICHIDO_TEST_POSTGRES") {
        return Ok((url.trim_end_matches('/').to_owned(), None));
    }
    let cluster = Cluster::start(&[]).await?;
    let url = cluster.url("");
    Ok((url.trim_end_matches('/').to_owned(), Some(cluster)))
}
