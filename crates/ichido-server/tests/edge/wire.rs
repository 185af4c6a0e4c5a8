//! Signed deliveries, and connections whose every byte is the test's own.
//!
//! It must never wait without a deadline.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use ichido_verify::{Headers, Request, Secret, Settings, Timestamp, Verifier};

use crate::common::{SECRET, Site};

/// How long anything here may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);
/// The path of the endpoint that most tests send to.
pub(crate) const PATH: &str = "/webhooks/billing";

/// Nothing else may be on an answer.
const ALLOWED: [&str; 12] = [
    "allow",
    "cache-control",
    "connection",
    "content-length",
    "content-security-policy",
    "content-type",
    "date",
    "referrer-policy",
    "retry-after",
    "strict-transport-security",
    "x-content-type-options",
    "x-request-id",
];

/// A site on an embedded file with the Stripe endpoint `billing`, which stores every event and
/// has a handler for none. `settings` comes first, so that it may hold top-level keys.
pub(crate) fn site(settings: &str) -> Site {
    Site::new(&format!(
        "{settings}\n[database]\nurl = \"sqlite:ichido.db\"\n[endpoint.billing]\n\
         provider = \"stripe\"\nsecrets = [\"env:SECRET\"]\n"
    ))
}

/// How many events the embedded file of a site holds.
pub(crate) fn stored(site: &Site) -> i64 {
    let file = rusqlite::Connection::open(site.path().join("ichido.db")).expect("opens");
    file.query_row("SELECT count(*) FROM ichido_event", [], |row| row.get(0)).expect("a number")
}

/// The body of event `number`.
pub(crate) fn body(number: usize) -> String {
    format!(
        r#"{{"id":"evt_{number}","object":"event","type":"invoice.paid","created":1760000000}}"#
    )
}

/// The value of `stripe-signature` for `body`.
pub(crate) fn signature(body: &str, at: Timestamp) -> String {
    let verifier = Verifier::new("stripe", &Settings::default(), &[Secret::new(SECRET)]);
    let mut request = Request {
        method: "POST".into(),
        url: PATH.into(),
        headers: Headers::new(),
        body: Bytes::from(body.to_owned()),
    };
    verifier.expect("a good secret").sign(&mut request, "", "", at).expect("signed");
    let value = request.headers.get_all("stripe-signature").next().expect("a signature").to_vec();
    String::from_utf8(value).expect("ASCII")
}

/// A delivery of event `number` with `extra` header lines, each with its line end.
pub(crate) fn delivery(number: usize, extra: &str) -> Vec<u8> {
    post(&body(number), extra)
}

/// A signed delivery of `body`, in the same way.
pub(crate) fn post(body: &str, extra: &str) -> Vec<u8> {
    let signature = signature(body, Timestamp::now());
    let length = body.len();
    format!(
        "POST {PATH} HTTP/1.1\r\nhost: x\r\nstripe-signature: {signature}\r\n\
         content-length: {length}\r\n{extra}\r\n{body}"
    )
    .into_bytes()
}

/// A connection of the test's own.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    read: Vec<u8>,
}

/// An answer as it came.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    /// The only value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter().filter(|(have, _)| have == name);
        let value = all.next().map(|(_, value)| value.as_str());
        assert!(all.next().is_none(), "{name} came twice: {self:?}");
        value
    }
}

impl Wire {
    /// Connects.
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, DEADLINE).expect("connects");
        stream.set_read_timeout(Some(DEADLINE)).expect("set");
        stream.set_write_timeout(Some(DEADLINE)).expect("set");
        stream.set_nodelay(true).expect("set");
        Self { stream, read: Vec::new() }
    }

    /// Connects and sends.
    pub(crate) fn sent(address: SocketAddr, bytes: &[u8]) -> Self {
        let mut wire = Self::open(address);
        wire.send(bytes);
        wire
    }

    /// Sends all of `bytes`. The server may have closed meanwhile: what it said is still to be
    /// read.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Sends a byte now and again until the server has closed or answered; true when it did.
    pub(crate) fn drip(&mut self, bytes: &[u8], pause: Duration) -> bool {
        self.stream.set_nonblocking(true).expect("set");
        let heard = bytes.iter().any(|byte| {
            let gone = self.stream.write_all(&[*byte]).is_err();
            thread::park_timeout(pause);
            gone || !matches!(self.fill(), Err(error) if error.kind() == ErrorKind::WouldBlock)
        });
        self.stream.set_nonblocking(false).expect("set");
        heard
    }

    /// Reads the next answer. `None`: the server closed before a whole head came.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let head = loop {
            if let Some(at) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = self.read.drain(..at + 4).collect::<Vec<_>>();
                break String::from_utf8(head).expect("text");
            }
            match self.fill() {
                Ok(0) => return None,
                Err(error) if is_gone(&error) => return None,
                more => more.expect("an answer in time"),
            };
        };
        let mut lines = head.trim_end().lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status line");
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ").expect("a header");
            (name.to_owned(), value.to_owned())
        });
        let status = status.parse().expect("a number");
        let mut answer = Answer { status, headers: headers.collect(), body: String::new() };
        for (name, _) in &answer.headers {
            assert!(ALLOWED.contains(&name.as_str()), "{answer:?}");
        }
        let length = answer.header("content-length").map_or(0, |text| text.parse().expect("one"));
        while self.read.len() < length {
            assert_ne!(self.fill().expect("the body in time"), 0, "cut off: {answer:?}");
        }
        answer.body = String::from_utf8(self.read.drain(..length).collect()).expect("text");
        Some(answer)
    }

    /// True when the server ends the connection without another byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.fill() {
            Ok(0) => self.read.is_empty(),
            Ok(_) => false,
            Err(error) => is_gone(&error),
        }
    }

    fn fill(&mut self) -> std::io::Result<usize> {
        let mut some = [0; 16 * 1024];
        let count = self.stream.read(&mut some)?;
        self.read.extend_from_slice(&some[..count]);
        Ok(count)
    }
}

fn is_gone(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// The answer to one request on a connection of its own.
pub(crate) fn ask(address: SocketAddr, request: &[u8]) -> Answer {
    Wire::sent(address, request).answer().expect("an answer")
}

/// The answer to `GET path`.
pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    ask(address, request.as_bytes())
}

/// Asks again and again until `condition` gives a value.
pub(crate) fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < end, "not in time: {what}");
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// The value of a line of `/metrics`, given with its labels.
pub(crate) fn metric(address: SocketAddr, line: &str) -> u64 {
    let text = get(address, "/metrics").body;
    let value = text.lines().find_map(|have| have.strip_prefix(line)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {line} in\n{text}")).parse().expect("a whole number")
}

/// How many connections were ended for `reason`.
pub(crate) fn ended(address: SocketAddr, reason: &str) -> u64 {
    metric(address, &format!("ichido_http_connections_ended_total{{reason=\"{reason}\"}}"))
}

/// The memory that a process really has.
pub(crate) fn rss_bytes(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    let kib = line.trim().strip_suffix(" kB").expect("in kB");
    kib.trim().parse::<u64>().expect("a number") * 1024
}
