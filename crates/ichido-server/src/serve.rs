//! The server: an open inbox behind HTTP, from binding to the last answer.
//!
//! It must never refuse to start because the database is away: it says so in `/readyz` and waits.

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, anyhow};
use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::{JoinError, JoinHandle},
    time::{Instant, timeout_at},
};
use tracing::{info, warn};

use crate::{
    config::{Config, HealthListen},
    engine,
    http::{self, App, Routes},
    open_files,
};

/// After the shutdown deadline, the time to close the store.
const CLOSING: Duration = Duration::from_secs(1);
/// At the very end, the time for probes that are being answered.
const LAST_PROBES: Duration = Duration::from_secs(1);

/// A server that is bound and not yet answering.
pub(crate) struct Server {
    app: Arc<App>,
    listener: TcpListener,
    routes: Routes,
    health: Option<TcpListener>,
    config: Config,
}

impl Server {
    /// Opens the inbox and binds the listeners. Refuses what contradicts itself.
    pub(crate) async fn bind(config: Config) -> anyhow::Result<Self> {
        let engine = engine::open(&config).await.map_err(|problems| {
            let list: Vec<_> = problems.iter().map(|problem| format!("\n  {problem}")).collect();
            anyhow!("the configuration cannot work:{}", list.concat())
        })?;
        open_files::allow(&config.limits);
        let listener = listen(config.listen, "listen").await?;
        let health = match config.health.listen {
            HealthListen::Own(address) => Some(listen(address, "health.listen").await?),
            HealthListen::Auto | HealthListen::Off => None,
        };
        let auto = config.health.listen == HealthListen::Auto;
        let private = listener.local_addr()?.ip().is_loopback();
        let routes = Routes { webhooks: true, health: auto, details: auto && private };
        let app = Arc::new(App::new(engine, config.limits.clone()));
        Ok(Self { app, listener, routes, health, config })
    }

    /// Where webhooks arrive, with the port that was taken.
    pub(crate) fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `shutdown` is done, finishes what is in flight, and closes the store.
    pub(crate) async fn run(self, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
        self.announce()?;
        let deadline = self.config.shutdown_deadline.0;
        let webhooks = Serving::start(self.listener, &self.app, self.routes, deadline);
        let health = self.health.map(|listener| {
            let routes = Routes { webhooks: false, health: true, details: true };
            Serving::start(listener, &self.app, routes, LAST_PROBES)
        });
        http::first_check(&self.app).await;
        shutdown.await;
        info!("stopping: no new connections, finishing what is in flight");
        let end = Instant::now() + deadline;
        self.app.stopping();
        webhooks.stop().await.context("the listener ended badly")?;
        let closing = async {
            self.app.drained().await;
            self.app.engine().close().await;
        };
        if timeout_at(end.max(Instant::now() + CLOSING), closing).await.is_err() {
            warn!("the store was still busy at the shutdown deadline");
        }
        // Last, so that whoever asks meanwhile hears that we stop.
        if let Some(health) = health {
            health.stop().await.context("the health listener ended badly")?;
        }
        info!("stopped");
        Ok(())
    }

    fn announce(&self) -> anyhow::Result<()> {
        let address = self.address()?;
        let endpoints = self.app.engine().endpoints();
        for spec in &endpoints {
            let (name, provider) = (&spec.name, &spec.provider);
            let mode = format!("{:?}", spec.mode).to_lowercase();
            let engine = self.app.engine().name();
            let handlers = spec.patterns.len();
            info!(
                %provider, mode, engine, handlers,
                "endpoint {name}: http://{address}/webhooks/{name}"
            );
        }
        if endpoints.is_empty() {
            warn!("no endpoint is configured: nothing can be received; add [endpoint.NAME]");
        }
        if let Some(health) = &self.health {
            info!("health and metrics on http://{}", health.local_addr()?);
        }
        info!("listening on http://{address}");
        Ok(())
    }
}

/// A listener on a task of its own.
struct Serving {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Serving {
    fn start(listener: TcpListener, app: &Arc<App>, routes: Routes, deadline: Duration) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async {
            // An error says that the sender is gone, which is a stop as well.
            let _ = stopped.await;
        };
        let serving = http::serve(listener, app.clone(), routes, stopped, deadline);
        Self { stop, task: tokio::spawn(serving) }
    }

    async fn stop(self) -> Result<(), JoinError> {
        // When nobody listens any more, the task has ended, and says why.
        let _ = self.stop.send(());
        self.task.await
    }
}

async fn listen(address: SocketAddr, setting: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}: free it or set another `{setting}`"))
}
