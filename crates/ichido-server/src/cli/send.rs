//! `ichido send`.

use std::process::ExitCode;

use super::Global;

/// Options of `send`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) async fn run(_args: Args, _global: &Global) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
