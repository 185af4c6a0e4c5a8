//! Deliveries with bad content against the real server, over TCP: signatures, replays, JSON and
//! forms, what reaches the log, a database in trouble; and clients that hang up. A test whose name
//! begins with a row is that row of the catalogue of bad input.
#![forbid(unsafe_code)]

mod auth;
#[path = "../server/common.rs"]
#[expect(dead_code, reason = "shared with the tests of the server, which use all of it")]
mod common;
mod database;
mod hang_up;
mod json;
mod log;
mod repeats;
mod replay;
mod support;
