//! `ichido send`: signs test events as a provider would, posts them and counts the answers.
//!
//! It must never show the secret, and never call a request answered that was not.

mod body;
pub(crate) mod client;
mod options;
mod plan;
pub(crate) mod tally;
mod target;

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use anyhow::bail;
use hyper::Uri;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinSet;

pub(crate) use self::options::Args;
use self::{
    client::{Answer, CANNOT_CONNECT, Client, Lost},
    plan::Plan,
    tally::{Summary, Tally},
    target::Target,
};
use crate::output;

/// Runs the command; exit code 1 when a delivery was not answered 2xx.
pub(crate) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let target = Target::new(args)?;
    let client = Client::new(&target.url, args.timeout.0, args.retry, args.cacert.as_deref())?;
    let (url, known) = (target.url.clone(), target.known.clone());
    let plan = Arc::new(Plan::new(args, target)?);
    let bar = progress(args.count);
    let began = Instant::now();
    let answered = Arc::new(AtomicBool::new(false));
    let mut senders = JoinSet::new();
    for _ in 0..args.concurrency.min(args.count) {
        senders.spawn(send_all(plan.clone(), client.clone(), bar.clone(), answered.clone()));
    }
    let mut tally = Tally::default();
    while let Some(part) = senders.join_next().await {
        tally.merge(part??);
    }
    bar.finish_and_clear();
    if !answered.load(Ordering::Relaxed) {
        bail!(unanswered(&url, tally.lost()));
    }
    let summary = tally.summary(began.elapsed());
    if args.form.json {
        output::json(&summary)?;
    } else {
        output::line(&summary.text())?;
        for hint in hints(&summary, &known) {
            output::note(&hint);
        }
    }
    Ok(ExitCode::from(u8::from(summary.not_acknowledged > 0)))
}

/// Sends deliveries until the plan has none left. Gives up where nobody listens.
async fn send_all(
    plan: Arc<Plan>,
    client: Client,
    bar: ProgressBar,
    answered: Arc<AtomicBool>,
) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    while let Some(event) = plan.next() {
        let event = plan.event(event)?;
        let delivered = client.deliver(|now| plan.sign(&event, now)).await?;
        let last = delivered.last();
        if matches!(last, Answer::Status(..)) {
            answered.store(true, Ordering::Relaxed);
        }
        let nobody = matches!(last, Answer::None(gone) if gone.why == CANNOT_CONNECT);
        tally.add(delivered);
        bar.inc(1);
        if nobody && !answered.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(tally)
}

/// What to say when there was no answer at all.
fn unanswered(url: &Uri, lost: Option<&Lost>) -> String {
    let Some(Lost { why, detail }) = lost else { return format!("{url}: nothing was sent") };
    let fix = match (url.scheme_str(), *why == CANNOT_CONNECT) {
        (Some("https"), true) => "is a server there, and does --cacert name its root?",
        (_, true) => "start `ichido serve`, or name another --url",
        _ => "see the server's log",
    };
    let detail = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
    format!("{url}: {why}{detail}: {fix}")
}

/// What the answers of a server mostly mean.
fn hints(summary: &Summary, known: &[String]) -> Vec<String> {
    let had = |status: &str| summary.statuses.contains_key(status);
    let mut hints = Vec::new();
    if had("400") || had("401") {
        hints.push(
            "hint: the signature was refused: is it the secret of that endpoint, and is the clock \
             right? The server's log has the reason"
                .to_owned(),
        );
    }
    if had("404") {
        let known = match known {
            [] => String::new(),
            known => format!("; the configuration has {}", known.join(", ")),
        };
        hints.push(format!("hint: no such endpoint: a path is /webhooks/{{endpoint}}{known}"));
    }
    if had("503") {
        hints.push("hint: the server cannot take it now: `ichido health` says why".to_owned());
    }
    hints
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
