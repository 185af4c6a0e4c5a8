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
    cli::{ConfigFile, Form},
    config::{secret::SecretRef, span::Span},
};

/// Options of `send`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ichido send --config ichido.toml             # to the only endpoint of the configuration
  ichido send --endpoint billing --count 1000 --duplicate-percent 30
  ichido send --url http://127.0.0.1:8080/webhooks/billing --provider stripe --secret env:SECRET")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) file: ConfigFile,
    /// Whose signature to make and where to post, as the configuration has it [default: the
    /// endpoint that --url names, else the only one]
    #[arg(long, value_name = "NAME")]
    pub(super) endpoint: Option<String>,
    /// Where to post [default: the endpoint, on this machine]
    #[arg(long)]
    pub(super) url: Option<hyper::Uri>,
    /// A name of the provider catalogue [default: the endpoint's, else stripe]
    #[arg(long, value_name = "NAME")]
    pub(super) provider: Option<String>,
    /// The signing secret, or where it is: `env:NAME`, `file:PATH` [default: the endpoint's first,
    /// else `env:STRIPE_WEBHOOK_SECRET` for stripe]
    #[arg(long, value_name = "SECRET")]
    pub(super) secret: Option<SecretArg>,
    /// A PEM file of the roots to trust for https://, instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(super) cacert: Option<PathBuf>,
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
    #[command(flatten)]
    pub(super) form: Form,
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
