//! `ichido send`: signs test events as a provider would, posts them and counts the answers.
//!
//! It must never show the secret, and never call a request answered that was not.

mod body;
pub(crate) mod client;
mod options;
mod plan;
pub(crate) mod tally;

use std::{process::ExitCode, sync::Arc, time::Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinSet;

pub(crate) use self::options::Args;
use self::{client::Client, plan::Plan, tally::Tally};
use crate::output;

/// Runs the command; exit code 1 when a delivery was not answered 2xx.
pub(crate) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = Arc::new(Plan::new(args)?);
    let client = Client::new(&args.url, args.timeout.0, args.retry)?;
    let bar = progress(args.count);
    let began = Instant::now();
    let mut senders = JoinSet::new();
    for _ in 0..args.concurrency.min(args.count) {
        senders.spawn(send_all(plan.clone(), client.clone(), bar.clone()));
    }
    let mut tally = Tally::default();
    while let Some(part) = senders.join_next().await {
        tally.merge(part??);
    }
    bar.finish_and_clear();
    let summary = tally.summary(began.elapsed());
    if args.form.json {
        output::json(&summary)?;
    } else {
        output::line(&summary.text())?;
    }
    Ok(ExitCode::from(u8::from(summary.not_acknowledged > 0)))
}

/// Sends deliveries until the plan has none left.
async fn send_all(plan: Arc<Plan>, client: Client, bar: ProgressBar) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    while let Some(event) = plan.next() {
        let event = plan.event(event)?;
        tally.add(client.deliver(|now| plan.sign(&event, now)).await?);
        bar.inc(1);
    }
    Ok(tally)
}

/// A bar on standard error; hidden where that is no terminal.
pub(crate) fn progress(length: u64) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{bar:40} {pos}/{len}  {per_sec}  {elapsed}, {eta} left")
            .expect("the template is a constant that a test draws");
    ProgressBar::new(length).with_style(style)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_progress_bar_can_be_made() {
        assert_eq!(super::progress(3).length(), Some(3));
    }
}
