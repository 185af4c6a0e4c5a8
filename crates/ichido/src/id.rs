//! Ids of receipts and deliveries. Must never depend on the body: a shard key that varied with
//! it once accepted one event id twice.

use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

/// First byte of SHA-256 over endpoint and event id: by it an id alone can be routed to a shard.
pub fn lane_byte(endpoint: &str, event_id: &str) -> u8 {
    let mut hash = Sha256::new();
    hash.update(endpoint.as_bytes());
    hash.update([0]);
    hash.update(event_id.as_bytes());
    hash.finalize()[0]
}

/// A fresh `UUIDv7` whose last byte is the lane byte of this event.
pub fn receipt_id(endpoint: &str, event_id: &str) -> Uuid {
    v7(lane_byte(endpoint, event_id))
}

/// A fresh `UUIDv7` for a delivery: it shares the lane of its first event.
pub fn delivery_id(endpoint: &str, first_event_id: &str) -> Uuid {
    receipt_id(endpoint, first_event_id)
}

fn v7(last: u8) -> Uuid {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let mut random = [0u8; 10];
    fastrand::fill(&mut random);
    random[9] = last;
    Builder::from_unix_timestamp_millis(u64::try_from(millis).unwrap_or(u64::MAX), &random)
        .into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_id_is_a_uuid_v7_that_ends_in_the_lane_byte() {
        let id = receipt_id("billing", "evt_1");
        assert_eq!(id.get_version_num(), 7);
        assert_eq!(id.as_bytes()[15], lane_byte("billing", "evt_1"));
    }

    #[test]
    fn two_receipts_of_one_event_share_a_lane_and_differ() {
        let (a, b) = (receipt_id("billing", "evt_1"), receipt_id("billing", "evt_1"));
        assert_ne!(a, b);
        assert_eq!(a.as_bytes()[15], b.as_bytes()[15]);
    }

    #[test]
    fn endpoint_and_event_id_do_not_run_into_each_other() {
        let lanes = |a: &str, b: &str| (0..64).map(|n| lane_byte(&format!("{a}{n}"), b)).collect();
        let (left, right): (Vec<u8>, Vec<u8>) = (lanes("a", "bc"), lanes("ab", "c"));
        assert_ne!(left, right);
    }
}
