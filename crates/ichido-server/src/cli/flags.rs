//! `ichido flags`: handlers' notes for a human on events that were processed.

use std::process::ExitCode;

use clap::Subcommand;

use super::{
    ConfigFile, Form,
    review::{MOST, desk},
};
use crate::{log::one_line, output};

/// Options of `flags`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ichido flags list
  ichido flags close 7 --note refunded")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Open flags, the oldest first
    List {
        #[command(flatten)]
        file: ConfigFile,
        #[command(flatten)]
        form: Form,
        /// At most so many
        #[arg(long, default_value_t = MOST)]
        most: u32,
    },
    /// Close a flag
    Close {
        #[command(flatten)]
        file: ConfigFile,
        /// The flag, as `flags list` shows it
        flag: String,
        /// What was done about it
        #[arg(long)]
        note: String,
    },
}

/// Runs the command; exit code 1 when the flag was not open.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::List { file, form, most } => {
            let desk = desk(&file).await?;
            let flags = desk.flags(most).await?;
            desk.close().await;
            if form.json {
                output::json(&flags)?;
            } else if flags.is_empty() {
                output::line("no flag is open")?;
            }
            for flag in flags.iter().filter(|_| !form.json) {
                let (event, reason) = (one_line(&flag.event_id), one_line(&flag.reason));
                let (id, endpoint, at) = (&flag.flag, &flag.endpoint, &flag.raised_at);
                output::line(&format!("{id}  {endpoint}  {event}  raised {at}\n  {reason}"))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Action::Close { file, flag, note } => {
            let desk = desk(&file).await?;
            let closed = desk.close_flag(&flag, &note).await?;
            desk.close().await;
            if closed {
                output::line(&format!("closed {flag}"))?;
            } else {
                output::note(&format!("flag {flag} is not open (any more): nothing was changed"));
            }
            Ok(ExitCode::from(u8::from(!closed)))
        }
    }
}
