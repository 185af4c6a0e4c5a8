//! The SQL functions of the PostgreSQL engine, called as any language would call them. Must not
//! use the Rust store: these functions are a public contract of their own.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod flow;
mod migrate;
mod outbox;
mod receive;
mod roles;
mod support;
mod view;
mod work;
