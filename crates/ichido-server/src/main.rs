//! The server and command line of Ichido.
//!
//! This file starts the command that was asked for and turns its end into an exit code. It must
//! never decide anything else: commands are in `cli`, HTTP in `http`, settings in `config`.
#![forbid(unsafe_code)]

mod cli;
mod config;
mod engine;
mod http;
mod log;
mod metrics;
mod open_files;
mod output;
mod serve;
mod tls;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output::failed(&error.into()),
    };
    let code = runtime.block_on(cli.run()).unwrap_or_else(|error| output::failed(&error));
    // A task that still runs here was given its deadline already; the process ends without it.
    runtime.shutdown_background();
    code
}
