//! `ichido replay`: has an event that is done run again, as a new run that somebody asked for.

use std::process::ExitCode;

use uuid::Uuid;

use super::{ConfigFile, reader};
use crate::output;

/// Options of `replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The handler runs again, and its effect is added to that of the earlier runs; its messages carry the
same keys. A worker does it: see roles in `ichido config default`.

Example:
  ichido replay 019af0c4-8a52-7c31-9b1e-5a6b7c8d9e0f --reason restored --by ada")]
pub(crate) struct Args {
    #[command(flatten)]
    file: ConfigFile,
    /// The event's receipt, as the view `webhook_inbox` shows it
    receipt: Uuid,
    /// Why
    #[arg(long)]
    reason: String,
    /// Who asks
    #[arg(long, env = "USER")]
    by: String,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let desk = reader(&args.file).await?;
    let run = desk.replay(args.receipt, &args.by, &args.reason).await?;
    desk.close().await;
    output::line(&format!("run {run} of {} waits for a worker", args.receipt))?;
    Ok(ExitCode::SUCCESS)
}
