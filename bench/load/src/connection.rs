//! One connection: a request, its answer, the next one.
//!
//! At a fixed rate, latency counts from when a request was due: one that could not be sent because
//! the answer before it was late is late, too.

use std::{
    cell::Cell,
    collections::BTreeMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use hdrhistogram::Histogram;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep_until, timeout},
};

use crate::delivery::Delivery;

/// An answer that takes longer counts as none.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// When requests are due.
pub(crate) struct Pace {
    began: Instant,
    ends: Instant,
    rate: Option<f64>,
    next: Cell<u32>,
}

impl Pace {
    pub(crate) fn new(began: Instant, ends: Instant, rate: Option<f64>) -> Self {
        Self { began, ends, rate, next: Cell::new(0) }
    }

    /// Waits until the next request is due; `None` at the end.
    async fn due(&self) -> Option<Instant> {
        let due = match self.rate {
            None => Instant::now(),
            Some(rate) => {
                let number = self.next.get();
                self.next.set(number + 1);
                let due = self.began + Duration::from_secs_f64(f64::from(number) / rate);
                sleep_until(due.min(self.ends).into()).await;
                due
            }
        };
        (due < self.ends && Instant::now() < self.ends).then_some(due)
    }
}

/// What came back.
pub(crate) struct Report {
    pub(crate) latency: Histogram<u64>,
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Connections that ended early.
    pub(crate) broken: u64,
}

impl Report {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let latency = Histogram::new_with_bounds(1, 60_000_000, 3)?;
        Ok(Self { latency, statuses: BTreeMap::new(), broken: 0 })
    }

    pub(crate) fn add(&mut self, other: &Self) -> anyhow::Result<()> {
        self.latency.add(&other.latency)?;
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        self.broken += other.broken;
        Ok(())
    }
}

/// Sends until the end, or until the connection breaks.
pub(crate) async fn run(
    address: SocketAddr,
    mut delivery: Delivery,
    pace: &Pace,
    duplicates: u64,
) -> anyhow::Result<Report> {
    let mut stream =
        TcpStream::connect(address).await.with_context(|| format!("cannot reach {address}"))?;
    stream.set_nodelay(true)?;
    let mut report = Report::new()?;
    let (mut fresh, mut sent) = (0, 0_u64);
    let mut buffer = vec![0; 16 * 1024];
    while let Some(due) = pace.due().await {
        sent += 1;
        // Evenly spread: 90 of a hundred, or each tenth one.
        let repeats = fresh > 0 && sent * duplicates / 100 > (sent - 1) * duplicates / 100;
        let number = if repeats {
            sent % fresh
        } else {
            fresh += 1;
            fresh - 1
        };
        let exchanged = async {
            stream.write_all(delivery.event(number)?).await?;
            answer(&mut stream, &mut buffer).await
        };
        let Ok(Ok(status)) = timeout(ANSWER_WITHIN, exchanged).await else {
            report.broken += 1;
            break;
        };
        *report.statuses.entry(status).or_default() += 1;
        let latency = u64::try_from(due.elapsed().as_micros())?.max(1);
        report.latency.saturating_record(latency);
    }
    Ok(report)
}

/// Reads one answer; its status.
async fn answer(stream: &mut TcpStream, buffer: &mut [u8]) -> anyhow::Result<u16> {
    let mut have = 0;
    loop {
        let read = stream.read(&mut buffer[have..]).await?;
        if read == 0 {
            bail!("the connection ended within an answer");
        }
        have += read;
        let Some(end) = buffer[..have].windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let head = std::str::from_utf8(&buffer[..end])?;
        let status = head.get(9..12).context("no status line")?.parse()?;
        let length: usize = head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .map_or(Ok(0), |(_, value)| value.trim().parse())?;
        let mut missing = (end + 4 + length).saturating_sub(have);
        while missing > 0 {
            let room = missing.min(buffer.len());
            let read = stream.read(&mut buffer[..room]).await?;
            if read == 0 {
                bail!("the connection ended within an answer");
            }
            missing -= read;
        }
        return Ok(status);
    }
}
