//! TLS for the listeners: certificate and key from PEM files, renewed without a restart.
//!
//! A certificate that cannot be used never takes the place of one that can, and nothing of a key
//! file is ever logged.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
    time::{Duration, SystemTime},
};

use anyhow::Context;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::sleep,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};
use tracing::{error, info};

use crate::{config::Config, metrics::Metrics};

/// The certificate in use.
pub(crate) struct Tls {
    files: Files,
    current: RwLock<TlsAcceptor>,
}

struct Files {
    cert: PathBuf,
    key: PathBuf,
}

/// What tells a changed file from an unchanged one; `None` where there is none.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl Tls {
    /// The certificate that `config` names, if it names one.
    pub(crate) fn load(config: &Config) -> Result<Option<Self>, String> {
        let (cert, key) = (&config.tls.cert, &config.tls.key);
        match (cert.as_os_str().is_empty(), key.as_os_str().is_empty()) {
            (true, true) => return Ok(None),
            (false, false) => {}
            (true, false) => return Err("tls.key is set and tls.cert is not: set both".into()),
            (false, true) => return Err("tls.cert is set and tls.key is not: set both".into()),
        }
        let files = Files { cert: config.base.join(cert), key: config.base.join(key) };
        let current = RwLock::new(files.read()?);
        Ok(Some(Self { files, current }))
    }

    /// Speaks TLS with the newest certificate.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.current.read().expect("nothing panics while it holds this lock").clone()
    }
}

impl Files {
    fn read(&self) -> Result<TlsAcceptor, String> {
        let config = self.config()?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    fn config(&self) -> Result<ServerConfig, String> {
        let (cert, key) = (self.cert.display(), self.key.display());
        // A parser's error may show a line of the file: only those of the system are passed on.
        let chain = fs::read(&self.cert).map_err(|error| format!("tls.cert: {cert}: {error}"))?;
        let chain = CertificateDer::pem_slice_iter(&chain)
            .collect::<Result<Vec<_>, _>>()
            .ok()
            .filter(|chain| !chain.is_empty())
            .ok_or_else(|| format!("tls.cert: {cert}: no certificates in PEM form"))?;
        let secret = fs::read(&self.key).map_err(|error| format!("tls.key: {key}: {error}"))?;
        let secret = PrivateKeyDer::from_pem_slice(&secret)
            .map_err(|_| format!("tls.key: {key}: no private key in PEM form"))?;
        let mut config = ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret))
            .map_err(|error| format!("tls.cert and tls.key: {cert} and {key}: {error}"))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }

    fn stamp(&self) -> Stamp {
        let stamp = |path: &Path| {
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        };
        [stamp(&self.cert), stamp(&self.key)]
    }
}

/// Looks for new files, now and then and on SIGHUP.
pub(crate) struct Renewal {
    tls: Arc<Tls>,
    every: Duration,
    hangup: Signal,
    seen: Stamp,
}

impl Renewal {
    /// From now on SIGHUP does not end the process any more.
    pub(crate) fn new(tls: Arc<Tls>, every: Duration) -> anyhow::Result<Self> {
        let hangup = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
        let seen = tls.files.stamp();
        Ok(Self { tls, every, hangup, seen })
    }

    /// Renews the certificate whenever its files change, for ever.
    pub(crate) async fn run(mut self, metrics: &Metrics) {
        loop {
            let asked = tokio::select! {
                _ = self.hangup.recv() => true,
                () = sleep(self.every) => false,
            };
            // Before the files are read: what is written meanwhile is a change.
            let stamp = self.tls.files.stamp();
            if asked || stamp != self.seen {
                self.seen = stamp;
                self.renew(metrics);
            }
        }
    }

    fn renew(&self, metrics: &Metrics) {
        let read = self.tls.files.read();
        metrics.edge.tls_renewed(read.is_ok());
        match read {
            Ok(acceptor) => {
                let current = self.tls.current.write();
                *current.expect("nothing panics while it holds this lock") = acceptor;
                info!("TLS: the certificate was read anew");
            }
            Err(problem) => {
                error!(problem, "TLS: the new certificate cannot be used; the old one stays");
            }
        }
    }
}
