//! Logs on standard error, as text or as one JSON object a line.
//!
//! It must never let a value end a line: texts from outside pass through `one_line`.

use std::borrow::Cow;

use anyhow::anyhow;
use tracing::level_filters::LevelFilter;

use crate::{
    cli::LogFormat,
    config::{Log, LogLevel},
};

/// Longest text from outside in a log line.
const TEXT_CHARS_MAX: usize = 1024;

/// Sets the log of this process up.
pub(crate) fn init(log: &Log) -> anyhow::Result<()> {
    let level = match log.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let lines = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr);
    let done = match log.format {
        LogFormat::Text => lines.with_ansi(false).with_target(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).with_target(false).try_init(),
    };
    done.map_err(|error| anyhow!("cannot set up the log: {error}"))
}

/// `text` on one line and of bounded length.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    let short = text.char_indices().nth(TEXT_CHARS_MAX).is_none();
    if short && !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let safe = text.chars().take(TEXT_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c });
    Cow::Owned(safe.collect())
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_text_cannot_start_a_line_of_its_own() {
        assert_eq!(one_line("a\nb\u{1b}[31m"), "a b [31m");
        assert_eq!(one_line(&"x".repeat(5000)).len(), 1024);
    }
}
