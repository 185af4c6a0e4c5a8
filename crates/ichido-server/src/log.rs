//! Logs on standard error, as text or as one JSON object a line.
//!
//! It must never let a value end a line: texts from outside pass through `one_line`.

use std::borrow::Cow;

use anyhow::anyhow;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{Layer, filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

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
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    let lines = match log.format {
        LogFormat::Text => lines.with_ansi(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // What the pool of connections says, one line each, is said once by whoever needed one.
    let pool = if level < LevelFilter::DEBUG { LevelFilter::OFF } else { level };
    let which = Targets::new().with_default(level).with_target("deadpool", pool);
    let done = tracing_subscriber::registry().with(lines.with_filter(which)).try_init();
    done.map_err(|error| anyhow!("cannot set up the log: {error}"))
}

/// `text` on one line, of bounded length, and looking like what it is.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    let short = text.char_indices().nth(TEXT_CHARS_MAX).is_none();
    if short && !text.chars().any(|c| c.is_control() || misleads(c)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for c in text.chars().take(TEXT_CHARS_MAX) {
        match c {
            c if c.is_control() => safe.push(' '),
            c if misleads(c) => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// Marks that end a line for some readers, change the order of what is shown, or hide.
fn misleads(c: char) -> bool {
    matches!(
        c,
        '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_text_cannot_start_a_line_of_its_own() {
        assert_eq!(one_line("a\nb\u{1b}[31m"), "a b [31m");
        assert_eq!(one_line("a\u{2028}b\u{202e}c"), r"a\u{2028}b\u{202e}c");
        assert_eq!(one_line("é 一度"), "é 一度");
        assert_eq!(one_line(&"x".repeat(5000)).len(), 1024);
    }
}
