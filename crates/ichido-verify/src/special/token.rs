//! Providers that sign nothing and send a shared secret along.
//!
//! Every secret is compared, always, and in constant time.

use std::borrow::Cow;

use data_encoding::BASE64;
use subtle::{ConditionallySelectable, ConstantTimeEq};

use crate::form::{self, Field};
use crate::provider::TokenSource;
use crate::signature::only;
use crate::{Rejection, Request, Secret};

/// The index of the secret that was sent.
pub(crate) fn matching(
    source: TokenSource,
    prefix: &str,
    secrets: &[Secret],
    request: &Request,
) -> Result<usize, Rejection> {
    let sent = sent(source, prefix, request)?;
    let mut found = u32::MAX;
    for (at, secret) in (0..).zip(secrets) {
        let equal = secret.text().as_bytes().ct_eq(&sent) & found.ct_eq(&u32::MAX);
        found = u32::conditional_select(&found, &at, equal);
    }
    if found == u32::MAX { Err(Rejection::WrongSignature) } else { Ok(found as usize) }
}

fn sent<'a>(
    source: TokenSource,
    prefix: &str,
    request: &'a Request,
) -> Result<Cow<'a, [u8]>, Rejection> {
    match source {
        TokenSource::Header(name) | TokenSource::Basic(name) => {
            let names = Cow::Owned(vec![Cow::Borrowed(name)]);
            let value = header(request, &names)?;
            let value = value.strip_prefix(prefix.as_bytes());
            let value = value.ok_or(Rejection::MalformedSignature)?;
            match source {
                TokenSource::Basic(_) => {
                    BASE64.decode(value).map(Cow::Owned).map_err(|_| Rejection::MalformedSignature)
                }
                _ => Ok(Cow::Owned(value.to_vec())),
            }
        }
        TokenSource::Query(name) => {
            let query = request.url.split_once('?').map_or("", |(_, query)| query);
            match form::field(query.as_bytes(), name) {
                Ok(Field::Text(text)) => Ok(Cow::Owned(text.into_owned().into_bytes())),
                Ok(Field::Absent) => Err(Rejection::NoSignature),
                Ok(Field::Ambiguous) => Err(Rejection::RepeatedHeader),
                Err(_) => Err(Rejection::MalformedSignature),
            }
        }
    }
}

fn header<'a>(
    request: &'a Request,
    names: &'a crate::provider::Names,
) -> Result<Vec<u8>, Rejection> {
    let value = only(&request.headers, names)?.filter(|value| !value.is_empty());
    value.map(<[u8]>::to_vec).ok_or(Rejection::NoSignature)
}
