//! The configuration as types. Values come from `config.default.toml`, a file, the environment
//! and the command line, in this order; `config::load` puts them together.
//!
//! It must never hold a secret: only where one is. Secrets are read when an endpoint is built.

#[cfg(test)]
mod documented;
pub(crate) mod endpoint;
mod environment;
pub(crate) mod load;
pub(crate) mod networks;
mod refusal;
pub(crate) mod roles;
pub(crate) mod secret;
pub(crate) mod show;
pub(crate) mod span;

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
};

use serde::Deserialize;

use self::{
    endpoint::EndpointConfig, networks::Networks, roles::Roles, secret::DatabaseUrl, span::Span,
};
use crate::cli::LogFormat;

/// Every setting with its default: documentation and default at once.
pub(crate) const DEFAULTS: &str = include_str!("config.default.toml");

/// The largest body limit that can be set: a body is in memory while it is verified.
pub(crate) const BODY_BYTES_CAP: usize = 32 * 1024 * 1024;

/// All settings. Their meaning, defaults and reasons are in `config.default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) roles: Roles,
    pub(crate) shutdown_deadline: Span,
    pub(crate) tls: Tls,
    pub(crate) health: Health,
    pub(crate) log: Log,
    pub(crate) database: Database,
    pub(crate) limits: Limits,
    pub(crate) work: Work,
    pub(crate) app: App,
    #[serde(default)]
    pub(crate) endpoint: BTreeMap<String, EndpointConfig>,
    /// Relative paths start here: the directory of the file, else the current one.
    #[serde(skip)]
    pub(crate) base: PathBuf,
}

/// The certificate, and who speaks TLS with it. Without one nobody does.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tls {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) renew_every: Span,
    pub(crate) listeners: TlsListeners,
}

/// The setting `tls.listeners`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TlsListeners {
    Webhooks,
    All,
}

/// Where health and metrics are answered.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Health {
    pub(crate) listen: HealthListen,
}

/// The setting `health.listen`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum HealthListen {
    Auto,
    Off,
    Own(SocketAddr),
}

impl TryFrom<String> for HealthListen {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            address => address.parse().map(Self::Own).map_err(|_| {
                format!(
                    "`{address}` is neither \"auto\", \"off\" nor an address like 127.0.0.1:8081"
                )
            }),
        }
    }
}

/// How to log.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) format: LogFormat,
    pub(crate) level: LogLevel,
}

/// The least severe lines that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// Where the inbox lives.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Database {
    pub(crate) url: DatabaseUrl,
    pub(crate) schema: String,
    pub(crate) receive_connections: usize,
}

/// A limit on everything; above one of them a request is refused clearly, never truncated.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) body_bytes_max: usize,
    pub(crate) body_bytes_in_flight_max: usize,
    pub(crate) body_timeout: Span,
    pub(crate) headers_max: usize,
    pub(crate) header_bytes_max: usize,
    pub(crate) handshake_timeout: Span,
    pub(crate) header_timeout: Span,
    pub(crate) idle_timeout: Span,
    pub(crate) write_timeout: Span,
    pub(crate) connections_max: usize,
    pub(crate) connections_per_peer_max: usize,
    pub(crate) connections_per_peer_except: Networks,
    pub(crate) requests_max: usize,
    pub(crate) receive_wait: Span,
    pub(crate) retry_after: Span,
}

/// How handlers are run for what was stored first.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Work {
    pub(crate) concurrency: usize,
}

/// The user's own application.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct App {
    #[serde(default)]
    pub(crate) schema: PerEngine,
}

/// One file an engine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PerEngine {
    pub(crate) sqlite: Option<PathBuf>,
    pub(crate) postgres: Option<PathBuf>,
}

/// How this machine reaches a listener: an address that means all of them cannot be asked.
pub(crate) fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

impl Config {
    /// What contradicts itself in the settings outside endpoints, each with its fix.
    pub(crate) fn problems(&self) -> Vec<String> {
        let limits = &self.limits;
        let mut problems = Vec::new();
        let mut refuse = |bad: bool, text: String| {
            if bad {
                problems.push(text);
            }
        };
        refuse(
            limits.body_bytes_max > BODY_BYTES_CAP || limits.body_bytes_max == 0,
            format!("limits.body_bytes_max: use 1 to {BODY_BYTES_CAP}"),
        );
        refuse(
            limits.body_bytes_in_flight_max < limits.body_bytes_max,
            "limits.body_bytes_in_flight_max is below limits.body_bytes_max: no large body would \
             ever be taken; raise it"
                .into(),
        );
        refuse(limits.header_bytes_max < 8192, "limits.header_bytes_max: use at least 8192".into());
        for (name, value) in [
            ("limits.headers_max", limits.headers_max),
            ("limits.connections_max", limits.connections_max),
            ("limits.requests_max", limits.requests_max),
            ("database.receive_connections", self.database.receive_connections),
            ("work.concurrency", self.work.concurrency),
        ] {
            refuse(value == 0, format!("{name} is 0: nothing would be taken; use 1 or more"));
        }
        for (name, span) in [
            ("limits.body_timeout", limits.body_timeout),
            ("limits.handshake_timeout", limits.handshake_timeout),
            ("limits.header_timeout", limits.header_timeout),
            ("limits.idle_timeout", limits.idle_timeout),
            ("limits.write_timeout", limits.write_timeout),
            ("limits.receive_wait", limits.receive_wait),
            ("tls.renew_every", self.tls.renew_every),
        ] {
            refuse(span.0.is_zero(), format!("{name} is 0: give it some time"));
        }
        refuse(
            self.health.listen == HealthListen::Own(self.listen) && self.listen.port() != 0,
            "health.listen and listen are the same address: use \"auto\" or another port".into(),
        );
        problems
    }
}
