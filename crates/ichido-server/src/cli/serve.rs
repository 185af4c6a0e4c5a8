//! `ichido serve`: receives until it is told to stop.

use std::process::ExitCode;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tracing::warn;

use super::Global;
use crate::{config::load, log, serve::Server};

/// Options of `serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Serves until SIGTERM or SIGINT; a second one ends it at once.
pub(crate) async fn run(_args: Args, global: &Global) -> anyhow::Result<ExitCode> {
    let config = load::load(global)?.config;
    log::init(&config.log)?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let server = Server::bind(config).await?;
    let mut told = async move || {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = server.run(async {
        // A sender that is gone is a stop as well.
        let _ = stopped.await;
    });
    let again = async {
        told().await;
        let _ = stop.send(());
        told().await;
        warn!(
            "a second signal: ending at once; what was not answered will be sent again, and what \
             was not committed is rolled back"
        );
    };
    tokio::select! {
        result = serving => result.map(|()| ExitCode::SUCCESS),
        () = again => Ok(ExitCode::FAILURE),
    }
}
