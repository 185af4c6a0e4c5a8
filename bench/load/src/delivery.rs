//! One connection's request, patched in place: the ids, the time and the signature change, the
//! rest stays as it is.

use std::{
    net::SocketAddr,
    ops::Range,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, ensure};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What stands for an id in the payload, after its prefix.
const ZEROS: &[u8] = b"0000000000000000000000000";
/// Seconds since 1970 have as many digits until the year 2286.
const TIME_DIGITS: usize = 10;
const HEX: &[u8; 16] = b"0123456789abcdef";

/// A request with places that change.
#[derive(Clone)]
pub(crate) struct Delivery {
    request: Vec<u8>,
    time: Range<usize>,
    signature: Range<usize>,
    body: usize,
    /// The places of the ids, each 25 digits.
    ids: Vec<usize>,
    mac: Hmac<Sha256>,
    /// Makes the ids of this run and this connection its own.
    run: u32,
    connection: u32,
}

impl Delivery {
    /// A request for `path` with `payload`, to be signed with `secret`.
    pub(crate) fn new(
        address: SocketAddr,
        path: &str,
        payload: &[u8],
        secret: &[u8],
    ) -> anyhow::Result<Self> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             User-Agent: Stripe/1.0 (+https://stripe.com/docs/webhooks)\r\n\
             Content-Length: {}\r\nStripe-Signature: t=",
            payload.len()
        );
        let mut request = head.into_bytes();
        let time = request.len()..request.len() + TIME_DIGITS;
        request.extend_from_slice(b"0000000000,v1=");
        let signature = request.len()..request.len() + 64;
        request.extend_from_slice(&[b'0'; 64]);
        request.extend_from_slice(b"\r\n\r\n");
        let body = request.len();
        request.extend_from_slice(payload);
        let ids: Vec<usize> = (body..=request.len() - ZEROS.len())
            .filter(|at| request[*at..].starts_with(ZEROS) && request[at - 1] == b'_')
            .collect();
        ensure!(!ids.is_empty(), "the payload holds no id of 25 zeros");
        let mac = Hmac::new_from_slice(secret).context("the secret is of no use as a key")?;
        let run = u32::try_from(now()?.as_millis() & u128::from(u32::MAX))?;
        Ok(Self { request, time, signature, body, ids, mac, run, connection: 0 })
    }

    /// The same for one of the connections.
    pub(crate) fn for_connection(&self, connection: u32) -> Self {
        Self { connection, ..self.clone() }
    }

    /// The bytes of this connection's event `number`, signed now.
    pub(crate) fn event(&mut self, number: u64) -> anyhow::Result<&[u8]> {
        let id = format!("{:08x}{:04x}{number:013x}", self.run, self.connection & 0xffff);
        for at in &self.ids {
            self.request[*at..at + ZEROS.len()].copy_from_slice(id.as_bytes());
        }
        let time = format!("{:010}", now()?.as_secs());
        self.request[self.time.clone()].copy_from_slice(time.as_bytes());
        let mut mac = self.mac.clone();
        mac.update(time.as_bytes());
        mac.update(b".");
        mac.update(&self.request[self.body..]);
        let places = self.request[self.signature.clone()].chunks_exact_mut(2);
        for (place, byte) in places.zip(mac.finalize().into_bytes()) {
            place.copy_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]]);
        }
        Ok(&self.request)
    }
}

fn now() -> anyhow::Result<std::time::Duration> {
    SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")
}
