//! `ichido migrate`: brings the database's schema to this version, forward only.

use std::process::ExitCode;

use super::Global;
use crate::{config::load, engine, output};

/// Options of `migrate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the statements and change nothing
    #[arg(long)]
    plan: bool,
    /// Apply the schema of your application as well: the file that `[app.schema]` names
    #[arg(long)]
    app: bool,
}

/// Runs the command.
pub(crate) async fn run(args: Args, global: &Global) -> anyhow::Result<ExitCode> {
    let config = load::load(global)?.config;
    let steps = engine::migrate(&config, args.plan, args.app).await?;
    if global.json {
        output::json(&steps)?;
    } else if steps.is_empty() {
        output::line("nothing to do: the schema is up to date")?;
    } else {
        for step in &steps {
            output::line(step)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
