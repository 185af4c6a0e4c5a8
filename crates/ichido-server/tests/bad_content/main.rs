//! Deliveries with bad content against the real server, over TCP: signatures, replays, JSON and
//! forms, what reaches the log, a database in trouble. Each test is a row of the catalogue of bad
//! input, and its name begins with the row.
#![forbid(unsafe_code)]

mod auth;
#[path = "../server/common.rs"]
#[expect(dead_code, reason = "shared with the tests of the server, which use all of it")]
mod common;
mod database;
mod json;
mod log;
mod replay;
mod support;
