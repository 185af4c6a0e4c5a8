//! A secret on its way into a verifier. It is never shown, serialised or compared.

/// A signing secret as the provider shows it; how it becomes a key is the provider row's matter.
#[derive(Clone)]
pub struct Secret(Box<str>);

impl Secret {
    /// Wraps the text of a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into().into_boxed_str())
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret([redacted])")
    }
}
