//! Sends signed Stripe events over keep-alive connections and says how fast they were answered.
//!
//! On one thread and with requests patched in place, for it shares its machine with what it
//! measures. It must never send anywhere but to this machine.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "the report is what it is for")]

mod connection;
mod delivery;

use std::{
    net::SocketAddr,
    path::PathBuf,
    rc::Rc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use clap::Parser;
use hdrhistogram::Histogram;
use tokio::task::LocalSet;

use self::{
    connection::{Pace, Report},
    delivery::Delivery,
};

/// Sends signed Stripe events and reports rate and latency as one line of JSON.
#[derive(Debug, Parser)]
struct Options {
    /// Where to, on this machine.
    #[arg(long, default_value = "127.0.0.1:8080")]
    address: SocketAddr,
    /// The path of the endpoint.
    #[arg(long, default_value = "/webhooks/billing")]
    path: String,
    /// The endpoint's secret.
    #[arg(long)]
    secret: String,
    /// The body; `evt_` and `in_` with 25 zeros become fresh ids.
    #[arg(long)]
    payload: PathBuf,
    /// Connections, each with one request at a time.
    #[arg(long, default_value_t = 64)]
    connections: u32,
    /// How long.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Percent of the deliveries that repeat an event of the same connection.
    #[arg(long, default_value_t = 0)]
    duplicates: u64,
    /// Deliveries a second, evenly spaced; latency then counts from when one was due. Without it
    /// each connection sends as soon as it was answered.
    #[arg(long)]
    rate: Option<f64>,
    /// Sign with another secret: every delivery is verified in full and refused.
    #[arg(long)]
    forged: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    ensure!(options.address.ip().is_loopback(), "only this machine may be put under load");
    let body = std::fs::read(&options.payload)
        .with_context(|| format!("cannot read {}", options.payload.display()))?;
    let secret = if options.forged { "whsec_forged" } else { &options.secret };
    let began = Instant::now();
    let length = Duration::from_secs_f64(options.seconds);
    let pace = Rc::new(Pace::new(began, began + length, options.rate));
    let template =
        Delivery::new(options.address, &options.path, body.trim_ascii(), secret.as_bytes())?;
    let tasks = LocalSet::new();
    let mut running = Vec::new();
    for number in 0..options.connections {
        let (delivery, pace) = (template.for_connection(number), pace.clone());
        let (address, duplicates) = (options.address, options.duplicates);
        running.push(tasks.spawn_local(async move {
            connection::run(address, delivery, &pace, duplicates).await
        }));
    }
    let mut all = Report::new()?;
    tasks
        .run_until(async {
            for task in running {
                all.add(&task.await??)?;
            }
            anyhow::Ok(())
        })
        .await?;
    println!("{}", summary(&all, began.elapsed().as_secs_f64()));
    Ok(())
}

fn summary(report: &Report, seconds: f64) -> serde_json::Value {
    let at = |latency: &Histogram<u64>, quantile| latency.value_at_quantile(quantile);
    let latency = &report.latency;
    let answered: u64 = report.statuses.values().sum();
    #[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are below 2^53")]
    let rate = answered as f64 / seconds;
    serde_json::json!({
        "answered": answered,
        "broken": report.broken,
        "statuses": report.statuses,
        "seconds": seconds,
        "rate_per_s": rate,
        "latency_us": {
            "p50": at(latency, 0.5),
            "p90": at(latency, 0.9),
            "p99": at(latency, 0.99),
            "p99.9": at(latency, 0.999),
            "max": latency.max(),
        },
    })
}
