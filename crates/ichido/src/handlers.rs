//! Which handler an event type has: exact, else the longest prefix (`invoice.*`), else default.
//!
//! Two handlers for one type is an error at start, never a silent choice.

use std::{collections::HashMap, sync::Arc};

/// Who works on a type.
pub enum Target<H: ?Sized> {
    /// A handler of this endpoint.
    Handler(Arc<H>),
    /// An outside worker, in any language, that claims from this queue.
    Queue(Arc<str>),
}

impl<H: ?Sized> std::fmt::Debug for Target<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Handler(_) => f.write_str("Handler"),
            Self::Queue(queue) => f.debug_tuple("Queue").field(queue).finish(),
        }
    }
}

impl<H: ?Sized> Clone for Target<H> {
    fn clone(&self) -> Self {
        match self {
            Self::Handler(handler) => Self::Handler(handler.clone()),
            Self::Queue(queue) => Self::Queue(queue.clone()),
        }
    }
}

impl<H: ?Sized> Clone for Handlers<H> {
    fn clone(&self) -> Self {
        Self {
            exact: self.exact.clone(),
            prefixes: self.prefixes.clone(),
            default: self.default.clone(),
        }
    }
}

/// The handlers of one endpoint.
pub struct Handlers<H: ?Sized> {
    exact: HashMap<String, Target<H>>,
    /// Without the `*`, longest first.
    prefixes: Vec<(String, Target<H>)>,
    default: Option<Target<H>>,
}

/// Why a pattern was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The same pattern twice.
    #[error("two handlers for `{0}`: keep one of them")]
    Twice(String),
    /// Empty, or a `*` that is not the whole last part.
    #[error("`{0}` is no type pattern: use `invoice.paid`, `invoice.*` or `*`")]
    Malformed(String),
}

impl<H: ?Sized> Default for Handlers<H> {
    fn default() -> Self {
        Self { exact: HashMap::new(), prefixes: Vec::new(), default: None }
    }
}

impl<H: ?Sized> Handlers<H> {
    /// Names who works on `pattern`: a type, a prefix that ends in `.*`, or `*` for the rest.
    pub fn add(&mut self, pattern: &str, target: Target<H>) -> Result<(), PatternError> {
        let twice = || Err(PatternError::Twice(pattern.to_owned()));
        if pattern == "*" {
            return match self.default.replace(target) {
                None => Ok(()),
                Some(_) => twice(),
            };
        }
        if let Some(prefix) = pattern.strip_suffix('*') {
            if !prefix.ends_with('.') || prefix.len() < 2 || prefix.contains('*') {
                return Err(PatternError::Malformed(pattern.to_owned()));
            }
            if self.prefixes.iter().any(|(p, _)| p == prefix) {
                return twice();
            }
            self.prefixes.push((prefix.to_owned(), target));
            self.prefixes.sort_by_key(|(p, _)| std::cmp::Reverse(p.len()));
            return Ok(());
        }
        if pattern.is_empty() || pattern.contains('*') {
            return Err(PatternError::Malformed(pattern.to_owned()));
        }
        match self.exact.insert(pattern.to_owned(), target) {
            None => Ok(()),
            Some(_) => twice(),
        }
    }

    /// Who works on `event_type`, if anyone does.
    pub fn find(&self, event_type: &str) -> Option<&Target<H>> {
        self.exact
            .get(event_type)
            .or_else(|| {
                let mut prefixes = self.prefixes.iter();
                prefixes.find(|(p, _)| event_type.starts_with(p.as_str())).map(|(_, t)| t)
            })
            .or(self.default.as_ref())
    }

    /// Whether any type is ours to work on, and not left to outside workers.
    pub fn has_own(&self) -> bool {
        let all = self.exact.values().chain(self.prefixes.iter().map(|(_, t)| t));
        all.chain(&self.default).any(|target| matches!(target, Target::Handler(_)))
    }

    /// The patterns that have a handler, sorted: configuration of the endpoint.
    pub fn patterns(&self) -> Vec<String> {
        let mut all: Vec<String> = self.exact.keys().cloned().collect();
        all.extend(self.prefixes.iter().map(|(p, _)| format!("{p}*")));
        all.extend(self.default.iter().map(|_| "*".to_owned()));
        all.sort();
        all
    }
}

impl<H: ?Sized> std::fmt::Debug for Handlers<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Handlers").field(&self.patterns()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handlers(patterns: &[&str]) -> Handlers<str> {
        let mut handlers = Handlers::default();
        for pattern in patterns {
            let target = Target::Handler(Arc::from(*pattern));
            handlers.add(pattern, target).expect("a good pattern");
        }
        handlers
    }

    fn found<'a>(all: &'a Handlers<str>, event_type: &str) -> Option<&'a str> {
        all.find(event_type).map(|target| match target {
            Target::Handler(name) | Target::Queue(name) => &**name,
        })
    }

    #[test]
    fn an_exact_type_wins_over_a_prefix_and_a_prefix_over_the_default() {
        let all = handlers(&["*", "invoice.*", "invoice.paid", "invoice.payment.*"]);
        assert_eq!(found(&all, "invoice.paid"), Some("invoice.paid"));
        assert_eq!(found(&all, "invoice.created"), Some("invoice.*"));
        assert_eq!(found(&all, "invoice.payment.x"), Some("invoice.payment.*"));
        assert_eq!(found(&all, "invoices"), Some("*"));
    }

    #[test]
    fn a_type_without_a_handler_has_none() {
        assert!(handlers(&["invoice.*"]).find("charge.refunded").is_none());
    }

    #[test]
    fn two_handlers_for_one_type_are_refused() {
        for pattern in ["a.b", "a.*", "*"] {
            let mut all = handlers(&[pattern]);
            let again = all.add(pattern, Target::Handler(Arc::from("x")));
            assert_eq!(again, Err(PatternError::Twice(pattern.to_owned())));
        }
    }

    #[test]
    fn a_star_in_the_middle_is_refused() {
        for pattern in ["", "a*", "*.b", "a.*.b", ".*", "a.**"] {
            let refused = handlers(&[]).add(pattern, Target::Handler(Arc::from("x")));
            assert_eq!(refused, Err(PatternError::Malformed(pattern.to_owned())), "{pattern}");
        }
    }
}
