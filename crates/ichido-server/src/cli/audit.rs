//! `ichido audit`: the invariants as queries, and a remark on what only a human can judge.

use std::process::ExitCode;

use super::{ConfigFile, Form, reader};
use crate::output;

/// Options of `audit`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  ichido audit --config ichido.toml")]
pub(crate) struct Args {
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    form: Form,
}

/// Runs the command; exit code 1 when an invariant is broken.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let inbox = reader(&args.file).await?;
    let findings = inbox.audit().await?;
    let repeated = inbox.stats().await?.repeated_bodies;
    inbox.close().await;
    if args.form.json {
        output::json(&findings)?;
    } else if findings.is_empty() {
        output::line("every invariant holds")?;
    } else {
        for finding in &findings {
            output::line(&format!(
                "broken: {} ({} row(s), such as {})\n  promised: {}",
                finding.invariant, finding.count, finding.example, finding.promise
            ))?;
        }
    }
    if repeated > 0 {
        // No broken invariant: two honest events can be alike.
        output::note(&format!(
            "look at signed_digest: {repeated} bodies came under more than one event id that \
             nobody signed"
        ));
    }
    Ok(ExitCode::from(u8::from(!findings.is_empty())))
}
