//! Answers to providers that ask an endpoint to prove that it knows the secret.
//!
//! Whoever may ask without a signature chooses what is signed. So only text is signed that can be
//! no body of an event: see [`signs`].

use data_encoding::{BASE64, HEXLOWER};

use crate::Answer;
use crate::check::NumberedKey;
use crate::provider::{Challenge, Handshake, Reply};

/// Longest challenge; those of providers are far shorter.
const CHALLENGE_BYTES_MAX: usize = 256;

/// Whether text is a challenge that may be signed: it can't be JSON of an object.
fn is_challenge(text: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_=".contains(byte);
    (1..=CHALLENGE_BYTES_MAX).contains(&text.len()) && text.iter().all(plain)
}

/// Whether one of these handshakes would have signed this body for anybody who asked.
pub(crate) fn signs(handshakes: &[Handshake], body: &[u8]) -> bool {
    let mut macs = handshakes.iter().filter(|asked| matches!(asked.reply, Reply::Mac(..)));
    macs.any(|handshake| !handshake.signed) && is_challenge(body)
}

/// The MAC of the challenge, as the provider wants it.
pub(crate) fn answer(challenge: Challenge, text: &str, key: &NumberedKey) -> Option<Answer> {
    if !is_challenge(text.as_bytes()) {
        return None;
    }
    let mac = key.key.mac(&[text.as_bytes()])?;
    Some(Answer::json(match challenge {
        Challenge::Zoom => {
            let mac = HEXLOWER.encode(mac.bytes());
            format!(r#"{{"plainToken":"{text}","encryptedToken":"{mac}"}}"#)
        }
        Challenge::X => {
            format!(r#"{{"response_token":"sha256={}"}}"#, BASE64.encode(mac.bytes()))
        }
    }))
}
