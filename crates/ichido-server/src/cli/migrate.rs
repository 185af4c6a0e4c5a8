//! `ichido migrate`: brings the database's schema to this version, forward only.

use std::process::ExitCode;

use super::{ConfigFile, Form};
use crate::{
    config::load::{self, Flags},
    engine, output,
};

/// Options of `migrate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ichido migrate --plan --config ichido.toml   # what it would do
  ichido migrate --app --config ichido.toml    # with the tables of your application")]
pub(crate) struct Args {
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    form: Form,
    /// Print the statements and change nothing
    #[arg(long)]
    plan: bool,
    /// Apply the schema of your application as well: the file that `[app.schema]` names
    #[arg(long)]
    app: bool,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let config = load::load(&args.file, &Flags::default())?.config;
    let steps = engine::migrate(&config, args.plan, args.app).await?;
    if args.form.json {
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
