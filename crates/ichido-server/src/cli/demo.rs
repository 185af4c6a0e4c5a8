//! `ichido demo`: the real server on an embedded file, a burst of hostile deliveries over HTTP,
//! and a count of what became of them.
//!
//! It must never take the server's word for its verdict: what is expected comes from the sender's
//! own model, what is found from the tables.

mod found;
mod play;
mod site;
mod story;
mod verdict;

use std::{
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use tokio::{sync::oneshot, task::JoinHandle};

use self::{play::Played, site::Site, story::Script, verdict::Verdict};
use super::{Form, send::client::Client};
use crate::{config::Config, engine, output, serve::Server};

/// Options of `demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ichido demo
  ichido demo --keep --dir play                # its files stay, its server runs on")]
pub(crate) struct Args {
    #[command(flatten)]
    form: Form,
    /// Where to put its files; a new or empty directory [default: a temporary one, removed]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Leave the server running, and say what to try next
    #[arg(long)]
    keep: bool,
}

/// A run that takes longer is broken off: something hangs.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// Runs the command; exit code 1 when anything is off.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let site = Site::new(args.dir.as_deref(), args.keep)?;
    let config = site.config()?;
    let server = Running::start(config.clone()).await?;
    let url = format!("http://{}/webhooks/{}", server.address, site::ENDPOINT);
    output::note(&format!("playing on {url}, in {}", site.folder().display()));

    let playing = rehearse(&site, &config, &url);
    let verdict = tokio::select! {
        verdict = tokio::time::timeout(PATIENCE, playing) => {
            verdict.with_context(|| format!("not done within {} s", PATIENCE.as_secs()))??
        }
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    };
    if args.form.json {
        output::json(&verdict)?;
    } else {
        output::line(&verdict.text())?;
    }
    if args.keep {
        output::note(&site.what_next(&server.address));
        // A failure to listen for it ends the server as the signal would.
        let _ = tokio::signal::ctrl_c().await;
    }
    server.stop().await?;
    Ok(ExitCode::from(u8::from(!verdict.good)))
}

/// Plays the script and compares the model with the tables.
async fn rehearse(site: &Site, config: &Config, url: &str) -> anyhow::Result<Verdict> {
    let script = Script::new();
    let expected = script.expected();
    let client = Client::new(&url.parse()?, REQUEST_TIMEOUT, true, None)?;
    let began = Instant::now();
    let played = Played::play(script, &client, &site.secret).await?;
    let took = began.elapsed();
    let found = found::read(&site.database())?;
    let reader = engine::reader(config).await?;
    let audit = reader.audit().await;
    reader.close().await;
    Ok(Verdict::new(&expected, played, &found, audit?, took))
}

/// The server, running on a task.
struct Running {
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Running {
    async fn start(config: Config) -> anyhow::Result<Self> {
        let server = Server::bind(config).await?;
        let address = server.address()?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.run(async {
            // A sender that is gone is a stop as well.
            let _ = stopped.await;
        }));
        Ok(Self { address, stop, task })
    }

    async fn stop(self) -> anyhow::Result<()> {
        // When nobody listens any more, the server has ended, and its task says why.
        let _ = self.stop.send(());
        self.task.await.context("the server ended badly")?
    }
}
