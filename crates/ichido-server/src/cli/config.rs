//! `ichido config`: checks, shows and prints the configuration. Opens no database.

use std::process::ExitCode;

use clap::Subcommand;

use super::Global;
use crate::{
    config::{DEFAULTS, load, show},
    engine, output,
};

/// Options of `config`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum What {
    /// Load everything, SQL files and secrets included, and print each problem with its fix;
    /// exit code 1 when there is one
    Check,
    /// Print the effective values and where each came from; secrets are masked
    Show,
    /// Print the commented default file
    Default,
}

/// Runs the command.
pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Check => return check(global),
        What::Show => {
            let loaded = load::load(global)?;
            if global.json {
                output::json(&show::values(&loaded))?;
            } else {
                output::line(&show::text(&loaded))?;
            }
        }
        What::Default => output::line(DEFAULTS.trim_end())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn check(global: &Global) -> anyhow::Result<ExitCode> {
    let loaded = load::load(global)?;
    let problems: Vec<_> =
        engine::problems(&loaded.config).iter().map(ToString::to_string).collect();
    let code = ExitCode::from(u8::from(!problems.is_empty()));
    if global.json {
        output::json(&serde_json::json!({ "problems": problems }))?;
        return Ok(code);
    }
    for problem in &problems {
        output::line(problem)?;
    }
    let summary = match (problems.len(), loaded.config.endpoint.len()) {
        (0, endpoints) => format!("good: {endpoints} endpoint(s)"),
        (count, _) => format!("{count} problem(s)"),
    };
    output::line(&summary)?;
    Ok(code)
}
