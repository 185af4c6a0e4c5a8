//! Reads a body whole, within its limit, in time, and within the memory that all bodies share.
//!
//! It must never return a part of a body as if it were the whole.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use super::line::Line;
use crate::config::Limits;

/// The unit in which memory for bodies is counted: permits are 32-bit numbers.
const KIB: usize = 1024;
/// A body's buffer starts with this much, unless a shorter length is declared: a length is only
/// a promise.
const FIRST_BYTES_MAX: usize = 64 * KIB;

/// The memory for bodies.
#[derive(Debug)]
pub(crate) struct Bodies {
    memory_kib: Semaphore,
    bytes_max: usize,
    within: Duration,
}

/// A body that was read, and its share of the memory, given back on drop.
#[derive(Debug)]
pub(crate) struct Whole<'a> {
    pub(crate) bytes: Bytes,
    /// Held, not read.
    pub(crate) _memory: SemaphorePermit<'a>,
}

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoBody {
    /// Over the limit, by declaration or by reading.
    TooLarge,
    /// The bodies in flight fill the memory that they may have.
    NoMemory,
    /// Not whole within the time.
    TooSlow,
    /// The sender broke off.
    BrokenOff,
}

impl Bodies {
    /// The memory that `limits` allow.
    pub(crate) fn new(limits: &Limits) -> Self {
        let kib = limits.body_bytes_in_flight_max.div_ceil(KIB).min(Semaphore::MAX_PERMITS);
        Self {
            memory_kib: Semaphore::new(kib),
            bytes_max: limits.body_bytes_max,
            within: limits.body_timeout.0,
        }
    }

    /// Reads `body` whole. What declares itself too large is refused before it is read.
    pub(crate) async fn read(&self, body: Incoming, line: &Line) -> Result<Whole<'_>, NoBody> {
        let hint = body.size_hint();
        let bytes_max = self.bytes_max;
        if hint.lower() > bytes_max as u64 {
            return Err(NoBody::TooLarge);
        }
        // Without a declared length it may grow to the limit.
        let share =
            hint.exact().map_or(bytes_max, |exact| usize::try_from(exact).unwrap_or(bytes_max));
        let share_kib = u32::try_from(share.div_ceil(KIB)).unwrap_or(u32::MAX);
        let memory = self.memory_kib.try_acquire_many(share_kib).map_err(|_| NoBody::NoMemory)?;
        let first = share.min(FIRST_BYTES_MAX);
        line.reading();
        let bytes = timeout(self.within, collect(body, bytes_max, first))
            .await
            .map_err(|_| NoBody::TooSlow)??;
        line.read();
        Ok(Whole { bytes, _memory: memory })
    }
}

async fn collect(mut body: Incoming, bytes_max: usize, first: usize) -> Result<Bytes, NoBody> {
    let mut whole: Option<BytesMut> = None;
    let mut only = Bytes::new();
    while let Some(frame) = body.frame().await {
        // Trailers are not a part of the body, and no scheme signs them.
        let Ok(data) = frame.map_err(|_| NoBody::BrokenOff)?.into_data() else { continue };
        let have = whole.as_ref().map_or(only.len(), BytesMut::len);
        if data.len() > bytes_max - have {
            return Err(NoBody::TooLarge);
        }
        // Most bodies come in one piece, which is then not copied.
        if have == 0 {
            only = data;
            continue;
        }
        let whole = whole.get_or_insert_with(|| {
            let mut buffer = BytesMut::with_capacity(first.max(have + data.len()));
            buffer.extend_from_slice(&only);
            buffer
        });
        whole.extend_from_slice(&data);
    }
    Ok(whole.map_or(only, BytesMut::freeze))
}
