//! Signs requests as a provider would: for tests and for sending test events.
//!
//! The body is never touched: where the event id lives in the body, it has to be there already.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::provider::{Form, Names, Source, Special, TimestampSource, TokenSource};
use crate::{Headers, Rejection, Request, SignError, Verifier, time};

impl Verifier {
    /// Adds the headers that the provider would send, signed with the first secret.
    ///
    /// `event_id` and `event_type` go into headers where the provider has them there; elsewhere
    /// they are not used. Headers of an earlier signature are replaced.
    ///
    /// # Errors
    /// The first secret is a public key, or something can't be written into a header.
    pub fn sign(
        &self,
        request: &mut Request,
        event_id: &str,
        event_type: &str,
        now: Timestamp,
    ) -> Result<(), SignError> {
        let scheme = &self.row.scheme;
        for (sources, text) in
            [(&self.row.events.id, event_id), (&self.row.events.event_type, event_type)]
        {
            if let Some(Source::Header(names)) = sources.first() {
                set(&mut request.headers, names, text)?;
            }
        }
        default_content_type(&mut request.headers);
        if let Special::Token { source, prefix } = self.row.special {
            return self.send_token(request, source, prefix);
        }
        let timestamp = match &scheme.timestamp {
            None => String::new(),
            Some(rule) => time::write(now, rule.unit).ok_or(SignError::UnusableTime)?,
        };
        let time_label = match scheme.timestamp.as_ref().map(|rule| &rule.source) {
            Some(TimestampSource::Header(names)) => {
                set(&mut request.headers, names, &timestamp)?;
                None
            }
            Some(TimestampSource::Label(label)) => Some(label),
            Some(TimestampSource::Body(_)) | None => None,
        };
        let pieces = self.pieces(request, timestamp.as_bytes()).map_err(|reason| match reason {
            Rejection::NoSignedHeader => SignError::MissingHeader,
            _ => SignError::UnusableText,
        })?;
        let (key, accepted) = self
            .keys
            .iter()
            .map(|numbered| &numbered.key)
            .find_map(|key| {
                let fits = scheme.accepts.iter().find(|known| known.algorithm == key.algorithm());
                fits.map(|accepted| (key, accepted))
            })
            .ok_or(SignError::PublicKey)?;
        let signature = key.sign(&pieces).ok_or(SignError::PublicKey)?.encode(scheme.encoding);
        let value = match scheme.form {
            Form::Whole | Form::Numbered => format!("{}{signature}", accepted.label),
            Form::Labelled { between, after_label } => {
                let (between, after) = (char::from(between), char::from(after_label));
                let time = time_label.map(|label| format!("{label}{after}{timestamp}{between}"));
                format!("{}{}{after}{signature}", time.unwrap_or_default(), accepted.label)
            }
        };
        let Form::Numbered = scheme.form else {
            return set(&mut request.headers, &scheme.header, &value);
        };
        let first = scheme.header.iter().take(1).map(|name| format!("{name}-1").into());
        set(&mut request.headers, &first.collect(), &value)
    }

    fn send_token(
        &self,
        request: &mut Request,
        source: TokenSource,
        prefix: &str,
    ) -> Result<(), SignError> {
        let token = self.tokens.first().ok_or(SignError::PublicKey)?.text();
        let headers = &mut request.headers;
        let named = |name: &'static str| Cow::Owned(vec![name.into()]);
        match source {
            TokenSource::Header(name) => set(headers, &named(name), &format!("{prefix}{token}")),
            TokenSource::Basic(name) => {
                let token = data_encoding::BASE64.encode(token.as_bytes());
                set(headers, &named(name), &format!("{prefix}{token}"))
            }
            // The URL is the one that is registered: the secret is in it already.
            TokenSource::Query(_) => Ok(()),
        }
    }
}

fn default_content_type(headers: &mut Headers) {
    if headers.get_all("content-type").next().is_none() {
        headers.push("content-type", b"application/json");
    }
}

/// Puts a header under the first of its names, and removes the others.
fn set(headers: &mut Headers, names: &Names, text: &str) -> Result<(), SignError> {
    let sendable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if text.is_empty() || !sendable || text.trim() != text {
        return Err(SignError::UnusableText);
    }
    for name in names.iter() {
        headers.remove(name);
    }
    headers.push(names.first().ok_or(SignError::UnusableText)?, text.as_bytes());
    Ok(())
}
