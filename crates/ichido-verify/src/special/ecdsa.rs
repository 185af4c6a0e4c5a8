//! ECDSA over P-256 with SHA-256, as SendGrid signs; the secret is the public key.

use data_encoding::BASE64;
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};

use crate::{Rejection, Secret};

/// What stands before the 65 bytes of an uncompressed point in every such key (RFC 5480).
const SPKI: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// The point of a public key in base64.
pub(crate) fn point(secret: &Secret) -> Option<Vec<u8>> {
    let key = BASE64.decode(secret.text().as_bytes()).ok()?;
    let point = key.strip_prefix(SPKI)?;
    (point.len() == 65 && point[0] == 4).then(|| point.to_vec())
}

/// The index of the key that the signature, in base64, was made for.
pub(crate) fn matching(
    points: &[Vec<u8>],
    signature: &[u8],
    message: &[u8],
) -> Result<usize, Rejection> {
    let signature = BASE64.decode(signature).map_err(|_| Rejection::MalformedSignature)?;
    let fits = |point: &Vec<u8>| {
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point);
        key.verify(message, &signature).is_ok()
    };
    points.iter().position(fits).ok_or(Rejection::WrongSignature)
}
