//! What is PostgreSQL's own: the guard at COMMIT, lines that are cut, poolers, locks, TLS.
//! The promise itself is in the conformance suite.
#![expect(clippy::unwrap_used, reason = "a test fails where its set-up fails")]

mod commit;
mod guard;
mod order;
mod prepared;
mod shared;
mod support;
mod surroundings;
mod tls;
