//! The real binary from outside: its answers and its commands.
#![forbid(unsafe_code)]

mod burst;
mod common;
mod config;
mod demo;
mod http;
