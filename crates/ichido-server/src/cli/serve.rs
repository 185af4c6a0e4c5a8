//! `ichido serve`: receives until it is told to stop.

use std::{net::SocketAddr, process::ExitCode};

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

use super::{ConfigFile, LogFormat};
use crate::{
    config::{
        load::{self, Flags, Loaded},
        roles::Roles,
    },
    log,
    serve::Server,
};

/// Options of `serve`. They win over the environment, which wins over the file.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ichido serve --config ichido.toml
  ichido serve --config ichido.toml --listen 0.0.0.0:8080 --log-format json
  ichido serve --roles work                    # beside others that receive")]
pub(crate) struct Args {
    #[command(flatten)]
    file: ConfigFile,
    /// Address to receive webhooks on; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// What this process does: receive, work, or both, with a comma between them
    #[arg(long, value_name = "ROLES")]
    roles: Option<Roles>,
    /// Form of log lines on standard error
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
}

/// Serves until SIGTERM or SIGINT; a second one ends it at once.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { file, listen, roles, log_format } = args;
    let flags = Flags { listen, log_format, roles };
    let Loaded { config, file, unused, .. } = load::load(&file, &flags)?;
    log::init(&config.log)?;
    if let Some(file) = &file {
        info!("configuration: {}", file.display());
    } else {
        info!("no configuration file: defaults and the environment hold");
    }
    for name in unused {
        warn!("{name} is no setting and was not used: `ichido config default` lists them");
    }
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
