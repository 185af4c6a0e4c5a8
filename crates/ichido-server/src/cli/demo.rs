//! `ichido demo`.

use std::process::ExitCode;

use super::Global;

/// Options of `demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) async fn run(_args: Args, _global: &Global) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
