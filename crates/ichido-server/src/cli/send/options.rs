//! What `send` can be told.
//!
//! A secret among the options must never be shown, so it has a type of its own without a face.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::value_parser;

use crate::{
    cli::Form,
    config::{secret::SecretRef, span::Span},
};

/// Where `serve` receives for the billing example.
const DEFAULT_URL: &str = "http://127.0.0.1:8080/webhooks/billing";

/// Options of `send`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ichido send                                  # one event to the billing example
  ichido send --count 1000 --duplicate-percent 30")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) form: Form,
    /// Where to post
    #[arg(long, default_value = DEFAULT_URL)]
    pub(super) url: hyper::Uri,
    /// Whose signature to make: a name of the provider catalogue
    #[arg(long, default_value = "stripe")]
    pub(super) provider: String,
    /// The signing secret, or where it is: `env:NAME`, `file:PATH`
    #[arg(long, default_value = "env:STRIPE_WEBHOOK_SECRET", value_name = "SECRET")]
    pub(super) secret: SecretArg,
    /// Event type [default: invoice.paid for stripe, else one that the provider has]
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) event_type: Option<String>,
    /// A body of your own; only its id and type are set, and only where it must be
    #[arg(long, value_name = "FILE")]
    pub(super) data: Option<PathBuf>,
    /// Event id; with several events, what their ids begin with [default: random]
    #[arg(long)]
    pub(super) id: Option<String>,
    /// How many deliveries to send, repeats included
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u64).range(1..=100_000_000))]
    pub(super) count: u64,
    /// How many of a hundred deliveries repeat an earlier event
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u64).range(0..=99))]
    pub(super) duplicate_percent: u64,
    /// Requests at once
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u64).range(1..=1024))]
    pub(super) concurrency: u64,
    /// How long to wait for an answer
    #[arg(long, default_value = "30s", value_parser = span)]
    pub(super) timeout: Span,
    /// Send again what was not answered, or with 408, 429 or 5xx, for up to a minute each
    #[arg(long)]
    pub(super) retry: bool,
}

fn span(text: &str) -> Result<Span, String> {
    text.to_owned().try_into()
}

/// A secret or the place of one.
#[derive(Clone)]
pub(super) enum SecretArg {
    Place(SecretRef),
    Here(String),
}

impl FromStr for SecretArg {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with("env:") || text.starts_with("file:") {
            return SecretRef::try_from(text.to_owned()).map(Self::Place);
        }
        Ok(Self::Here(text.to_owned()))
    }
}

impl fmt::Debug for SecretArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place(place) => fmt::Debug::fmt(place, f),
            Self::Here(_) => f.write_str("[redacted]"),
        }
    }
}

impl SecretArg {
    /// The secret; files are found from the current directory.
    pub(super) fn read(&self) -> Result<String, String> {
        match self {
            Self::Place(place) => place.read(Path::new("")),
            Self::Here(secret) => Ok(secret.clone()),
        }
    }
}
