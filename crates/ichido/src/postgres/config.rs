//! Where the database is and how to talk to it. Opens nothing; must never show a password.

use std::{path::PathBuf, str::FromStr, time::Duration};

use tokio_postgres::config::{Host, SslMode};

use super::Schema;
use crate::{Error, ErrorKind};

/// Connections that receive: more than committers and sync handlers need at once only queue up
/// in the database.
pub const RECEIVE_CONNECTIONS: usize = 16;
/// Connections of the workers: one for each handler of [`crate::CONCURRENCY`], and two that claim
/// and record failures meanwhile.
pub const WORK_CONNECTIONS: usize = crate::CONCURRENCY + 2;
/// How long a receive waits for a connection before it is refused as busy.
pub const RECEIVE_WAIT: Duration = Duration::from_secs(2);
/// How long opening a connection may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Deliveries that may wait for a committer: about a second of work on a small machine.
pub const WAITING_MAX: usize = 4_096;
/// Group commits under way at once: one writes while the next one is being filled.
pub const COMMITTERS: usize = 2;
/// A peer that does not acknowledge for this long is gone.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(15);

/// Settings of the PostgreSQL engine.
#[derive(Clone)]
#[non_exhaustive]
pub struct Config {
    pub(super) driver: tokio_postgres::Config,
    pub(super) root_cert: Option<PathBuf>,
    /// The schema that holds our tables and functions.
    pub schema: Schema,
    /// Connections of the receive role.
    pub receive_connections: usize,
    /// Connections of the workers; opened only by a process that works.
    pub work_connections: usize,
    /// How long a receive waits for a connection.
    pub receive_wait: Duration,
    /// Deliveries that may wait for a committer; above it a receive is refused as busy.
    pub waiting_max: usize,
    /// Group commits under way at once.
    pub committers: usize,
    /// Prepares statements on lines that lead straight to the server; a pooler is noticed by
    /// itself. `false`: never.
    pub prepared_statements: bool,
}

impl Config {
    /// Reads a `postgres://` URL.
    ///
    /// A remote host is spoken to over TLS with its name verified, unless the URL says
    /// `sslmode=disable`; this machine and unix sockets without TLS, unless it says otherwise.
    /// Every other `sslmode` means verify-full here. `sslrootcert` names a PEM file of roots;
    /// without it the system's roots count.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] when the URL cannot be read; the password is not repeated.
    pub fn new(url: &str) -> Result<Self, Error> {
        let (url, options) = take_tls_options(url);
        let mut driver = tokio_postgres::Config::from_str(&url).map_err(|_| {
            let fix = "the database URL cannot be read: use postgres://USER:PASSWORD@HOST/NAME";
            Error::new(ErrorKind::Unavailable, fix)
        })?;
        let plain = match options.mode.as_deref() {
            Some("disable") => true,
            Some(_) => false,
            None => driver.get_hosts().iter().all(is_local),
        };
        driver
            .ssl_mode(if plain { SslMode::Disable } else { SslMode::Require })
            .connect_timeout(CONNECT_TIMEOUT)
            .keepalives_idle(Duration::from_secs(10))
            .keepalives_interval(Duration::from_secs(5))
            .keepalives_retries(3)
            .tcp_user_timeout(TCP_USER_TIMEOUT);
        if driver.get_application_name().is_none() {
            driver.application_name("ichido");
        }
        Ok(Self {
            driver,
            root_cert: options.root_cert,
            schema: Schema::default(),
            receive_connections: RECEIVE_CONNECTIONS,
            work_connections: WORK_CONNECTIONS,
            receive_wait: RECEIVE_WAIT,
            waiting_max: WAITING_MAX,
            committers: COMMITTERS,
            prepared_statements: true,
        })
    }

    /// Where the server is, for errors: every host with its port.
    pub(super) fn place(&self) -> String {
        let ports = self.driver.get_ports();
        let hosts = self.driver.get_hosts().iter().enumerate();
        let places = hosts.map(|(n, host)| {
            let port = ports.get(n).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(folder) => format!("{}/.s.PGSQL.{port}", folder.display()),
            }
        });
        places.collect::<Vec<_>>().join(", ")
    }

    /// Sets the schema.
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = schema;
        self
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("hosts", &self.driver.get_hosts())
            .field("dbname", &self.driver.get_dbname())
            .field("ssl_mode", &self.driver.get_ssl_mode())
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost"
                || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

#[derive(Default)]
struct TlsOptions {
    mode: Option<String>,
    root_cert: Option<PathBuf>,
}

/// Takes `sslmode` and `sslrootcert` out: the driver does not know `verify-full`.
fn take_tls_options(url: &str) -> (String, TlsOptions) {
    let mut options = TlsOptions::default();
    let Some((base, query)) = url.split_once('?') else {
        return (url.to_owned(), options);
    };
    let mut rest = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", mode)) => options.mode = Some(mode.to_owned()),
            Some(("sslrootcert", file)) => options.root_cert = Some(file.into()),
            _ => rest.push(pair),
        }
    }
    let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
    (format!("{base}{query}"), options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str) -> SslMode {
        Config::new(url).expect("a good URL").driver.get_ssl_mode()
    }

    #[test]
    fn a_remote_host_is_spoken_to_over_tls_unless_told_otherwise() {
        assert_eq!(mode("postgres://u:p@db.example.com/x"), SslMode::Require);
        assert_eq!(mode("postgres://u:p@10.1.2.3/x?sslmode=prefer"), SslMode::Require);
        assert_eq!(mode("postgres://u:p@db.example.com/x?sslmode=disable"), SslMode::Disable);
    }

    #[test]
    fn this_machine_is_spoken_to_without_tls_unless_told_otherwise() {
        assert_eq!(mode("postgres://u@127.0.0.1:5432/x"), SslMode::Disable);
        assert_eq!(mode("postgres://u@localhost/x?sslmode=verify-full"), SslMode::Require);
    }

    #[test]
    fn a_place_is_every_host_with_its_port() {
        let place = |url: &str| Config::new(url).expect("a good URL").place();
        assert_eq!(place("postgres://u:p@db.example.com/x"), "db.example.com:5432");
        assert_eq!(place("postgres://u:p@a:1,b:2/x"), "a:1, b:2");
        assert_eq!(place("postgres://u@[::1]:7/x"), "[::1]:7");
        assert_eq!(place("postgres://%2Frun%2Fpg/x"), "/run/pg/.s.PGSQL.5432");
    }

    #[test]
    fn debug_and_errors_show_no_password() {
        let config = Config::new("postgres://u:hunter2@127.0.0.1/x").expect("good");
        assert!(!format!("{config:?}").contains("hunter2"));
        let error = Config::new("postgres://u:hunter2@127.0.0.1:port/x").expect_err("bad port");
        assert!(!error.to_string().contains("hunter2"));
    }
}
