//! Sends signed events to a server on this machine, at a fixed rate or as fast as it goes, and
//! writes what came of it as JSON.
//!
//! It must never send to another machine, and must cost little itself: one thread, one request
//! a connection at a time.
#![forbid(unsafe_code)]

mod connection;
mod pace;
mod plan;
mod report;
mod template;

use std::{
    fs,
    io::{Write, stdout},
    net::{Ipv4Addr, SocketAddrV4},
    path::PathBuf,
    rc::Rc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::Context;
use clap::Parser;
use rustix::time::{ClockId, clock_gettime};
use tokio::{
    task::{JoinSet, LocalSet},
    time::{Instant, timeout},
};

use crate::{
    plan::{Amount, Plan},
    report::{Report, Run, Tally},
    template::{Signature, Template},
};

/// After the last request, its answer may take this long.
const LAST_ANSWERS: Duration = Duration::from_secs(10);

/// Load for the benchmark: signed events over kept HTTP/1.1 connections.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// Where the server listens; 127.0.0.1 only.
    #[arg(long, value_parser = on_this_machine)]
    address: SocketAddrV4,
    /// Path of the endpoint.
    #[arg(long, default_value = "/webhooks/billing")]
    path: String,
    /// Whose signatures are made.
    #[arg(long, default_value = "stripe")]
    provider: String,
    /// The signing secret. It is one of the benchmark, never a real one.
    #[arg(long)]
    secret: String,
    /// The body, with `{unique}` and `{customer}` where events differ.
    #[arg(long)]
    payload: PathBuf,
    /// Connections, each with one request at a time.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    connections: u16,
    /// How long requests are sent.
    #[arg(long, default_value_t = 6.0, value_parser = positive)]
    seconds: f64,
    /// Stop after this many requests.
    #[arg(long)]
    count: Option<u64>,
    /// Requests a second, whatever the answers do; without it as fast as answers come.
    #[arg(long, value_parser = positive)]
    rate: Option<f64>,
    /// Of a hundred requests, how many repeat an earlier event.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=99))]
    duplicates: u8,
    /// Sign with another secret, so that every request is refused.
    #[arg(long)]
    forged: bool,
    /// The status that counts as right.
    #[arg(long, default_value_t = 200)]
    expect: u16,
}

fn on_this_machine(text: &str) -> Result<SocketAddrV4, String> {
    match text.parse::<SocketAddrV4>() {
        Ok(address) if *address.ip() == Ipv4Addr::LOCALHOST => Ok(address),
        _ => Err("127.0.0.1 and a port: only a server on this machine is loaded".into()),
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (1e-3..=1e7).contains(&number) => Ok(number),
        _ => Err("a number from 0.001 to 10,000,000".into()),
    }
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = LocalSet::new().block_on(&runtime, load(&args))?;
    writeln!(stdout(), "{}", serde_json::to_string_pretty(&report)?)?;
    Ok(())
}

async fn load(args: &Args) -> anyhow::Result<Report> {
    let payload = fs::read_to_string(&args.payload)
        .with_context(|| format!("cannot read {}", args.payload.display()))?;
    let salt = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros();
    let signature = if args.forged { Signature::Forged } else { Signature::Good };
    let template = Rc::new(Template::new(
        (&args.provider, &args.secret, signature),
        (&args.path, &args.address.to_string()),
        &payload,
        u64::try_from(salt)?,
    )?);
    let amount = Amount {
        rate: args.rate,
        seconds: args.seconds,
        count: args.count,
        duplicates: args.duplicates,
    };
    let cpu = cpu_time()?;
    let start = Instant::now();
    let plan = Rc::new(Plan::new(amount, start));
    let tally = Rc::new(Tally::new()?);
    let mut connections = JoinSet::new();
    for _ in 0..args.connections {
        let (plan, template, tally) = (plan.clone(), template.clone(), tally.clone());
        let address = args.address.into();
        connections
            .spawn_local(async move { connection::run(address, &plan, &template, &tally).await });
    }
    if args.rate.is_some() {
        pace::keep(&plan).await?;
        plan.finish(args.connections);
    }
    let until = plan.end() + LAST_ANSWERS;
    let all = async {
        while let Some(ended) = connections.join_next().await {
            ended??;
        }
        anyhow::Ok(())
    };
    // What is still open then counts as unanswered.
    if let Ok(ended) = timeout(until.saturating_duration_since(Instant::now()), all).await {
        ended.context("a connection failed")?;
    }
    let end = Instant::now();
    for due in plan.untaken() {
        tally.unsent(end - due);
    }
    let run = Run {
        start,
        expected: args.expect,
        offered: args.rate,
        events: plan.events(),
        payload_bytes: template.payload_bytes(),
        cpu: cpu_time()?.saturating_sub(cpu),
    };
    Ok(tally.report(&run))
}

/// Processor time that this process used so far.
fn cpu_time() -> anyhow::Result<Duration> {
    Ok(clock_gettime(ClockId::ProcessCPUTime).try_into()?)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::Args;

    #[test]
    fn the_command_line_holds_together() {
        Args::command().debug_assert();
    }

    fn parsed(address: &str, rate: &str) -> Result<Args, clap::Error> {
        let fixed = ["load", "--secret", "s", "--payload", "p"];
        let asked = ["--address", address, "--rate", rate];
        Args::try_parse_from(fixed.into_iter().chain(asked))
    }

    #[test]
    fn only_this_machine_is_loaded() {
        assert!(parsed("127.0.0.1:80", "10").is_ok());
        for elsewhere in ["127.0.0.2:80", "192.0.2.1:80", "0.0.0.0:80", "[::1]:80"] {
            assert!(parsed(elsewhere, "10").is_err(), "{elsewhere}");
        }
    }

    #[test]
    fn a_rate_of_nothing_is_refused() {
        assert!(parsed("127.0.0.1:80", "0").is_err());
    }
}
