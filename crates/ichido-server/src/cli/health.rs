//! `ichido health`: asks the server of this configuration, on this machine, how it is. For
//! containers and scripts that have no HTTP client.
//!
//! It must never wait without a limit: who asks has a schedule of its own.

use std::{net::SocketAddr, process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{Request, StatusCode, client::conn::http1, header::HOST};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::timeout};

use super::ConfigFile;
use crate::{
    config::{
        Config, HealthListen, TlsListeners,
        load::{self, Flags},
        reachable,
    },
    output,
};

/// Longer than the server lets its database take to answer a probe.
const WITHIN: Duration = Duration::from_secs(4);
/// A reason is a line.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// Options of `health`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ichido health --config ichido.toml           # would a delivery be taken?
  ichido health --live --config ichido.toml    # does the process answer at all?")]
pub(crate) struct Args {
    #[command(flatten)]
    file: ConfigFile,
    /// Ask /livez, which says nothing of the database, instead of /readyz
    #[arg(long)]
    live: bool,
}

/// Runs the command; exit code 0 for a 200, else 1 with the reason.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let config = load::load(&args.file, &Flags::default())?.config;
    let address = address(&config)?;
    let path = if args.live { "/livez" } else { "/readyz" };
    let asked = timeout(WITHIN, ask(address, path)).await;
    let (status, text) = asked
        .map_err(|_| anyhow::anyhow!("no answer within {} s", WITHIN.as_secs()))
        .and_then(|answer| answer)
        .with_context(|| format!("http://{address}{path}"))?;
    if status != StatusCode::OK {
        bail!("http://{address}{path}: {}: {text}", status.as_u16());
    }
    output::line(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Where the server of this configuration answers, seen from its own machine.
fn address(config: &Config) -> anyhow::Result<SocketAddr> {
    let (listen, setting) = match config.health.listen {
        HealthListen::Auto => (config.listen, "listen"),
        HealthListen::Own(address) => (address, "health.listen"),
        HealthListen::Off => bail!("health.listen is \"off\": set it to \"auto\" or an address"),
    };
    // A certificate is for the public name, not for this machine's.
    let all = config.tls.listeners == TlsListeners::All || setting == "listen";
    if !config.tls.cert.as_os_str().is_empty() && all {
        bail!(
            "{setting} speaks TLS: give health.listen an address of its own, and leave \
             tls.listeners at \"webhooks\""
        );
    }
    if listen.port() == 0 {
        bail!("{setting} has port 0, so nobody knows where it is: set a port");
    }
    Ok(reachable(listen))
}

async fn ask(address: SocketAddr, path: &str) -> anyhow::Result<(StatusCode, String)> {
    let stream = TcpStream::connect(address).await.context("no server answers there")?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::get(path).header(HOST, address.to_string());
    let answer = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(anyhow::Error::from_boxed)?.to_bytes();
    Ok((status, String::from_utf8_lossy(&body).trim().to_owned()))
}
