//! A verified delivery on its way into a store, and what became of each of its events.
//!
//! Must never hold anything that was not verified (or loudly vouched for).

use std::sync::Arc;

use ichido_verify::{Delivery, Verifier};
use uuid::Uuid;

use crate::{EndpointSpec, Event};

/// A verified delivery with a route for each of its events. Made by [`crate::Inbox`].
pub struct Intake<H: ?Sized> {
    /// The endpoint that takes it.
    pub endpoint: Arc<EndpointSpec>,
    /// The delivery's id; its bytes are stored once, however many events it holds.
    pub delivery_id: Uuid,
    /// The request as it came, and its events.
    pub delivery: Delivery,
    /// One for each of `delivery.events`, in their order.
    pub routes: Vec<Routed<H>>,
    /// Judges whether two bodies under one event key have the same content.
    pub verifier: Arc<Verifier>,
}

impl<H: ?Sized> Intake<H> {
    /// The event at `index` as its handler will see it at its first start.
    pub fn event(&self, index: usize) -> Event {
        Event::first_run(&self.endpoint, &self.delivery, index, self.routes[index].receipt)
    }

    /// The event at `index` as logs name it.
    pub(crate) fn event_name(&self, index: usize) -> EventName {
        let event = self.delivery.events.get(index);
        let event_type = event.map_or("", |event| event.event_type());
        EventName {
            id: event.map_or("", |event| event.id()).into(),
            event_type: event_type.into(),
            handler: self.endpoint.handler_name(event_type).cloned(),
        }
    }

    /// What became of the event at `index`.
    pub(crate) fn taken(
        &self,
        index: usize,
        receipt: Uuid,
        outcome: Outcome,
        error: Option<String>,
    ) -> Taken {
        let event = self.event_name(index);
        Taken { receipt, event, outcome, conflict: false, repeated: false, error }
    }

    /// The handler to run inside the receive transaction, when this is a sync delivery: one
    /// event with [`Route::Run`]. Everything else is stored first and processed later.
    pub fn sync_handler(&self) -> Option<&Arc<H>> {
        match self.routes.as_slice() {
            [Routed { route: Route::Run(handler), .. }] => Some(handler),
            _ => None,
        }
    }
}

impl<H: ?Sized> std::fmt::Debug for Intake<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Intake")
            .field("endpoint", &self.endpoint.name)
            .field("delivery_id", &self.delivery_id)
            .field("events", &self.routes.len())
            .finish_non_exhaustive()
    }
}

/// The receipt id of an event, made before it is stored, and where the event goes.
pub struct Routed<H: ?Sized> {
    /// `UUIDv7` with the lane byte; finding it in the database means that the receipt is ours.
    pub receipt: Uuid,
    /// Where it goes.
    pub route: Route<H>,
}

impl<H: ?Sized> std::fmt::Debug for Routed<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Routed").field("receipt", &self.receipt).finish_non_exhaustive()
    }
}

/// Where an event goes.
pub enum Route<H: ?Sized> {
    /// Run this handler in the receive transaction.
    Run(Arc<H>),
    /// Leave it as work in this queue.
    Queue(Arc<str>),
    /// No handler is configured for its type: store and acknowledge.
    Ignore,
    /// Verified but without a usable event id: straight to needs review.
    Review(&'static str),
}

impl<H: ?Sized> std::fmt::Debug for Route<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Run(_) => f.write_str("Run"),
            Self::Queue(queue) => f.debug_tuple("Queue").field(queue).finish(),
            Self::Ignore => f.write_str("Ignore"),
            Self::Review(why) => f.debug_tuple("Review").field(why).finish(),
        }
    }
}

/// What became of an event that was received. `done` in the database also knows `discarded`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// Its handler ran and its effect is committed.
    Processed,
    /// Stored; work remains (async, kept after a failure, or needs review).
    Accepted,
    /// Its event key was taken before; nothing was done again.
    Duplicate,
    /// Stored and acknowledged: no handler is configured for its type.
    Ignored,
}

impl Outcome {
    /// The word in answers, metrics and the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Accepted => "accepted",
            Self::Duplicate => "duplicate",
            Self::Ignored => "ignored",
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An event as logs name it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventName {
    /// The provider's id of it.
    pub id: Box<str>,
    /// Its type.
    pub event_type: Box<str>,
    /// What logs call its handler, where it has one.
    pub handler: Option<Arc<str>>,
}

/// What a store made of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The receipt under which the event is stored: ours, or the first one's for a duplicate.
    pub receipt: Uuid,
    /// The event.
    pub event: EventName,
    /// What became of it.
    pub outcome: Outcome,
    /// A duplicate by key whose content differs from the first; recorded, the first one wins.
    pub conflict: bool,
    /// Not a duplicate by key, but its bytes came before under another id, which the provider does
    /// not sign: a replay, or two honest events that are alike. Marked for a human.
    pub repeated: bool,
    /// Why the handler failed, where the outcome is `accepted` for that reason.
    pub error: Option<String>,
}
