//! The one place where signatures are compared.
//!
//! Every candidate is compared with every key of its algorithm, always, and in constant time:
//! how long it takes says nothing about which one matched, or whether one did.

use subtle::{ConditionallySelectable, ConstantTimeEq};

use crate::key::{Key, Signature};
use crate::provider::Algorithm;

/// A decoded signature and the algorithm that its label stands for.
#[derive(Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) algorithm: Algorithm,
    pub(crate) signature: Signature,
}

/// A key and the number of the secret it was made from.
pub(crate) struct NumberedKey {
    pub(crate) secret: u32,
    pub(crate) key: Key,
}

/// What a check found.
pub(crate) struct Checked {
    /// The first secret that matched.
    pub(crate) secret: Option<usize>,
    /// How many comparisons were made; it depends on the request's shape only.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests hold it constant"))]
    pub(crate) comparisons: usize,
}

/// Compares all candidates with all keys.
pub(crate) fn check(keys: &[NumberedKey], candidates: &[Candidate], pieces: &[&[u8]]) -> Checked {
    const NONE: u32 = u32::MAX;
    let mut found = NONE;
    let mut comparisons = 0;
    // ed25519 needs the message in one piece; made once, and only for a scheme that has such keys.
    let mut whole: Option<Vec<u8>> = None;
    for NumberedKey { secret, key } in keys {
        let mac = key.mac(pieces);
        for candidate in candidates {
            if candidate.algorithm != key.algorithm() {
                continue;
            }
            comparisons += 1;
            let equal = match (&mac, key) {
                (Some(mac), _) => mac.bytes().ct_eq(candidate.signature.bytes()),
                (None, Key::Ed25519 { public, .. }) => {
                    let message = whole.get_or_insert_with(|| pieces.concat());
                    verify_ed25519(public, message, &candidate.signature)
                }
                (None, _) => 0.into(),
            };
            let first = equal & found.ct_eq(&NONE);
            found = u32::conditional_select(&found, secret, first);
        }
    }
    let secret = (found != NONE).then_some(found as usize);
    Checked { secret, comparisons }
}

fn verify_ed25519(
    public: &ed25519_dalek::VerifyingKey,
    message: &[u8],
    signature: &Signature,
) -> subtle::Choice {
    let valid = ed25519_dalek::Signature::from_slice(signature.bytes())
        .and_then(|signature| public.verify_strict(message, &signature))
        .is_ok();
    u8::from(valid).into()
}

#[cfg(test)]
mod tests {
    use super::{Candidate, NumberedKey, check};
    use crate::Secret;
    use crate::key::{Signature, keys};
    use crate::provider::{Accepted, Algorithm, Encoding, KeyForm};

    fn key(text: &str, secret: u32) -> NumberedKey {
        let accepts = [Accepted { label: "".into(), algorithm: Algorithm::HmacSha256 }];
        let key = keys(&Secret::new(text), KeyForm::Text, &accepts, 1).unwrap().remove(0);
        NumberedKey { secret, key }
    }

    #[test]
    fn every_candidate_meets_every_secret_wherever_the_match_is() {
        let keys = [key("a", 0), key("b", 1), key("c", 2)];
        let sign = |at: usize| Candidate {
            algorithm: Algorithm::HmacSha256,
            signature: keys[at].key.sign(&[b"m"]).unwrap(),
        };
        let wrong = Candidate {
            algorithm: Algorithm::HmacSha256,
            signature: keys[0].key.sign(&[b"other"]).unwrap(),
        };
        for (candidates, secret) in [
            ([sign(0), wrong], Some(0)),
            ([wrong, sign(2)], Some(2)),
            ([sign(2), sign(1)], Some(1)),
            ([wrong, wrong], None),
        ] {
            let checked = check(&keys, &candidates, &[b"m"]);
            assert_eq!((checked.secret, checked.comparisons), (secret, 6));
        }
    }

    /// `Signature` has no `PartialEq`: `ct_eq` over all bytes is the only way to compare two.
    #[test]
    fn row_49_a_signature_that_is_right_up_to_any_byte_costs_what_a_wrong_one_costs() {
        let keys = [key("a", 0), key("b", 1)];
        let right = keys[1].key.sign(&[b"m"]).unwrap();
        for wrong_byte in 0..right.bytes().len() {
            let mut bytes = right.bytes().to_vec();
            bytes[wrong_byte] ^= 1;
            let text = data_encoding::HEXLOWER.encode(&bytes);
            let signature = Signature::decode(text.as_bytes(), Encoding::Hex, bytes.len());
            let wrong =
                Candidate { algorithm: Algorithm::HmacSha256, signature: signature.unwrap() };
            let checked = check(&keys, &[wrong], &[b"m"]);
            assert_eq!((checked.secret, checked.comparisons), (None, 2), "byte {wrong_byte}");
        }
    }
}
