//! TLS on the listeners, row 33 of the catalogue of bad input, and new certificates without a
//! restart.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::Arc,
};

use ichido_testkit::tls::{CERT, KEY, write};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, Error, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};

use crate::{
    common::{Server, Site},
    wire::{DEADLINE, Wire, delivery, eventually, get, metric, site},
};

/// A site with a certificate in `certs`, and health on a listener of its own.
fn secure(more: &str) -> Site {
    let site = site(&format!(
        "health.listen = \"127.0.0.1:0\"\ntls.cert = \"certs/{CERT}\"\n\
         tls.key = \"certs/{KEY}\"\n{more}"
    ));
    fs::create_dir(site.path().join("certs")).expect("a directory");
    write(&site.path().join("certs")).expect("a certificate");
    site
}

/// Who signed the certificate in `certs`, as a client that trusts nobody else.
fn client(folder: &Path, alpn: &[&str]) -> Arc<ClientConfig> {
    let root = CertificateDer::from_pem_file(folder.join("root.crt")).expect("a root");
    let mut roots = RootCertStore::empty();
    roots.add(root).expect("good");
    let mut config = ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

type Secure = StreamOwned<ClientConnection, TcpStream>;

/// A finished handshake.
fn connect(address: SocketAddr, config: &Arc<ClientConfig>) -> Result<Secure, Error> {
    let name = ServerName::try_from("localhost").expect("a name");
    let mut connection = ClientConnection::new(config.clone(), name)?;
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.set_read_timeout(Some(DEADLINE)).expect("set");
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(|error| {
            let inner = error.into_inner().and_then(|inner| inner.downcast::<Error>().ok());
            inner.map_or(Error::General("cut off".into()), |inner| *inner)
        })?;
    }
    Ok(StreamOwned::new(connection, stream))
}

/// The whole answer to a request that ends its connection.
fn ask(address: SocketAddr, config: &Arc<ClientConfig>, request: &[u8]) -> String {
    let mut stream = connect(address, config).expect("a handshake");
    stream.write_all(request).expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer and a proper end");
    text
}

fn certs(site: &Site) -> std::path::PathBuf {
    site.path().join("certs")
}

#[test]
fn over_tls_a_delivery_is_taken_and_the_client_told_to_stay_with_tls() {
    let site = secure("");
    let server = site.serve();
    let config = client(&certs(&site), &[]);
    let answer = ask(server.address, &config, &delivery(1, "connection: close\r\n"));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("strict-transport-security: max-age=31536000\r\n"), "{answer}");
    assert!(answer.ends_with(r#"{"outcome":"ignored"}"#), "{answer}");
}

#[test]
fn http_1_1_is_the_only_protocol() {
    let site = secure("");
    let server = site.serve();
    let both = client(&certs(&site), &["h2", "http/1.1"]);
    let stream = connect(server.address, &both).expect("a handshake");
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    let newer = client(&certs(&site), &["h2"]);
    assert!(connect(server.address, &newer).is_err());
}

#[test]
fn row_33_a_handshake_that_stalls_is_cut_off() {
    let site = secure("limits.handshake_timeout = \"200ms\"");
    let server = site.serve();
    // The first bytes of a hello, and nothing.
    for start in [&b""[..], b"\x16\x03\x01\x02\x00\x01"] {
        assert!(Wire::sent(server.address, start).is_closed());
    }
    assert_eq!(ended(&server, "handshake_timeout"), 2);
}

#[test]
fn after_its_handshake_a_silent_client_has_the_time_of_a_head() {
    let site = secure("limits.header_timeout = \"500ms\"");
    let server = site.serve();
    let mut stream = connect(server.address, &client(&certs(&site), &[])).expect("a handshake");
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    assert_eq!(ended(&server, "header_timeout"), 1);
}

#[test]
fn a_client_without_tls_gets_nothing_and_is_counted() {
    let site = secure("");
    let server = site.serve();
    let mut wire = Wire::sent(server.address, &delivery(1, ""));
    let mut said = Vec::new();
    let _ = wire.stream.read_to_end(&mut said);
    assert!(!said.starts_with(b"HTTP"), "{said:?}");
    eventually("it is counted", || (ended(&server, "handshake_failed") == 1).then_some(()));
}

fn ended(server: &Server, reason: &str) -> u64 {
    crate::wire::ended(server.health(), reason)
}

fn stale(server: &Server) -> u64 {
    metric(server.health(), "ichido_tls_stale")
}

#[test]
fn a_new_certificate_is_used_without_a_restart() {
    let site = secure("tls.renew_every = \"20ms\"");
    let server = site.serve();
    let old = client(&certs(&site), &[]);
    let mut kept = connect(server.address, &old).expect("a handshake");
    write(&certs(&site)).expect("another certificate");
    let new = client(&certs(&site), &[]);
    eventually("the new one is used", || connect(server.address, &new).ok());
    assert!(connect(server.address, &old).is_err(), "it trusts the old one only");
    // Who is connected stays so.
    kept.write_all(&delivery(1, "connection: close\r\n")).expect("sent");
    let mut answer = String::new();
    kept.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn a_hangup_signal_reads_the_certificate_at_once() {
    let site = secure("tls.renew_every = \"1d\"");
    let server = site.serve();
    write(&certs(&site)).expect("another certificate");
    server.signal("HUP");
    server.wait_for("the certificate was read anew");
    connect(server.address, &client(&certs(&site), &[])).expect("the new one");
}

#[test]
fn a_bad_new_certificate_keeps_the_old_one_and_says_so() {
    let site = secure("tls.renew_every = \"20ms\"");
    let server = site.serve();
    let config = client(&certs(&site), &[]);
    let (cert, key) = (certs(&site).join(CERT), certs(&site).join(KEY));
    let (good, good_key) = (fs::read(&cert).expect("read"), fs::read(&key).expect("read"));
    let other = tempfile::tempdir().expect("a directory");
    write(other.path()).expect("another certificate");
    let others_key = fs::read(other.path().join(KEY)).expect("read");
    let secret = String::from_utf8_lossy(&others_key).lines().nth(1).expect("it").to_owned();
    for (bad_cert, bad_key, says) in [
        (b"nonsense".to_vec(), good_key.clone(), "no certificates in PEM form"),
        (good.clone(), b"nonsense".to_vec(), "no private key in PEM form"),
        (good.clone(), others_key, "tls.cert and tls.key"),
    ] {
        fs::write(&cert, bad_cert).expect("written");
        fs::write(&key, bad_key).expect("written");
        eventually("it is said", || {
            let log = server.log();
            (log.contains(says) && log.contains("the old one stays")).then_some(())
        });
        assert_eq!(stale(&server), 1);
        connect(server.address, &config).expect("the old one");
    }
    assert!(!server.log().contains(&secret), "a part of a key is in the log");
    fs::write(&cert, good).expect("written");
    fs::write(&key, good_key).expect("written");
    eventually("all is well again", || (stale(&server) == 0).then_some(()));
}

#[test]
fn health_speaks_tls_only_when_it_is_told_to() {
    let site = secure("");
    let server = site.serve();
    let answer = get(server.health(), "/livez");
    assert_eq!((answer.status, answer.header("strict-transport-security")), (200, None));
    drop(server);
    let site = secure("tls.listeners = \"all\"");
    let server = site.serve();
    let request = b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let answer = ask(server.health(), &client(&certs(&site), &[]), request);
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok\n"), "{answer}");
}

#[test]
fn a_certificate_that_cannot_be_used_is_refused_at_the_start_with_its_fix() {
    let site = secure("");
    for (file, text, fix) in [
        (CERT, None, "tls.cert: "),
        (CERT, Some("nonsense"), "no certificates in PEM form"),
        (KEY, Some("nonsense"), "no private key in PEM form"),
        (KEY, None, "tls.key: "),
    ] {
        let path = certs(&site).join(file);
        let good = fs::read(&path).expect("read");
        match text {
            Some(text) => fs::write(&path, text).expect("written"),
            None => fs::remove_file(&path).expect("removed"),
        }
        for command in [&["config", "check"][..], &["serve", "--listen", "127.0.0.1:0"]] {
            let (code, output) = site.run(command);
            assert_eq!(code, Some(1), "{output}");
            assert!(output.contains(fix), "{output}");
        }
        fs::write(&path, good).expect("restored");
    }
    let (code, output) = site.run_with(&["config", "check"], ("ICHIDO_TLS_KEY", ""));
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("tls.key is not: set both"), "{output}");
}
