//! Posts signed requests and says how each was answered in the end.
//!
//! It must never wait without a limit: each request has a timeout, each delivery a last resend.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client as Pooled, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use ichido_verify::{Request, Timestamp};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

/// A resend waits up to this long, doubled each time from the first.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// After this long a delivery is not sent again.
const RESEND_FOR: Duration = Duration::from_mins(1);
/// An answer's body is not read further: ours are short, and others are not understood anyway.
const ANSWER_BYTES_MAX: usize = 65_536;
/// An idle connection is given up well before the server closes it under a request.
const IDLE: Duration = Duration::from_secs(20);

type Connections = Pooled<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Sends to one URL over kept connections. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Client {
    connections: Connections,
    url: Uri,
    timeout: Duration,
    retry: bool,
}

/// How one request went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// With this status; the outcome is there where the body told one.
    Status(StatusCode, Option<String>),
    /// Not at all, and why.
    None(Lost),
}

/// Nobody was reached at the address.
pub(super) const CANNOT_CONNECT: &str = "cannot connect";

/// Why there was no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lost {
    /// One of a few words, to count by.
    pub(crate) why: &'static str,
    /// What the system said.
    pub(crate) detail: String,
}

impl From<&'static str> for Lost {
    fn from(why: &'static str) -> Self {
        Self { why, detail: String::new() }
    }
}

impl Answer {
    /// True when the sender need not send again.
    pub(crate) fn is_success(&self) -> bool {
        matches!(self, Self::Status(status, _) if status.is_success())
    }

    /// True when sending it again can help.
    fn is_temporary(&self) -> bool {
        match self {
            Self::Status(status, _) => {
                status.is_server_error()
                    || *status == StatusCode::REQUEST_TIMEOUT
                    || *status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::None(_) => true,
        }
    }
}

/// One delivery: every answer it had, the last one being what became of it.
#[derive(Debug)]
pub(crate) struct Delivered {
    /// Each with the time that it took.
    pub(crate) answers: Vec<(Answer, Duration)>,
}

impl Delivered {
    /// The answer that counts.
    pub(crate) fn last(&self) -> &Answer {
        &self.answers.last().expect("every delivery is tried at least once").0
    }
}

impl Client {
    /// A client for `url`. Roots are read for `https://` only, the system's unless a file is
    /// named: machines without any can send to `http://`.
    pub(crate) fn new(
        url: &Uri,
        timeout: Duration,
        retry: bool,
        cacert: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let roots = match url.scheme_str() {
            Some("http") => RootCertStore::empty(),
            Some("https") => roots(cacert)?,
            _ => bail!("the URL must begin with http:// or https://"),
        };
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .context("TLS")?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        http.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let connections = Pooled::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self { connections, url: url.clone(), timeout, retry })
    }

    /// Sends what `sign` makes until it is answered for good. It is signed anew each time.
    ///
    /// Fails only when it cannot be signed.
    pub(crate) async fn deliver(
        &self,
        sign: impl Fn(Timestamp) -> anyhow::Result<Request>,
    ) -> anyhow::Result<Delivered> {
        let began = Instant::now();
        let mut pause = BACKOFF.0;
        let mut answers = Vec::with_capacity(1);
        loop {
            let sent = Instant::now();
            let answer = self.post(sign(Timestamp::now())?).await;
            let again = self.retry && answer.is_temporary() && began.elapsed() < RESEND_FOR;
            answers.push((answer, sent.elapsed()));
            if !again {
                return Ok(Delivered { answers });
            }
            tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            pause = (pause * 2).min(BACKOFF.1);
        }
    }

    async fn post(&self, request: Request) -> Answer {
        let mut builder = hyper::Request::post(self.url.clone());
        for (name, value) in request.headers.iter() {
            builder = builder.header(name, value);
        }
        let Ok(request) = builder.body(Full::new(request.body)) else {
            return Answer::None("not a request".into());
        };
        match tokio::time::timeout(self.timeout, self.exchange(request)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(why)) => Answer::None(why),
            Err(_) => Answer::None("timed out".into()),
        }
    }

    async fn exchange(&self, request: hyper::Request<Full<Bytes>>) -> Result<Answer, Lost> {
        let response = self.connections.request(request).await.map_err(|error| Lost {
            why: if error.is_connect() { CANNOT_CONNECT } else { "connection lost" },
            detail: root_cause(&error),
        })?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|_| "answer broke off")?.to_bytes();
        Ok(Answer::Status(status, outcome(&body)))
    }
}

/// The roots of the file, or of the system.
fn roots(cacert: Option<&Path>) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(file) = cacert else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    };
    let shown = file.display();
    let certificates = CertificateDer::pem_file_iter(file);
    for certificate in certificates.with_context(|| format!("--cacert {shown}"))? {
        let certificate = certificate.with_context(|| format!("--cacert {shown}"))?;
        roots.add(certificate).with_context(|| format!("--cacert {shown}"))?;
    }
    if roots.is_empty() {
        bail!("--cacert {shown}: no certificate in it");
    }
    Ok(roots)
}

/// The innermost error, which says what happened and not where.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

/// The word in `{"outcome":"..."}`.
fn outcome(body: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(value.get("outcome")?.as_str()?.to_owned())
}
