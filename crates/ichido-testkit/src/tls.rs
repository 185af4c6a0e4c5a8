//! Certificates for a test server: a root of its own and one name, `localhost`.
//! They must never be used for anything else.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::user;

/// The file of the certificate.
pub const CERT: &str = "server.crt";
/// The file of its key.
pub const KEY: &str = "server.key";

/// Writes certificate and key into `folder`, readable by the user that our clusters run as, and
/// gives the file of the root.
///
/// # Errors
/// When a file cannot be written.
pub fn write(folder: &Path) -> Result<PathBuf> {
    let root_key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&root_key)?;
    let issuer = Issuer::new(params, root_key);
    let key = KeyPair::generate()?;
    let cert = CertificateParams::new(vec!["localhost".into()])?.signed_by(&key, &issuer)?;
    let root_file = folder.join("root.crt");
    fs::write(&root_file, root.pem())?;
    fs::write(folder.join(CERT), cert.pem())?;
    let key_file = folder.join(KEY);
    fs::write(&key_file, key.serialize_pem())?;
    fs::set_permissions(&key_file, fs::Permissions::from_mode(0o600))?;
    user::give(&key_file)?;
    Ok(root_file)
}
