//! The name of the schema and its place in our SQL. Must never let a name through that could
//! end an identifier: it becomes part of statements.

use crate::{Error, ErrorKind};

/// A schema name that is safe inside a statement without quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema(String);

/// Leaves room for the names PostgreSQL derives within its 63 bytes.
const SCHEMA_MAX_BYTES: usize = 48;

impl Schema {
    /// Checks a name: `a-z`, digits and `_`, not starting with a digit, not of PostgreSQL's own.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] with the rule.
    pub fn new(name: &str) -> Result<Self, Error> {
        let word = |c: char| c.is_ascii_lowercase() || c == '_';
        let good = name.starts_with(word)
            && name.chars().all(|c| word(c) || c.is_ascii_digit())
            && name.len() <= SCHEMA_MAX_BYTES
            && !name.starts_with("pg_")
            && !matches!(name, "information_schema" | "public");
        if good {
            return Ok(Self(name.to_owned()));
        }
        let rule = format!(
            "schema `{name}`: use a-z, 0-9 and `_`, at most {SCHEMA_MAX_BYTES} bytes, neither \
             `public` nor one of PostgreSQL's own"
        );
        Err(Error::new(ErrorKind::Schema, rule))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A statement of ours, which says `ichido.`, for this schema.
    pub fn sql(&self, text: &str) -> String {
        if self.0 == "ichido" {
            return text.to_owned();
        }
        text.replace("ichido.", &format!("{}.", self.0))
    }
}

impl Default for Schema {
    fn default() -> Self {
        Self("ichido".to_owned())
    }
}

impl std::fmt::Display for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_end_an_identifier_is_refused() {
        for name in ["", "a b", "a;drop", "a\"b", "1a", "Inbox", "pg_inbox", "public", "a.b", "ü"]
        {
            assert!(Schema::new(name).is_err(), "{name}");
        }
        assert!(Schema::new("inbox_2").is_ok());
    }

    #[test]
    fn statements_follow_the_schema() {
        let schema = Schema::new("hooks").unwrap();
        assert_eq!(schema.sql("SELECT ichido.version()"), "SELECT hooks.version()");
    }
}
