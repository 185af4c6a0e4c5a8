//! The real binary from outside: its answers and its commands.
#![forbid(unsafe_code)]

mod billing;
mod burst;
mod common;
mod config;
mod demo;
mod deploy;
mod desk;
mod http;
mod send;
mod start;
mod workers;
