//! `ichido config`: checks, shows and prints the configuration. Opens no database.

use std::process::ExitCode;

use clap::Subcommand;

use super::{ConfigFile, Form};
use crate::{
    config::{
        DEFAULTS,
        load::{self, Flags},
        show,
    },
    engine, output,
};

/// Options of `config`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ichido config default                        # every setting with its reason
  ichido config check --config ichido.toml
  ichido config show --config ichido.toml")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Clone, Subcommand)]
enum What {
    /// Load everything, SQL files and secrets included, and print each problem with its fix;
    /// exit code 1 when there is one
    Check(Of),
    /// Print the effective values and where each came from; secrets are masked
    Show(Of),
    /// Print the commented default file
    Default,
}

/// Which configuration, and how to print what is found.
#[derive(Debug, Clone, clap::Args)]
struct Of {
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    form: Form,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.what {
        What::Check(of) => return check(of),
        What::Show(of) => {
            let loaded = load::load(&of.file, &Flags::default())?;
            let specs = engine::specs(&loaded.config);
            if of.form.json {
                output::json(&show::values(&loaded, &specs))?;
            } else {
                output::line(&show::text(&loaded, &specs))?;
            }
        }
        What::Default => output::line(DEFAULTS.trim_end())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn check(of: &Of) -> anyhow::Result<ExitCode> {
    let loaded = load::load(&of.file, &Flags::default())?;
    let problems: Vec<_> =
        engine::problems(&loaded.config).iter().map(ToString::to_string).collect();
    let code = ExitCode::from(u8::from(!problems.is_empty()));
    for name in &loaded.unused {
        output::note(&format!("warning: {name} is no setting and is not used"));
    }
    if of.form.json {
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
