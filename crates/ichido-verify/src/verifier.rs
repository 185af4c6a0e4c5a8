//! The verifier of one endpoint: raw bytes in, verdict out.
//!
//! Nothing of a request is parsed as JSON or as a form before its signature matched, and `now` is
//! an argument. All that can be prepared is prepared once, in [`Verifier::new`].

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use crate::check::{NumberedKey, check};
use crate::provider::{Part, Special, TimestampRule, TimestampSource};
use crate::read::{Content, Reader};
use crate::signature::{Claimed, claimed, only};
use crate::special::{ecdsa, hubspot, token};
use crate::{
    ConfigError, Delivery, Provider, Refused, Rejection, Request, Secret, Settings, Verdict,
    challenge, content, key, time,
};

/// Most secrets of one endpoint: a rotation needs two, and each costs an HMAC per request.
pub const SECRETS_MAX: usize = 16;

/// Longest tolerance: an identity is remembered for 24 h after the last retry at least, so that a
/// recorded delivery can't take effect again. Past that it could.
const TOLERANCE_MAX: Duration = Duration::from_hours(24);

/// A provider's scheme with an endpoint's settings and keys, compiled once.
pub struct Verifier {
    pub(crate) row: Provider,
    pub(crate) keys: Vec<NumberedKey>,
    /// The secrets themselves, of providers that send them.
    pub(crate) tokens: Vec<Secret>,
    /// The public keys of [`Special::EcdsaP256`].
    points: Vec<Vec<u8>>,
    decoded_url: Box<str>,
    pub(crate) url: Option<Box<str>>,
    tolerance: Duration,
    reader: Reader,
}

/// Shows no key.
impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier")
            .field("provider", &self.row.name)
            .field("keys", &self.keys.len())
            .finish_non_exhaustive()
    }
}

impl Verifier {
    /// Compiles an endpoint's verifier. Every secret is tried for every delivery.
    ///
    /// # Errors
    /// An unknown provider, settings that the provider can't have, no secret, or a secret that is
    /// empty or can't be decoded. The text names the fix and never a secret.
    pub fn new(name: &str, settings: &Settings, secrets: &[Secret]) -> Result<Self, ConfigError> {
        Self::from_row(Provider::of(name, settings)?, settings, secrets)
    }

    pub(crate) fn from_row(
        row: Provider,
        settings: &Settings,
        secrets: &[Secret],
    ) -> Result<Self, ConfigError> {
        let (tolerance, mut problems) = check_settings(&row, settings);
        let keys = keys(&row, secrets, &mut problems);
        let tokens = match row.special {
            Special::Token { .. } => secrets.to_vec(),
            _ => Vec::new(),
        };
        let mut points = Vec::new();
        if row.special == Special::EcdsaP256 {
            for (at, secret) in secrets.iter().enumerate() {
                match ecdsa::point(secret) {
                    Some(point) => points.push(point),
                    None => problems.push(ConfigError::new(format!(
                        "secret {} is not a P-256 public key in base64: copy it again",
                        at + 1
                    ))),
                }
            }
        }
        if !problems.is_empty() {
            return Err(ConfigError::all(problems));
        }
        let url = settings.public_url.as_deref().map(Into::into);
        let decoded_url = settings.public_url.as_deref().map(hubspot::decode).unwrap_or_default();
        let decoded_url = decoded_url.into();
        let row = with_verify_token(row, settings);
        let reader = Reader::new(&row);
        Ok(Self { row, keys, tokens, points, decoded_url, url, tolerance, reader })
    }

    /// Checks what does not depend on secrets, for callers that have none at hand.
    ///
    /// # Errors
    /// Those of [`Verifier::new`] that are not about secrets.
    pub fn check(name: &str, settings: &Settings) -> Result<(), ConfigError> {
        let (_, problems) = check_settings(&Provider::of(name, settings)?, settings);
        if problems.is_empty() { Ok(()) } else { Err(ConfigError::all(problems)) }
    }

    /// The provider's row.
    pub fn provider(&self) -> &Provider {
        &self.row
    }

    /// Verifies one request as it came.
    ///
    /// A request that verifies is always a delivery or a handshake, however odd its body: an
    /// event without a usable id comes out as `unreadable`.
    ///
    /// # Errors
    /// The reason why the request is not believed; it says nothing about its content.
    pub fn verify(&self, request: Request, now: Timestamp) -> Result<Verdict, Rejection> {
        self.judge(request, now).map_err(|refused| refused.reason)
    }

    /// [`Verifier::verify`] that also tells how wrong a signed time was.
    ///
    /// # Errors
    /// As [`Verifier::verify`].
    pub fn judge(&self, request: Request, now: Timestamp) -> Result<Verdict, Refused> {
        let secret = match self.matching_secret(&request, now) {
            Ok(secret) => secret,
            Err(refused) => {
                let answer = self.reader.unsigned_handshake(&self.row, &self.keys, &request);
                return answer.map(Verdict::Handshake).ok_or(refused);
            }
        };
        Ok(match self.reader.read(&self.row, &self.keys, secret, &request) {
            Content::Handshake(answer) => Verdict::Handshake(answer),
            Content::Events(events) => Verdict::Delivery(Delivery { request, secret, events }),
        })
    }

    /// Whether two bodies say the same once the provider's volatile members are dropped.
    ///
    /// Objects are compared without regard to the order of members, numbers by their exact text.
    /// What is not a JSON object is compared byte by byte.
    pub fn same_content(&self, a: &[u8], b: &[u8]) -> bool {
        content::same(a, b, &self.row.volatile)
    }

    fn matching_secret(&self, request: &Request, now: Timestamp) -> Result<usize, Refused> {
        let scheme = &self.row.scheme;
        if let Special::Token { source, prefix } = self.row.special {
            return Ok(token::matching(source, prefix, &self.tokens, request)?);
        }
        if self.row.special == Special::EcdsaP256 {
            return self.matching_point(request, now);
        }
        if challenge::signs(&self.row.handshakes, &request.body) {
            return Err(Rejection::WrongSignature.into());
        }
        let Claimed { candidates, timestamp: labelled } = claimed(&request.headers, scheme)?;
        let timestamp = match scheme.timestamp.as_ref().map(|rule| &rule.source) {
            None | Some(TimestampSource::Body(_)) => None,
            Some(TimestampSource::Label(_)) => Some(labelled),
            Some(TimestampSource::Header(names)) => Some(only(&request.headers, names)?),
        };
        let timestamp = match timestamp {
            None => None,
            Some(found) => Some(found.filter(|t| !t.is_empty()).ok_or(Rejection::NoTimestamp)?),
        };
        let pieces = self.pieces(request, timestamp.unwrap_or_default())?;
        let checked = check(&self.keys, &candidates, &pieces);
        let secret = checked.secret.ok_or(Rejection::WrongSignature)?;
        // After the signature, so that "too old" is said of real deliveries only.
        if let (Some(rule), Some(text)) = (&scheme.timestamp, timestamp) {
            time::check(text, rule, self.tolerance, now)?;
        }
        if let Some(rule) = &scheme.timestamp
            && let TimestampSource::Body(path) = &rule.source
        {
            let text = time::in_body(&request.body, path).ok_or(Rejection::NoTimestamp)?;
            time::check(text.as_bytes(), rule, self.tolerance, now)?;
        }
        Ok(secret)
    }

    fn matching_point(&self, request: &Request, now: Timestamp) -> Result<usize, Refused> {
        let scheme = &self.row.scheme;
        let signature = only(&request.headers, &scheme.header)?.ok_or(Rejection::NoSignature)?;
        let timestamp = match &scheme.timestamp {
            Some(TimestampRule { source: TimestampSource::Header(names), .. }) => {
                only(&request.headers, names)?.ok_or(Rejection::NoTimestamp)?
            }
            _ => &[],
        };
        let message = self.pieces(request, timestamp)?.concat();
        let secret = ecdsa::matching(&self.points, signature, &message)?;
        if let Some(rule) = &scheme.timestamp {
            time::check(timestamp, rule, self.tolerance, now)?;
        }
        Ok(secret)
    }

    /// Lays out the signed bytes without copying them.
    pub(crate) fn pieces<'a>(
        &'a self,
        request: &'a Request,
        timestamp: &'a [u8],
    ) -> Result<Vec<&'a [u8]>, Rejection> {
        let parts = &self.row.scheme.message;
        let mut pieces = Vec::with_capacity(parts.len());
        for (at, part) in parts.iter().enumerate() {
            pieces.push(match part {
                Part::Body => &request.body,
                Part::Timestamp => timestamp,
                Part::Literal(text) => text.as_bytes(),
                Part::Url => self.url.as_deref().unwrap_or_default().as_bytes(),
                Part::UrlDecoded => self.decoded_url.as_bytes(),
                Part::Method => request.method.as_bytes(),
                Part::Header(names) => {
                    let value = only(&request.headers, names)?
                        .filter(|value| !value.is_empty())
                        .ok_or(Rejection::NoSignedHeader)?;
                    if let Some(Part::Literal(end)) = parts.get(at + 1)
                        && contains(value, end.as_bytes())
                    {
                        // "a.1" + "." + "2" and "a" + "." + "1.2" would be the same message.
                        return Err(Rejection::MalformedSignedHeader);
                    }
                    value
                }
            });
        }
        Ok(pieces)
    }
}

/// The keys of all secrets, or what is wrong with each.
fn keys(row: &Provider, secrets: &[Secret], problems: &mut Vec<ConfigError>) -> Vec<NumberedKey> {
    let mut keys = Vec::new();
    if secrets.is_empty() {
        problems.push(ConfigError::new("no secret: set at least one signing secret"));
    }
    if secrets.len() > SECRETS_MAX {
        problems.push(ConfigError::new(format!("more than {SECRETS_MAX} secrets: remove some")));
        return keys;
    }
    for (at, secret) in secrets.iter().enumerate() {
        let number = at + 1;
        if let Some(first) = secrets[..at].iter().position(|s| s.text() == secret.text()) {
            let first = first + 1;
            problems.push(ConfigError::new(format!(
                "secret {number} is the same as secret {first}: remove one of them"
            )));
            continue;
        }
        let text = secret.text();
        if row.special != Special::None && !text.is_empty() && text.trim() == text {
            continue;
        }
        match key::keys(secret, row.scheme.key, &row.scheme.accepts, number) {
            Ok(made) => {
                let secret = u32::try_from(at).expect("the number of secrets is limited");
                keys.extend(made.into_iter().map(|key| NumberedKey { secret, key }));
            }
            Err(problem) => problems.push(problem),
        }
    }
    keys
}

/// Puts the endpoint's verify token into the handshake that asks for it; without one, nobody is
/// answered.
fn with_verify_token(mut row: Provider, settings: &Settings) -> Provider {
    const TOKEN: &str = "{verify_token}";
    let mut handshakes = row.handshakes.into_owned();
    for handshake in &mut handshakes {
        for (_, text) in handshake.when.to_mut().iter_mut().filter(|(_, text)| text == TOKEN) {
            if let Some(token) = settings.verify_token.as_deref().filter(|t| !t.is_empty()) {
                *text = token.to_owned().into();
            }
        }
    }
    handshakes.retain(|handshake| handshake.when.iter().all(|(_, text)| text != TOKEN));
    row.handshakes = handshakes.into();
    row
}

/// A URL that is signed has to be the one that is registered, byte for byte.
fn url_problem(row: &Provider, settings: &Settings) -> Option<ConfigError> {
    let Some(url) = &settings.public_url else {
        let fix = "the signature covers the URL: set public_url to the one that is registered";
        let message = &row.scheme.message;
        let signed = message.contains(&Part::Url) || message.contains(&Part::UrlDecoded);
        return signed.then(|| ConfigError::new(fix));
    };
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let plain = url.bytes().all(|byte| byte.is_ascii_graphic());
    let fix = "public_url is no URL: write all of the one that is registered with the provider, \
               such as https://example.com/webhooks/name";
    (host.is_empty() || host.starts_with(':') || !plain).then(|| ConfigError::new(fix))
}

/// The tolerance that holds, and what is wrong with the settings.
fn check_settings(row: &Provider, settings: &Settings) -> (Duration, Vec<ConfigError>) {
    let mut problems = Vec::new();
    let tolerance = tolerance(row, settings).unwrap_or_else(|problem| {
        problems.push(problem);
        Duration::ZERO
    });
    problems.extend(url_problem(row, settings));
    (tolerance, problems)
}

fn tolerance(row: &Provider, settings: &Settings) -> Result<Duration, ConfigError> {
    match (&row.scheme.timestamp, settings.tolerance) {
        (None, None) => Ok(Duration::ZERO),
        (None, Some(_)) => Err(ConfigError::new(format!(
            "provider {:?} signs no timestamp: remove tolerance",
            row.name
        ))),
        (Some(_), Some(set)) if set < Duration::from_secs(1) => {
            Err(ConfigError::new("tolerance must be at least one second"))
        }
        (Some(_), Some(set)) if set > TOLERANCE_MAX => Err(ConfigError::new(
            "tolerance must be at most 24 h: a recorded delivery is believed for as long",
        )),
        (Some(rule), set) => Ok(set.unwrap_or(rule.tolerance)),
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && text.windows(part.len()).any(|window| window == part)
}
