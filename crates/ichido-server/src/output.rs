//! The one writer of the command line: results to standard output, failures to standard error.
//!
//! It must never be handed a secret: what is written here ends in terminals and build logs.

use std::{
    io::{ErrorKind, Write, stderr, stdout},
    process::ExitCode,
};

/// Writes `text` and a line feed to standard output. A reader that went away (`| head`) is no
/// error.
pub(crate) fn line(text: &str) -> std::io::Result<()> {
    let mut out = stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes `value` as one JSON document to standard output.
pub(crate) fn json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    line(&serde_json::to_string_pretty(value)?)?;
    Ok(())
}

/// Tells on standard error why the command failed, with its causes, and gives the exit code.
pub(crate) fn failed(error: &anyhow::Error) -> ExitCode {
    note(&format!("error: {error:#}"));
    ExitCode::FAILURE
}

/// Writes a remark that is not the result to standard error. There is nobody left to tell when
/// that fails.
pub(crate) fn note(text: &str) {
    let _ = writeln!(stderr().lock(), "{text}");
}
