//! `ichido review`: what needs a human, and what the human decides.

use std::process::ExitCode;

use clap::Subcommand;
use uuid::Uuid;

use super::{ConfigFile, Listing, reader};
use crate::{log::one_line, output};

/// Options of `review`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ichido review list
  ichido review requeue 019af0c4-8a52-7c31-9b1e-5a6b7c8d9e0f
  ichido review discard 019af0c4-8a52-7c31-9b1e-5a6b7c8d9e0f --reason test --by ada")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// What needs review, the longest waiting first
    List(Listing),
    /// Send events back to their queue with fresh attempts; their history stays
    Requeue {
        #[command(flatten)]
        file: ConfigFile,
        /// Their receipts, as `review list` shows them
        #[arg(required = true, value_name = "RECEIPT")]
        receipts: Vec<Uuid>,
    },
    /// End events unprocessed; they stay, with the reason, and can be replayed
    Discard {
        #[command(flatten)]
        file: ConfigFile,
        /// Their receipts, as `review list` shows them
        #[arg(required = true, value_name = "RECEIPT")]
        receipts: Vec<Uuid>,
        /// Why
        #[arg(long)]
        reason: String,
        /// Who decides
        #[arg(long, env = "USER")]
        by: String,
    },
}

/// Runs the command; exit code 1 when an event did not need review.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::List(listing) => list(&listing).await,
        Action::Requeue { file, receipts } => {
            let desk = reader(&file).await?;
            let mut all = true;
            for receipt in receipts {
                all &= told(receipt, desk.requeue(receipt).await?, "requeued")?;
            }
            desk.close().await;
            Ok(ExitCode::from(u8::from(!all)))
        }
        Action::Discard { file, receipts, reason, by } => {
            let desk = reader(&file).await?;
            let reason = format!("{reason}; by {by}");
            let mut all = true;
            for receipt in receipts {
                all &= told(receipt, desk.discard(receipt, &reason).await?, "discarded")?;
            }
            desk.close().await;
            Ok(ExitCode::from(u8::from(!all)))
        }
    }
}

fn told(receipt: Uuid, done: bool, what: &str) -> anyhow::Result<bool> {
    if done {
        output::line(&format!("{what} {receipt}"))?;
    } else {
        output::note(&format!("{receipt} does not need review (any more): nothing was changed"));
    }
    Ok(done)
}

async fn list(listing: &Listing) -> anyhow::Result<ExitCode> {
    let desk = reader(&listing.file).await?;
    let reviews = desk.reviews(listing.most).await?;
    desk.close().await;
    if listing.form.json {
        output::json(&reviews)?;
        return Ok(ExitCode::SUCCESS);
    }
    if reviews.is_empty() {
        output::line("nothing needs review")?;
    }
    for review in reviews {
        output::line(&format!(
            "{}  {}  {} {}  {} attempt(s) since {}\n  {}",
            review.receipt,
            review.endpoint,
            one_line(&review.event_type),
            one_line(&review.event_id),
            review.attempts,
            review.since,
            one_line(&review.reason)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
