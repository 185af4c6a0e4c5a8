//! Turns secrets into keys, once per endpoint.
//!
//! A key that can't be decoded, or is empty, is an error of configuration: a lenient decoder
//! would make a key that anybody can guess. No error here may quote the secret.

use data_encoding::{BASE64, BASE64URL_NOPAD, Encoding as Alphabet, HEXLOWER, HEXLOWER_PERMISSIVE};
use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use crate::provider::{Accepted, Algorithm, Encoding, KeyForm};
use crate::{ConfigError, Secret};

/// Longest signature of any algorithm, in bytes.
pub(crate) const SIGNATURE_BYTES_MAX: usize = 64;

/// A key with its algorithm; HMAC states have the key absorbed and are cloned per request.
#[derive(Clone)]
pub(crate) enum Key {
    HmacSha1(Hmac<Sha1>),
    HmacSha256(Hmac<Sha256>),
    HmacSha512(Hmac<Sha512>),
    PrefixSha256(Sha256),
    Ed25519 { public: Box<VerifyingKey>, private: Option<Box<SigningKey>> },
}

impl Key {
    pub(crate) fn algorithm(&self) -> Algorithm {
        match self {
            Self::HmacSha1(_) => Algorithm::HmacSha1,
            Self::HmacSha256(_) => Algorithm::HmacSha256,
            Self::HmacSha512(_) => Algorithm::HmacSha512,
            Self::PrefixSha256(_) => Algorithm::PrefixSha256,
            Self::Ed25519 { .. } => Algorithm::Ed25519,
        }
    }

    /// Computes the HMAC of the pieces, or `None` for a key that has no HMAC.
    pub(crate) fn mac(&self, pieces: &[&[u8]]) -> Option<Signature> {
        fn run<M: Mac + Clone>(state: &M, pieces: &[&[u8]]) -> Signature {
            let mut state = state.clone();
            for piece in pieces {
                Mac::update(&mut state, piece);
            }
            Signature::new(&state.finalize().into_bytes())
        }
        match self {
            Self::HmacSha1(state) => Some(run(state, pieces)),
            Self::HmacSha256(state) => Some(run(state, pieces)),
            Self::HmacSha512(state) => Some(run(state, pieces)),
            Self::PrefixSha256(state) => {
                let mut state = state.clone();
                for piece in pieces {
                    state.update(piece);
                }
                Some(Signature::new(&state.finalize()))
            }
            Self::Ed25519 { .. } => None,
        }
    }

    /// Signs the pieces; `None` for a public key.
    pub(crate) fn sign(&self, pieces: &[&[u8]]) -> Option<Signature> {
        match self {
            Self::Ed25519 { private, .. } => {
                let private = private.as_ref()?;
                Some(Signature::new(&private.sign(&pieces.concat()).to_bytes()))
            }
            _ => self.mac(pieces),
        }
    }
}

/// The bytes of one signature, without an allocation.
#[derive(Clone, Copy)]
pub(crate) struct Signature {
    bytes: [u8; SIGNATURE_BYTES_MAX],
    size: usize,
}

impl Signature {
    /// Keeps the bytes of a signature that is known to have the size of its algorithm.
    fn new(from: &[u8]) -> Self {
        let mut bytes = [0; SIGNATURE_BYTES_MAX];
        bytes[..from.len()].copy_from_slice(from);
        Self { bytes, size: from.len() }
    }

    /// Decodes text of exactly `size` bytes in one canonical alphabet.
    pub(crate) fn decode(text: &[u8], encoding: Encoding, size: usize) -> Option<Self> {
        let alphabet = alphabet(encoding);
        // The longest text of any signature: 128 hex digits. Guards the decoder's own assertions.
        if text.len() != alphabet.encode_len(size) {
            return None;
        }
        let room = alphabet.decode_len(text.len()).ok()?;
        let mut bytes = [0; SIGNATURE_BYTES_MAX + 2];
        let written = alphabet.decode_mut(text, bytes.get_mut(..room)?).ok()?;
        (written == size).then(|| Self::new(&bytes[..size]))
    }

    pub(crate) fn encode(&self, encoding: Encoding) -> String {
        alphabet(encoding).encode(self.bytes())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.size]
    }
}

fn alphabet(encoding: Encoding) -> Alphabet {
    match encoding {
        Encoding::Hex => HEXLOWER,
        Encoding::Base64 => BASE64,
        Encoding::Base64Url => BASE64URL_NOPAD,
    }
}

/// Builds the keys of one secret: one for each algorithm of the scheme that it can serve.
pub(crate) fn keys(
    secret: &Secret,
    form: KeyForm,
    accepts: &[Accepted],
    number: usize,
) -> Result<Vec<Key>, ConfigError> {
    let text = secret.text();
    let fail = |fix: &str| Err(ConfigError::new(format!("secret {number} {fix}")));
    if text.is_empty() {
        return fail("is empty: set it to the provider's signing secret");
    }
    if text.trim() != text {
        return fail("has white space around it: remove the blanks or the line break");
    }
    let mut algorithms = Vec::new();
    for accepted in accepts {
        if !algorithms.contains(&accepted.algorithm) {
            algorithms.push(accepted.algorithm);
        }
    }
    let (bytes, role) = match decode(text, form) {
        Ok(decoded) => decoded,
        Err(fix) => return fail(fix),
    };
    let mut keys = Vec::new();
    for algorithm in algorithms.into_iter().filter(|algorithm| role.serves(*algorithm)) {
        match key(&bytes, algorithm, role) {
            Ok(key) => keys.push(key),
            Err(fix) => return fail(fix),
        }
    }
    if keys.is_empty() { fail("is of a kind that this provider does not use") } else { Ok(keys) }
}

/// What the form of a secret says about its use.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Any,
    Hmac,
    Public,
    Private,
}

impl Role {
    fn serves(self, algorithm: Algorithm) -> bool {
        match self {
            Self::Any => true,
            Self::Hmac => algorithm != Algorithm::Ed25519,
            Self::Public | Self::Private => algorithm == Algorithm::Ed25519,
        }
    }
}

fn decode(text: &str, form: KeyForm) -> Result<(Vec<u8>, Role), &'static str> {
    let (bytes, role) = match form {
        KeyForm::Text => (Some(text.as_bytes().to_vec()), Role::Any),
        KeyForm::Hex => (HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok(), Role::Any),
        KeyForm::Base64 => (base64(text), Role::Any),
        KeyForm::StandardWebhooks => {
            // Some dashboards show the version in front of the secret.
            let text = text.strip_prefix("v1,").or(text.strip_prefix("v1a,")).unwrap_or(text);
            if let Some(rest) = text.strip_prefix("whpk_") {
                (base64(rest), Role::Public)
            } else if let Some(rest) = text.strip_prefix("whsk_") {
                (base64(rest), Role::Private)
            } else {
                (base64(text.strip_prefix("whsec_").unwrap_or(text)), Role::Hmac)
            }
        }
    };
    match bytes {
        Some(bytes) if !bytes.is_empty() => Ok((bytes, role)),
        _ => Err(match form {
            KeyForm::Hex => "is not hexadecimal: copy it again from the provider",
            _ => "is not base64: copy it again from the provider",
        }),
    }
}

/// Decodes base64 with right padding or none. Spare bits are not looked at: they are no part of
/// the key, and secrets with such bits are in use.
fn base64(text: &str) -> Option<Vec<u8>> {
    let bare = text.trim_end_matches('=');
    let padding = text.len() - bare.len();
    if padding > 2 || (padding > 0 && !text.len().is_multiple_of(4)) {
        return None;
    }
    let mut lenient = data_encoding::Specification::new();
    lenient.symbols.push_str("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
    lenient.check_trailing_bits = false;
    lenient.encoding().expect("the specification is constant").decode(bare.as_bytes()).ok()
}

fn key(bytes: &[u8], algorithm: Algorithm, role: Role) -> Result<Key, &'static str> {
    fn hmac<M: KeyInit>(bytes: &[u8]) -> M {
        M::new_from_slice(bytes).expect("HMAC takes a key of any length")
    }
    Ok(match algorithm {
        Algorithm::HmacSha1 => Key::HmacSha1(hmac(bytes)),
        Algorithm::HmacSha256 => Key::HmacSha256(hmac(bytes)),
        Algorithm::HmacSha512 => Key::HmacSha512(hmac(bytes)),
        Algorithm::PrefixSha256 => Key::PrefixSha256(Sha256::new_with_prefix(bytes)),
        Algorithm::Ed25519 if role == Role::Private => {
            // 32 bytes of seed, or seed and public key.
            let private = match bytes.len() {
                32 => SigningKey::from_bytes(bytes.try_into().expect("the length was matched")),
                64 => SigningKey::from_keypair_bytes(bytes.try_into().expect("length matched"))
                    .map_err(|_| "is not an ed25519 key pair")?,
                _ => return Err("is not an ed25519 private key of 32 or 64 bytes"),
            };
            let public = Box::new(private.verifying_key());
            Key::Ed25519 { public, private: Some(Box::new(private)) }
        }
        Algorithm::Ed25519 => {
            let public: &[u8; 32] =
                bytes.try_into().map_err(|_| "is not an ed25519 public key of 32 bytes")?;
            let public = VerifyingKey::from_bytes(public)
                .ok()
                .filter(|key| !key.is_weak())
                .ok_or("is not a usable ed25519 public key")?;
            Key::Ed25519 { public: Box::new(public), private: None }
        }
    })
}
