//! A transactional inbox for webhooks: receipt, effect and messages commit in one transaction.
//!
//! This crate turns a verified delivery into a receipt and runs the handler of its type inside
//! the same database transaction. It never acknowledges what was not committed, and it never
//! calls anything outside the database while a transaction is open.
//!
//! Read in the order the data flows: [`Endpoint`] (what is configured), [`Inbox`] (receive),
//! [`Intake`] (a verified delivery with a route for each event), [`Store`] (the contract of an
//! engine), then [`postgres`] and [`sqlite`] (the two engines that keep it).
#![forbid(unsafe_code)]

mod desk;
mod endpoint;
mod error;
mod event;
mod fault;
mod handlers;
mod id;
mod inbox;
mod intake;
mod report;
mod sql_check;
mod sql_handler;
mod store;
mod work;
mod worker;

#[cfg(feature = "axum")]
pub mod axum;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use desk::{Desk, Flag, Review};
pub use endpoint::{
    Endpoint, EndpointError, EndpointSpec, KEEP_IDENTITY, LEASE, MAX_ATTEMPTS, Mode,
    NAME_MAX_BYTES, OnFailure, OrderByKey, RepeatedBody, span_text,
};
pub use error::{BoxError, Error, ErrorKind, Later, Permanent};
pub use event::Event;
pub use fault::{Fault, Then};
pub use handlers::{Handlers, PatternError, Target};
pub use ichido_verify as verify;
pub use id::{delivery_id, lane_byte, receipt_id};
pub use inbox::{Inbox, RECEIVE_DEADLINE, ReceiveError, Received, Verified};
pub use intake::{EventName, Intake, Outcome, Route, Routed, Taken};
pub use report::{Finding, Stats, TypeCount};
pub use sql_handler::{Param, SqlHandler, SqlHandlerError, Statement};
pub use store::Store;
pub use work::{Claim, Claimed, Failed, Lane, Worked};
pub use worker::{CONCURRENCY, Ended, WorkOutcome, Worker};

/// The key under which a handler's message or outside call is known to the far side.
///
/// Stable over retries and replays: `webhook:{event_id}:{purpose}`. Two endpoints that receive
/// the same event must use different purposes.
///
/// ```
/// assert_eq!(ichido::idempotency_key("evt_1", "refund"), "webhook:evt_1:refund");
/// ```
pub fn idempotency_key(event_id: &str, purpose: &str) -> String {
    format!("webhook:{event_id}:{purpose}")
}
