//! `ichido flags`: handlers' notes for a human on events that were processed.

use std::process::ExitCode;

use clap::Subcommand;

use super::{ConfigFile, Listing, reader};
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
    List(Listing),
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
        Action::List(listing) => list(&listing).await,
        Action::Close { file, flag, note } => {
            let desk = reader(&file).await?;
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

async fn list(listing: &Listing) -> anyhow::Result<ExitCode> {
    let desk = reader(&listing.file).await?;
    let flags = desk.flags(listing.most).await?;
    desk.close().await;
    if listing.form.json {
        output::json(&flags)?;
        return Ok(ExitCode::SUCCESS);
    }
    if flags.is_empty() {
        output::line("no flag is open")?;
    }
    for flag in flags {
        let (event, reason) = (one_line(&flag.event_id), one_line(&flag.reason));
        let (id, endpoint, at) = (flag.flag, flag.endpoint, flag.raised_at);
        output::line(&format!("{id}  {endpoint}  {event}  raised {at}\n  {reason}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
