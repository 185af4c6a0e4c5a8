//! The command line: one subcommand a file below, and the options that several of them share.
//!
//! It must never hold logic that another command or a test would want; that lives beside it.

mod audit;
mod config;
pub(crate) mod demo;
mod flags;
mod health;
mod migrate;
mod replay;
mod review;
pub(crate) mod send;
mod serve;
mod stats;

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{
    config::load::{self, Flags},
    engine::{self, Engine},
};

/// Where a newcomer may begin.
const EXAMPLES: &str = "\
Examples:
  ichido demo                                  # see it work, nothing needed
  ichido config default > ichido.toml          # every setting, explained
  ichido config check                          # what cannot work, and its fix
  ichido serve

`ichido help COMMAND` has an example for each command.";

/// A transactional inbox for webhooks: every verified event takes effect once, in your
/// database, in your transaction.
#[derive(Debug, Parser)]
#[command(name = "ichido", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Where the configuration is: an option of every command that reads it.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ConfigFile {
    /// Configuration file (TOML) [default: ichido.toml in the current directory, if any]
    #[arg(long, value_name = "FILE", env = "ICHIDO_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

/// The form of a result: an option of every command that has one.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Form {
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A list: where from, how many, in which form.
#[derive(Debug, Clone, Args)]
pub(crate) struct Listing {
    #[command(flatten)]
    pub(crate) file: ConfigFile,
    #[command(flatten)]
    pub(crate) form: Form,
    /// At most so many
    #[arg(long, default_value_t = LIST_MOST)]
    pub(crate) most: u32,
}

/// Rows of a list: more than a person reads at once.
const LIST_MOST: u32 = 100;

/// The database without its endpoints, for commands that neither receive nor work.
async fn reader(file: &ConfigFile) -> anyhow::Result<Arc<dyn Engine>> {
    engine::reader(&load::load(file, &Flags::default())?.config).await
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
    /// List, requeue or discard what needs review
    Review(review::Args),
    /// List or close flags: handlers' notes on events that were processed
    Flags(flags::Args),
    /// Have an event that is done run again
    Replay(replay::Args),
    /// Ask the running server whether it is ready; exit code 1 when it is not
    Health(health::Args),
    /// Check the invariants in the database; exit code 1 when one is broken
    Audit(audit::Args),
    /// Play a burst of events on an embedded database and count what became of them
    Demo(demo::Args),
}

impl Cli {
    /// Runs the command. An `Err` is a failure to be told to a person.
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Serve(args) => serve::run(args).await,
            Command::Migrate(args) => migrate::run(args).await,
            Command::Config(args) => config::run(&args),
            Command::Send(args) => send::run(&args).await,
            Command::Stats(args) => stats::run(args).await,
            Command::Review(args) => review::run(args).await,
            Command::Flags(args) => flags::run(args).await,
            Command::Replay(args) => replay::run(args).await,
            Command::Health(args) => health::run(args).await,
            Command::Audit(args) => audit::run(args).await,
            Command::Demo(args) => demo::run(args).await,
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

    #[test]
    fn the_help_of_every_command_has_an_example_that_parses() {
        let all = super::Cli::command();
        for command in all.get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples: Vec<_> =
                help.lines().filter_map(|line| line.trim().strip_prefix("ichido ")).collect();
            assert!(!examples.is_empty(), "{}: no example", command.get_name());
            for example in examples {
                let words = example.split(" #").next().unwrap_or_default().split_whitespace();
                let parsed = all.clone().try_get_matches_from(["ichido"].into_iter().chain(words));
                assert!(parsed.is_ok(), "ichido {example}: {parsed:?}");
            }
        }
    }

    #[test]
    fn a_command_has_only_the_options_that_it_uses() {
        for (command, option) in
            [("send", "--listen"), ("stats", "--log-format"), ("demo", "--config")]
        {
            let parsed = super::Cli::command().try_get_matches_from(["ichido", command, option]);
            let refused = parsed.expect_err("refused").kind();
            assert_eq!(refused, clap::error::ErrorKind::UnknownArgument, "{command} {option}");
        }
    }
}
