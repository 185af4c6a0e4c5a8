//! The headers of a delivery, in the order in which they came.
//!
//! Names are compared in lower case; values are bytes and are never decoded here. The evidence
//! block never holds a credential.

/// Headers whose whole value is a credential.
const CREDENTIALS: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-gitlab-token",
    "x-telegram-bot-api-secret-token",
    "x-payjp-webhook-token",
    "x-hook-secret",
];

const REDACTED: &[u8] = b"[redacted]";

/// Headers of one request: lower-case names, raw values, order kept, repeats kept.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(Box<str>, Box<[u8]>)>);

impl Headers {
    /// Makes an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends one header; the name is stored in lower case.
    pub fn push(&mut self, name: &str, value: &[u8]) {
        self.0.push((name.to_ascii_lowercase().into(), value.into()));
    }

    /// Yields every value of the header `name` (any case), in order.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Yields name and value of each header, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Renders the block that is stored as evidence: `name: value` and a line feed per header.
    ///
    /// The values of headers that are a credential by themselves (`Authorization`, `Cookie`,
    /// headers that carry a plain shared secret) are replaced by `[redacted]`.
    pub fn evidence(&self) -> Vec<u8> {
        let size = self.0.iter().map(|(name, value)| name.len() + value.len() + 3).sum();
        let mut block = Vec::with_capacity(size);
        for (name, value) in self.iter() {
            block.extend_from_slice(name.as_bytes());
            block.extend_from_slice(b": ");
            let secret = CREDENTIALS.contains(&name);
            block.extend_from_slice(if secret { REDACTED } else { value });
            block.push(b'\n');
        }
        block
    }

    /// Drops every header called `name` (any case).
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(have, _)| !have.eq_ignore_ascii_case(name));
    }
}

/// Shows names only: values can be signatures or credentials.
impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(headers: I) -> Self {
        let mut list = Self::new();
        for (name, value) in headers {
            list.push(name.as_ref(), value.as_ref());
        }
        list
    }
}
