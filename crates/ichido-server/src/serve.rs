//! The server: an open inbox behind HTTP, from binding to the last answer.
//!
//! It must never refuse to start because the database is away: it says so in `/readyz` and waits.

use std::{future::Future, net::SocketAddr, sync::Arc};

use anyhow::{Context, anyhow};
use tokio::{net::TcpListener, sync::watch};
use tracing::{info, warn};

use crate::{
    config::{AdminListen, Config},
    engine,
    http::{self, App, Routes},
};

/// A server that is bound and not yet answering.
pub(crate) struct Server {
    app: Arc<App>,
    listener: TcpListener,
    routes: Routes,
    admin: Option<TcpListener>,
    config: Config,
}

impl Server {
    /// Opens the inbox and binds the listeners. Refuses what contradicts itself.
    pub(crate) async fn bind(config: Config) -> anyhow::Result<Self> {
        let engine = engine::open(&config).await.map_err(|problems| {
            let list: Vec<_> = problems.iter().map(|problem| format!("\n  {problem}")).collect();
            anyhow!("the configuration cannot work:{}", list.concat())
        })?;
        let listener = listen(config.listen, "listen").await?;
        let admin = match config.admin.listen {
            AdminListen::Own(address) => Some(listen(address, "admin.listen").await?),
            AdminListen::Auto | AdminListen::Off => None,
        };
        let auto = config.admin.listen == AdminListen::Auto;
        let private = listener.local_addr()?.ip().is_loopback();
        let routes = Routes { webhooks: true, health: auto, details: auto && private };
        let app = Arc::new(App::new(engine, config.limits.clone()));
        Ok(Self { app, listener, routes, admin, config })
    }

    /// Where webhooks arrive, with the port that was taken.
    pub(crate) fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `shutdown` is done, finishes what is in flight, and closes the store.
    pub(crate) async fn run(self, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
        self.announce()?;
        let (stop, stopped) = watch::channel(false);
        let deadline = self.config.shutdown_deadline.0;
        let on_stop = |mut stopped: watch::Receiver<bool>| async move {
            // An error says that the sender is gone, which is a stop as well.
            let _ = stopped.wait_for(|stop| *stop).await;
        };
        let webhooks = http::serve(
            self.listener,
            self.app.clone(),
            self.routes,
            on_stop(stopped.clone()),
            deadline,
        );
        let webhooks = tokio::spawn(webhooks);
        let admin = self.admin.map(|listener| {
            let routes = Routes { webhooks: false, health: true, details: true };
            let stopped = on_stop(stopped.clone());
            tokio::spawn(http::serve(listener, self.app.clone(), routes, stopped, deadline))
        });
        http::first_check(&self.app).await;
        shutdown.await;
        info!("stopping: no new connections, finishing what is in flight");
        self.app.stopping();
        stop.send_replace(true);
        webhooks.await.context("the listener ended badly")?;
        if let Some(admin) = admin {
            admin.await.context("the admin listener ended badly")?;
        }
        if tokio::time::timeout(deadline, self.app.engine().close()).await.is_err() {
            warn!("the store was still busy at the shutdown deadline");
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
        if let Some(admin) = &self.admin {
            info!("health and metrics on http://{}", admin.local_addr()?);
        }
        info!("listening on http://{address}");
        Ok(())
    }
}

async fn listen(address: SocketAddr, setting: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}: free it or set another `{setting}`"))
}
