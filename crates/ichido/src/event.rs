//! What a handler sees of an event. Must never be built from bytes that were not verified.

use std::sync::Arc;

use bytes::Bytes;
use ichido_verify::{Provenance, Timestamp};
use uuid::Uuid;

/// One verified event, as its handler receives it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Event {
    /// The receipt's id (`UUIDv7`).
    pub receipt: Uuid,
    /// The endpoint that took it.
    pub endpoint: Arc<str>,
    /// Who sent it.
    pub provider: Arc<str>,
    /// The provider's event id, or `sha256:...` where the delivery held none.
    pub id: String,
    /// The provider's event type, or `unreadable`.
    pub event_type: String,
    /// When it happened by the provider's word, if it says so.
    pub occurred_at: Option<Timestamp>,
    /// The event's own bytes as they were verified. They need not be JSON.
    pub body: Bytes,
    /// How we know that it is real.
    pub provenance: Provenance,
    /// Which start of the handler this is; 0 in a sync endpoint, where starts are not counted.
    pub attempt: u32,
    /// 0 at first, one more with each replay.
    pub run: u32,
}

impl Event {
    /// The event of a delivery at `index`, as a handler will see it at its first start.
    pub(crate) fn first_run(
        spec: &crate::EndpointSpec,
        delivery: &ichido_verify::Delivery,
        index: usize,
        receipt: Uuid,
    ) -> Self {
        let event = &delivery.events[index];
        Self {
            receipt,
            endpoint: spec.name.clone(),
            provider: spec.provider.clone(),
            id: event.id().to_owned(),
            event_type: event.event_type().to_owned(),
            occurred_at: event.occurred_at(),
            body: delivery.request.body.slice(event.range()),
            provenance: event.provenance(),
            attempt: 0,
            run: 0,
        }
    }

    /// The body as a typed value. Fails where the bytes are not such JSON; returned from a
    /// handler with `?`, that is an ordinary failed attempt.
    pub fn json<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }

    /// The key for an outside call that this event causes; see [`crate::idempotency_key`].
    pub fn idempotency_key(&self, purpose: &str) -> String {
        crate::idempotency_key(&self.id, purpose)
    }
}
