//! `ichido stats`: what waits, what needs review, what came in during the last hour.

use std::process::ExitCode;

use ichido::Stats;

use super::{ConfigFile, Form, reader};
use crate::{log::one_line, output};

/// Options of `stats`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ichido stats --config ichido.toml
  ichido stats --config ichido.toml --json")]
pub(crate) struct Args {
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    form: Form,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let inbox = reader(&args.file).await?;
    let stats = inbox.stats().await?;
    inbox.close().await;
    if args.form.json {
        output::json(&stats)?;
    } else {
        output::line(&text(&stats))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(stats: &Stats) -> String {
    let age = stats.oldest_age_seconds.map_or("-".into(), |age| format!("{age:.1} s"));
    let mut lines = vec![
        format!("unprocessed      {}", stats.unprocessed),
        format!("oldest age       {age}"),
        format!("needs review     {}", stats.needs_review),
        format!("flags            {}", stats.flags),
        format!("conflicts        {}", stats.conflicts),
        format!("repeated bodies  {}", stats.repeated_bodies),
        format!("duplicates       {}", stats.duplicates),
        format!("outbox waiting   {}", stats.outbox_waiting),
        "received in the last hour".into(),
    ];
    if stats.received_last_hour.is_empty() {
        lines.push("  nothing".into());
    }
    for row in &stats.received_last_hour {
        let event_type = one_line(&row.event_type);
        lines.push(format!("  {:>8}  {}  {event_type}", row.count, row.endpoint));
    }
    lines.join("\n")
}
