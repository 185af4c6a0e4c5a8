//! `ichido send`: whom it finds, what it says where nobody answers or the answer is no, and TLS.

use std::{convert::Infallible, fs, path::Path, sync::Arc};

use http_body_util::Full;
use hyper::{Response, body::Bytes, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use ichido_testkit::tls;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::common::Site;

const GENERIC: &str = "[endpoint.parts]\nprovider = \"generic\"\nsecrets = [\"env:SECRET\"]\n\
                       [endpoint.parts.generic]\nheader = \"x-signature\"\n\
                       message = \"{timestamp}.{body}\"\ntimestamp_header = \"x-time\"\n\
                       id = \"json:meta.id\"\nevent_type = \"json:meta.kind\"\n";
const SHOP: &str = "[endpoint.shop]\nprovider = \"shopify\"\nsecrets = [\"env:SECRET\"]\n";

#[test]
fn the_only_endpoint_of_the_configuration_tells_url_provider_scheme_and_secret() {
    let site = Site::new(GENERIC);
    let server = site.serve();
    let listen = server.address.to_string();
    let (code, text) =
        site.run_with(&["send", "--count", "2", "--type", "part.made"], ("ICHIDO_LISTEN", &listen));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("ignored: 2"), "{text}");
    let (_, stats) = site.run(&["stats"]);
    assert!(stats.contains("2  parts  part.made"), "{stats}");
}

#[test]
fn of_several_endpoints_one_has_to_be_named() {
    let site = Site::new(&format!("{GENERIC}{SHOP}"));
    let (code, text) = site.run(&["send"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("--endpoint: parts, shop"), "{text}");
    let (_, text) = site.run(&["send", "--endpoint", "stop"]);
    assert!(text.contains("use one of parts, shop"), "{text}");

    let server = site.serve();
    let listen = server.address.to_string();
    let (code, text) = site.run_with(&["send", "--endpoint", "shop"], ("ICHIDO_LISTEN", &listen));
    assert_eq!(code, Some(0), "{text}");
    let url = format!("http://{listen}/webhooks/parts");
    let (code, text) = site.run(&["send", "--url", &url]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn without_an_endpoint_it_asks_where_to() {
    let (code, text) = Site::new("").run(&["send"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("--url") && text.contains("--config"), "{text}");
}

#[test]
fn where_nobody_listens_it_says_so_once_and_prints_no_figures() {
    let port = ichido_testkit::free_port().expect("a port");
    let url = format!("http://127.0.0.1:{port}/webhooks/parts");
    for form in [&["--count", "100000"][..], &["--json"]] {
        let (code, text) = Site::new(GENERIC).run(&[&["send", "--url", &url], form].concat());
        assert_eq!(code, Some(1), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        for part in [&url, "Connection refused", "ichido serve"] {
            assert!(text.contains(part), "{text}");
        }
    }
}

#[test]
fn a_refusal_comes_with_what_it_mostly_means() {
    let site = Site::new(GENERIC);
    let server = site.serve();
    let url = format!("http://{}/webhooks/parts", server.address);
    let (code, text) = site.run(&["send", "--url", &url, "--secret", "wrong"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("400: 1") && text.contains("is it the secret of"), "{text}");
    let url = format!("http://{}/webhooks/party", server.address);
    let (code, text) = site.run(&["send", "--url", &url, "--secret", "x"]);
    assert_eq!(code, Some(1), "{text}");
    for part in ["404: 1", "/webhooks/{endpoint}", "the configuration has parts"] {
        assert!(text.contains(part), "{text}");
    }
}

/// Answers every request over TLS on a port of its own, with the certificate in `folder`.
async fn with_certificate(folder: &Path) -> u16 {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificate = CertificateDer::from_pem_file(folder.join(tls::CERT));
    let key = PrivateKeyDer::from_pem_file(folder.join(tls::KEY));
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.expect("written")], key.expect("written"))
        .expect("they belong together");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // Who does not trust it ends the handshake.
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let answer = service_fn(async |_| {
                let body = Bytes::from_static(br#"{"outcome":"processed"}"#);
                Ok::<_, Infallible>(Response::new(Full::new(body)))
            });
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await);
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_tls_it_trusts_the_root_that_is_named_and_no_other() {
    let folder = tempfile::tempdir().expect("a directory");
    let root = tls::write(folder.path()).expect("written");
    let port = with_certificate(folder.path()).await;
    let site = Site::new(GENERIC);
    let url = format!("https://localhost:{port}/webhooks/parts");
    let root = root.to_str().expect("UTF-8").to_owned();
    let send = |options: &[&str], variable| {
        site.run_with(&[&["send", "--url", &url], options].concat(), variable)
    };
    for (options, variable) in
        [(&["--cacert", &*root][..], ("UNUSED", "")), (&[], ("SSL_CERT_FILE", &*root))]
    {
        let (code, text) = send(options, variable);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("processed: 1"), "{text}");
    }
    let other = tempfile::tempdir().expect("a directory");
    let other = tls::write(other.path()).map(fs::read).expect("written");
    let other_root = folder.path().join("other.crt");
    fs::write(&other_root, other.expect("read")).expect("written");
    let (code, text) = send(&["--cacert", other_root.to_str().expect("UTF-8")], ("UNUSED", ""));
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("certificate") && text.contains("--cacert"), "{text}");
}
