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
    config::{Config, HealthListen, TlsListeners},
    engine,
    http::{self, App, Face, Routes},
    open_files,
    tls::{Renewal, Tls},
};

/// After the shutdown deadline, the time to close the store.
const CLOSING: Duration = Duration::from_secs(1);
/// At the very end, the time for probes that are being answered.
const LAST_PROBES: Duration = Duration::from_secs(1);

/// A server that is bound and not yet answering.
pub(crate) struct Server {
    app: Arc<App>,
    webhooks: (TcpListener, Face),
    health: Option<(TcpListener, Face)>,
    renewal: Option<Renewal>,
    config: Config,
}

impl Server {
    /// Binds the listeners and opens the inbox. Refuses what contradicts itself. Without its port
    /// it leaves no trace in a database.
    pub(crate) async fn bind(config: Config) -> anyhow::Result<Self> {
        let listener = listen(config.listen, "listen").await?;
        let private = listener.local_addr()?.ip().is_loopback();
        let health = match config.health.listen {
            HealthListen::Own(address) => Some(listen(address, "health.listen").await?),
            HealthListen::Auto | HealthListen::Off => None,
        };
        let (opened, tls) = match Tls::load(&config) {
            Ok(tls) => (engine::open(&config).await.map_err(|all| (all, None)), tls.map(Arc::new)),
            Err(problem) => (Err((engine::problems(&config), Some(problem))), None),
        };
        let engine = opened.map_err(|(problems, tls)| {
            let all = problems.into_iter().map(|problem| problem.0).chain(tls);
            let list: Vec<_> = all.map(|problem| format!("\n  {problem}")).collect();
            anyhow!("the configuration cannot work:{}", list.concat())
        })?;
        let renewal = tls.clone().map(|tls| Renewal::new(tls, config.tls.renew_every.0));
        let renewal = renewal.transpose()?;
        open_files::allow(&config.limits);
        let auto = config.health.listen == HealthListen::Auto;
        let webhooks = config.roles.receive;
        let routes = Routes { webhooks, health: auto, details: auto && private };
        let webhooks = (listener, Face { routes, tls: tls.clone() });
        let health = health.map(|listener| {
            let tls = tls.filter(|_| config.tls.listeners == TlsListeners::All);
            let routes = Routes { webhooks: false, health: true, details: true };
            (listener, Face { routes, tls })
        });
        let app = Arc::new(App::new(engine, config.limits.clone()));
        Ok(Self { app, webhooks, health, renewal, config })
    }

    /// Where webhooks arrive, with the port that was taken.
    pub(crate) fn address(&self) -> std::io::Result<SocketAddr> {
        self.webhooks.0.local_addr()
    }

    /// Answers until `shutdown` is done, finishes what is in flight, and closes the store.
    pub(crate) async fn run(self, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
        self.announce()?;
        let deadline = self.config.shutdown_deadline.0;
        let webhooks = Serving::start(self.webhooks, &self.app, deadline);
        let health = self.health.map(|health| Serving::start(health, &self.app, LAST_PROBES));
        let working = self.config.roles.work.then(|| {
            info!("working: at most {} handlers at once", self.config.work.concurrency);
            Working::start(&self.app, self.config.work.concurrency)
        });
        let renewing = self.renewal.map(|renewal| {
            let app = self.app.clone();
            tokio::spawn(async move { renewal.run(app.metrics()).await })
        });
        http::first_check(&self.app).await;
        shutdown.await;
        self.app.stopping();
        info!("stopping: no new connections, finishing what is in flight");
        let end = Instant::now() + deadline;
        let working = working.map(Working::stop);
        webhooks.stop().await.context("the listener ended badly")?;
        if let Some(handlers) = working
            && timeout_at(end, handlers).await.is_err()
        {
            warn!("handlers still ran at the shutdown deadline: their events come back");
        }
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
        if let Some(renewing) = renewing {
            renewing.abort();
        }
        info!("stopped");
        Ok(())
    }

    fn announce(&self) -> anyhow::Result<()> {
        let url = format!("{}://{}", self.webhooks.1.scheme(), self.address()?);
        let endpoints = self.app.engine().endpoints();
        for spec in &endpoints {
            let (name, provider) = (&spec.name, &spec.provider);
            let mode = format!("{:?}", spec.mode).to_lowercase();
            let engine = self.app.engine().name();
            let handlers = spec.patterns.len();
            let place = if self.config.roles.receive {
                format!("{url}/webhooks/{name}")
            } else {
                "not received here".to_owned()
            };
            info!(%provider, mode, engine, handlers, "endpoint {name}: {place}");
        }
        if endpoints.is_empty() {
            warn!("no endpoint is configured: nothing can be received; add [endpoint.NAME]");
        }
        if let Some((listener, face)) = &self.health {
            info!("health and metrics on {}://{}", face.scheme(), listener.local_addr()?);
        }
        info!("listening on {url}");
        Ok(())
    }
}

/// The worker on a task of its own.
struct Working {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Working {
    fn start(app: &Arc<App>, concurrency: usize) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = Box::pin(async {
            // An error says that the sender is gone, which is a stop as well.
            let _ = stopped.await;
        });
        let counted = app.clone();
        let observe =
            Box::new(move |ended: &ichido::Ended<'_>| counted.metrics().work.ended(ended));
        let task = tokio::spawn(app.engine().work(concurrency, observe, stopped));
        Self { stop, task }
    }

    /// No more claims; the task ends with the handlers that run.
    fn stop(self) -> JoinHandle<()> {
        // An error says that the task has ended.
        let _ = self.stop.send(());
        self.task
    }
}

/// A listener on a task of its own.
struct Serving {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Serving {
    fn start((listener, face): (TcpListener, Face), app: &Arc<App>, deadline: Duration) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async {
            // An error says that the sender is gone, which is a stop as well.
            let _ = stopped.await;
        };
        let serving = http::serve(listener, app.clone(), face, stopped, deadline);
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
