//! How an attempt went wrong, and what is to become of the event.
//!
//! Must never carry a body or a secret: the text reaches `last_error`, logs and a human.

use std::time::Duration;

use crate::{BoxError, Later, Permanent};

/// Longest error text that is kept; the rest says nothing more.
const TEXT_CHARS_MAX: usize = 1_000;

/// What becomes of an event whose attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It comes back after a delay that grows and is drawn at random; at the last attempt it needs
    /// review.
    Retry,
    /// It comes back after this long; at the last attempt it needs review.
    Later(Duration),
    /// It needs review at once.
    Review,
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What a human will read.
    pub text: String,
    /// What becomes of the event.
    pub then: Then,
}

impl Fault {
    /// An ordinary failure: tried again.
    pub fn retry(text: &str) -> Self {
        Self { text: trimmed(text), then: Then::Retry }
    }

    /// A handler's error, worded as `text`, with what the handler asked for: the error, or one
    /// that it was caused by, may be a [`Permanent`] or a [`Later`].
    pub(crate) fn of(error: &BoxError, text: &str) -> Self {
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(&**error);
        while let Some(error) = next {
            if error.is::<Permanent>() {
                return Self { text: trimmed(text), then: Then::Review };
            }
            if let Some(Later(delay)) = error.downcast_ref() {
                return Self { text: trimmed(text), then: Then::Later(*delay) };
            }
            next = error.source();
        }
        Self::retry(text)
    }
}

/// A text that both databases can keep.
fn trimmed(text: &str) -> String {
    text.replace('\0', "\u{fffd}").chars().take(TEXT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("no such customer")]
    struct Own(#[source] Permanent);

    #[test]
    fn a_permanent_error_is_found_where_it_is_the_cause() {
        let own: BoxError = Own(Permanent::new("gone")).into();
        let fault = Fault::of(&own, "no such customer");
        assert_eq!(fault, Fault { text: "no such customer".into(), then: Then::Review });
    }

    #[test]
    fn a_text_is_kept_to_its_limit_and_without_nul() {
        let fault = Fault::retry(&format!("a\0{}", "b".repeat(2_000)));
        assert_eq!(fault.text.chars().count(), TEXT_CHARS_MAX);
        assert!(!fault.text.contains('\0'));
    }
}
