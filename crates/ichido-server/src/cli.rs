//! The command line: one subcommand a file below, and the options that all of them share.
//!
//! It must never hold logic that another command or a test would want; that lives beside it.

mod audit;
mod config;
pub(crate) mod demo;
mod migrate;
pub(crate) mod send;
mod serve;
mod stats;

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand, ValueEnum};

/// A transactional inbox for webhooks: every verified event takes effect once, in your
/// database, in your transaction.
#[derive(Debug, Parser)]
#[command(name = "ichido", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command. They win over the environment, which wins over the file.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Global {
    /// Configuration file (TOML); without one, defaults and the environment hold
    #[arg(long, global = true, value_name = "FILE", env = "ICHIDO_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Address to receive webhooks on; port 0 takes a free one
    #[arg(long, global = true, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Form of log lines on standard error
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Receive webhooks
    Serve(serve::Args),
    /// Bring the database's schema to this version
    Migrate(migrate::Args),
    /// Check, show or print the configuration
    Config(config::Args),
    /// Sign and post test events
    Send(Box<send::Args>),
    /// Show what waits, what needs review and what came in
    Stats(stats::Args),
    /// Check the invariants in the database; exit code 1 when one is broken
    Audit(audit::Args),
    /// Play a burst of events on an embedded database and count what became of them
    Demo(demo::Args),
}

impl Cli {
    /// Runs the command. An `Err` is a failure to be told to a person.
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let global = &self.global;
        match self.command {
            Command::Serve(args) => serve::run(args, global).await,
            Command::Migrate(args) => migrate::run(args, global).await,
            Command::Config(args) => config::run(&args, global),
            Command::Send(args) => send::run(&args, global).await,
            Command::Stats(args) => stats::run(args, global).await,
            Command::Audit(args) => audit::run(args, global).await,
            Command::Demo(args) => demo::run(args, global).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Cli::command().debug_assert();
    }
}
