//! The places for connections: so many at once, so many of one peer, and who gives way.
//!
//! It must never take the place of a connection that waits for our answer.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use super::line::Line;
use crate::config::{
    Limits,
    networks::{Networks, first_bits},
};

/// No connection gives way before it had this long: enough for a handshake and a delivery across
/// the world.
const A_CHANCE: Duration = Duration::from_millis(250);
/// How often it is looked for one that can give way, while there is none.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// One subscriber has all addresses of an IPv6 network of this size.
const IPV6_SUBSCRIBER_BITS: u32 = 64;

/// The places of one listener.
#[derive(Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    per_peer_max: usize,
    except: Networks,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    lines: HashMap<u64, Arc<Line>>,
    peers: HashMap<IpAddr, usize>,
}

/// The peer has as many connections as one peer may have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PeerFull;

/// A place, given back on drop.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    peer: Option<IpAddr>,
    /// The connection that has it.
    pub(super) line: Arc<Line>,
    /// Held, not read. Dropped after the entries above are removed.
    _permit: OwnedSemaphorePermit,
}

impl Places {
    /// As many as `limits` allow.
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            free: Arc::new(Semaphore::new(limits.connections_max)),
            per_peer_max: limits.connections_per_peer_max,
            except: limits.connections_per_peer_except.clone(),
            taken: Mutex::default(),
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().expect("nothing panics while it holds this lock")
    }

    /// A place for a connection from `address`. When there is none, `crowded` is called, and the
    /// connection that waits longest for its client gives way. A client that sends what it has
    /// to say never waits long, so that those which keep us waiting lose.
    pub(super) async fn take(
        self: &Arc<Self>,
        address: IpAddr,
        crowded: impl FnOnce(),
    ) -> Result<Place, PeerFull> {
        let peer = self.peer(address);
        if let Some(peer) = peer
            && self.taken().peers.get(&peer).is_some_and(|count| *count >= self.per_peer_max)
        {
            return Err(PeerFull);
        }
        let permit = if let Ok(permit) = self.free.clone().try_acquire_owned() {
            permit
        } else {
            crowded();
            self.make_room().await
        };
        let line = Arc::new(Line::new());
        let mut taken = self.taken();
        taken.next += 1;
        let number = taken.next;
        taken.lines.insert(number, line.clone());
        if let Some(peer) = peer {
            *taken.peers.entry(peer).or_default() += 1;
        }
        drop(taken);
        Ok(Place { places: self.clone(), number, peer, line, _permit: permit })
    }

    /// Under what a peer is counted, if it is.
    fn peer(&self, address: IpAddr) -> Option<IpAddr> {
        let address = address.to_canonical();
        let counted = self.per_peer_max > 0 && !self.except.contain(address);
        counted.then(|| match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(_) => first_bits(address, IPV6_SUBSCRIBER_BITS),
        })
    }

    async fn make_room(&self) -> OwnedSemaphorePermit {
        loop {
            if let Some(line) = self.longest_waiting() {
                line.crowd_out();
            }
            let permit = self.free.clone().acquire_owned();
            if let Ok(permit) = timeout(LOOK_AGAIN, permit).await {
                return permit.expect("the semaphore is never closed");
            }
        }
    }

    fn longest_waiting(&self) -> Option<Arc<Line>> {
        let before = Instant::now().checked_sub(A_CHANCE)?;
        let taken = self.taken();
        let waiting = taken.lines.values().filter_map(|line| Some((line.waiting_since()?, line)));
        let (since, line) = waiting.min_by_key(|(since, _)| *since)?;
        (since <= before).then(|| line.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.lines.remove(&self.number);
        if let Some(peer) = self.peer
            && let Some(count) = taken.peers.get_mut(&peer)
        {
            *count -= 1;
            if *count == 0 {
                taken.peers.remove(&peer);
            }
        }
    }
}
