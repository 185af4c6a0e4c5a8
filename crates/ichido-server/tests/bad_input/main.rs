//! Bad input, a test for each kind: bytes over a socket to the real server on the embedded
//! engine, its answer, and what it stored. The numbers are rows of one catalogue.
//!
//! Every request that is refused here is refused for the one thing that is wrong with it: all
//! the rest of it, its signature included, is good.
#![forbid(unsafe_code)]

#[path = "../server/common.rs"]
#[expect(dead_code, reason = "shared with the tests of the server, which use more of it")]
mod common;
mod framing;
mod header;
mod path;
mod size;

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use ichido_verify::{
    GenericAlgorithm, GenericHmac, Headers, Request, Secret, Settings, Timestamp, Verifier,
};

use common::{Answer, SECRET, Server, Site};

/// An event of Stripe's.
const EVENT: &str = r#"{"id":"evt_1","type":"invoice.paid"}"#;
/// The secret of the endpoint `other`.
const OTHER_SECRET: &str = "whsec_andere_andere";
/// The secret of the endpoint `standard`, whose provider wants base64.
const STANDARD_SECRET: &str = "whsec_Z2VoZWltZ2VoZWltZ2VoZWltZ2VoZWlt";
/// A path with an endpoint behind it.
const BILLING: &str = "/webhooks/billing";
/// How long an answer may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// Endpoints of several providers, none with a handler: what is taken is stored and `ignored`.
const ENDPOINTS: &str = "
[endpoint.billing]
provider = \"stripe\"
secrets = [\"env:SECRET\"]
[endpoint.other]
provider = \"stripe\"
secrets = [\"file:other.secret\"]
[endpoint.standard]
provider = \"standard-webhooks\"
secrets = [\"file:standard.secret\"]
[endpoint.hub]
provider = \"github\"
secrets = [\"env:SECRET\"]
[endpoint.placed]
provider = \"generic\"
secrets = [\"env:SECRET\"]
public_url = \"https://hooks.example/webhooks/placed\"
[endpoint.placed.generic]
header = \"x-signature\"
message = \"{url} {body}\"
id = \"json:id\"
";

/// A server with its files.
struct World {
    site: Site,
    server: Server,
}

impl World {
    /// With the default limits.
    fn new() -> Self {
        Self::limited("")
    }

    /// With these `[limits]`.
    fn limited(limits: &str) -> Self {
        let database = "[database]\nurl = \"sqlite:ichido.db\"\n";
        let site = Site::new(&format!("{database}[limits]\n{limits}\n{ENDPOINTS}"))
            .file("other.secret", OTHER_SECRET)
            .file("standard.secret", STANDARD_SECRET);
        let server = site.serve();
        Self { site, server }
    }

    /// An open connection.
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.address).expect("connects");
        stream.set_read_timeout(Some(DEADLINE)).expect("set");
        stream
    }

    /// Sends the bytes and gives all that comes back until the server closes the connection.
    /// Fails when it keeps it open.
    fn talk(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        // Refused before all of it was read, so that the rest may find no reader.
        let _ = stream.write_all(request);
        until_closed(stream)
    }

    /// The same, and nothing follows: the other side sees the end of what we send.
    fn talk_and_end(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).expect("sent");
        stream.shutdown(Shutdown::Write).expect("open");
        until_closed(stream)
    }

    /// Posts a body with its length on a connection of its own.
    fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.server.send("POST", path, headers, body)
    }

    /// Posts an event to `billing` under this signature; gives the status.
    fn signed_by(&self, signature: &str) -> u16 {
        self.post(BILLING, &[("stripe-signature", signature)], EVENT).status
    }

    /// Reads one number or text from the inbox's file.
    fn read<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        let file = self.site.path().join("ichido.db");
        let database = rusqlite::Connection::open(file).expect("opens");
        database.query_row(sql, [], |row| row.get(0)).expect(sql)
    }

    /// How many events are stored.
    fn events(&self) -> i64 {
        self.read("SELECT count(*) FROM ichido_event")
    }

    /// The one stored body.
    fn body(&self) -> Vec<u8> {
        assert_eq!(self.read::<i64>("SELECT count(*) FROM ichido_delivery"), 1);
        self.read("SELECT body FROM ichido_delivery")
    }

    /// Fails unless all that is stored is one event without a usable id, which waits for a human
    /// under the digest of its body.
    fn assert_needs_review(&self) {
        let key: String = self.read(
            "SELECT e.event_id || ' ' || e.event_type FROM ichido_review r
               JOIN ichido_event e ON e.id = r.id",
        );
        let digest: String = self.read("SELECT lower(hex(digest)) FROM ichido_event");
        assert_eq!(key, format!("sha256:{digest} unreadable"));
        assert_eq!(self.events(), 1);
    }
}

/// All that comes until the other side closes.
fn until_closed(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        // A reset is an end as well: the server did not read the rest.
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "not closed: {text}");
    }
    String::from_utf8(bytes).expect("UTF-8")
}

/// The statuses of the answers, in order.
fn statuses(answers: &str) -> Vec<u16> {
    let status = |line: &str| line.get(..3).and_then(|status| status.parse().ok());
    answers.split("HTTP/1.1 ").skip(1).map(|line| status(line).expect("a status")).collect()
}

/// A request's head with these header lines; the connection is to stay open.
fn head(path: &str, lines: &[&str]) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: x\r\n{}\r\n\r\n", lines.join("\r\n"))
}

/// The header line with Stripe's signature of this body.
fn stripe_line(body: &[u8]) -> String {
    format!("stripe-signature: {}", stripe(body))
}

/// The value of Stripe's signature header, as of now.
fn stripe(body: &[u8]) -> String {
    stripe_at(&Timestamp::now().as_second().to_string(), body)
}

/// The same with the time as it is given, which is signed.
fn stripe_at(time: &str, body: &[u8]) -> String {
    format!("t={time},v1={}", mac([time.as_bytes(), b".", body].concat(), SECRET))
}

/// HMAC-SHA256 of any bytes, as hexadecimal text.
fn mac(message: Vec<u8>, secret: &str) -> String {
    mac_with(GenericAlgorithm::Sha256, message, secret)
}

/// An HMAC of any bytes, as hexadecimal text.
fn mac_with(algorithm: GenericAlgorithm, message: Vec<u8>, secret: &str) -> String {
    let generic: GenericHmac =
        serde_json::from_str(r#"{"header":"x-mac","id":"json:id"}"#).expect("a scheme");
    let generic = Some(GenericHmac { algorithm, ..generic });
    let settings = Settings { generic, ..Settings::default() };
    let headers = sign("generic", &settings, secret, message, Timestamp::now());
    value(&headers, "x-mac")
}

/// The headers with which this provider would send this body; the event id, where it is in a
/// header, is `evt_1`.
fn sign(
    provider: &str,
    settings: &Settings,
    secret: &str,
    body: Vec<u8>,
    at: Timestamp,
) -> Headers {
    let verifier = Verifier::new(provider, settings, &[Secret::new(secret)]).expect("good");
    let mut request = Request { method: "POST".into(), body: body.into(), ..Request::default() };
    verifier.sign(&mut request, "evt_1", "invoice.paid", at).expect("signed");
    request.headers
}

/// The only value of a header, as text.
fn value(headers: &Headers, name: &str) -> String {
    let value = headers.get_all(name).next().expect(name).to_vec();
    String::from_utf8(value).expect("ASCII")
}
