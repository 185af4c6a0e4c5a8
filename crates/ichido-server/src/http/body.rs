//! Reads a body whole, within its limit, in time, and within the memory that all bodies share.
//!
//! It must never return a part of a body as if it were the whole, and never set memory aside for
//! what was only announced: that would let silent clients keep the others out.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
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
    memory_kib: Arc<Semaphore>,
    bytes_max: usize,
    within: Duration,
}

/// A body that was read.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) bytes: Bytes,
    /// Its share of the memory: to be held for as long as the bytes are.
    pub(crate) memory: Share,
}

/// A share of the memory for bodies, given back on drop.
#[derive(Debug)]
pub(crate) struct Share(OwnedSemaphorePermit);

impl Share {
    /// Makes it enough for `bytes`, if there is so much.
    fn cover(&mut self, bytes: usize) -> Result<(), NoBody> {
        let more = bytes.div_ceil(KIB).saturating_sub(self.0.num_permits());
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let memory = self.0.semaphore().clone();
        self.0.merge(memory.try_acquire_many_owned(more).map_err(|_| NoBody::NoMemory)?);
        Ok(())
    }
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
            memory_kib: Arc::new(Semaphore::new(kib)),
            bytes_max: limits.body_bytes_max,
            within: limits.body_timeout.0,
        }
    }

    /// Reads `body` whole. What declares itself too large is refused before it is read.
    pub(crate) async fn read(&self, body: Incoming, line: &Line) -> Result<Whole, NoBody> {
        if body.size_hint().lower() > self.bytes_max as u64 {
            return Err(NoBody::TooLarge);
        }
        line.reading();
        let none = self.memory_kib.clone().try_acquire_many_owned(0);
        let memory = Share(none.map_err(|_| NoBody::NoMemory)?);
        let whole = timeout(self.within, collect(body, self.bytes_max, memory))
            .await
            .map_err(|_| NoBody::TooSlow)??;
        line.read();
        Ok(whole)
    }
}

async fn collect(mut body: Incoming, bytes_max: usize, mut memory: Share) -> Result<Whole, NoBody> {
    let declared = body.size_hint().exact().and_then(|exact| usize::try_from(exact).ok());
    let first = declared.unwrap_or(bytes_max).min(FIRST_BYTES_MAX);
    let mut whole: Option<BytesMut> = None;
    let mut only = Bytes::new();
    while let Some(frame) = body.frame().await {
        // Trailers are not a part of the body, and no scheme signs them.
        let Ok(data) = frame.map_err(|_| NoBody::BrokenOff)?.into_data() else { continue };
        let have = whole.as_ref().map_or(only.len(), BytesMut::len);
        if data.len() > bytes_max - have {
            return Err(NoBody::TooLarge);
        }
        memory.cover(have + data.len())?;
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
    Ok(Whole { bytes: whole.map_or(only, BytesMut::freeze), memory })
}
