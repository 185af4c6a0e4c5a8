//! A handler that is a file of SQL: statements with named parameters, checked when it is read.
//!
//! It must never end or change the transaction it runs in, so BEGIN, COMMIT, session SET, LISTEN
//! and their kin are refused here, at start, by line. What cannot be seen in the text (a
//! procedure that commits) is caught by the guard at COMMIT.

mod scan;

use std::fmt;

use scan::{Token, tokens};

/// What a statement may ask for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Param {
    /// `:payload`, the body as JSON (`jsonb`; JSON text on SQLite).
    Payload,
    /// `:body`, the bytes as they were verified.
    Body,
    /// `:event_id`.
    EventId,
    /// `:event_type`.
    EventType,
    /// `:endpoint`.
    Endpoint,
    /// `:provider`.
    Provider,
    /// `:occurred_at`, NULL where the provider does not say.
    OccurredAt,
}

impl Param {
    /// Every parameter with its name.
    pub const ALL: [(&'static str, Self); 7] = [
        ("payload", Self::Payload),
        ("body", Self::Body),
        ("event_id", Self::EventId),
        ("event_type", Self::EventType),
        ("endpoint", Self::Endpoint),
        ("provider", Self::Provider),
        ("occurred_at", Self::OccurredAt),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, param)| *param)
    }
}

/// One statement of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The text with `$1`, `$2`, ... in the order of `params`; both engines understand it.
    pub text: String,
    /// What each placeholder stands for; a name used twice has one placeholder.
    pub params: Vec<Param>,
    /// The line of the file on which it begins, from 1.
    pub line: usize,
}

/// A file of SQL, read and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlHandler {
    /// Where it came from, for error messages.
    pub source: String,
    /// Its statements, in order.
    pub statements: Vec<Statement>,
}

/// Why a file was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlHandlerError {
    /// Where the text came from.
    pub source: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and how to mend it.
    pub problem: String,
}

impl fmt::Display for SqlHandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.source, self.line, self.problem)
    }
}

impl std::error::Error for SqlHandlerError {}

/// First words of statements that would end, nest or outlive the transaction.
const REFUSED: [&str; 23] = [
    "abort",
    "attach",
    "begin",
    "checkpoint",
    "commit",
    "copy",
    "deallocate",
    "detach",
    "discard",
    "end",
    "listen",
    "notify",
    "pragma",
    "prepare",
    "reindex",
    "release",
    "reset",
    "rollback",
    "savepoint",
    "set",
    "start",
    "unlisten",
    "vacuum",
];

/// Functions whose effect would outlive the transaction, on a connection that others get next.
const REFUSED_ANYWHERE: [&str; 5] = [
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
    "set_config",
];

impl SqlHandler {
    /// Reads `text`; `source` is its name in errors.
    ///
    /// ```
    /// # use ichido::{Param, SqlHandler};
    /// let sql = "INSERT INTO seen (id) VALUES (:event_id);";
    /// let handler = SqlHandler::parse("seen.sql", sql).unwrap();
    /// assert_eq!(handler.statements[0].text, "INSERT INTO seen (id) VALUES ($1)");
    /// assert_eq!(handler.statements[0].params, [Param::EventId]);
    /// assert!(SqlHandler::parse("bad.sql", "COMMIT;").is_err());
    /// ```
    pub fn parse(source: impl Into<String>, text: &str) -> Result<Self, SqlHandlerError> {
        let source = source.into();
        let fail =
            |line, problem: String| SqlHandlerError { source: source.clone(), line, problem };
        let mut statements = Vec::new();
        let mut draft = Draft::default();
        for (line, token) in tokens(text).map_err(|(line, problem)| fail(line, problem))? {
            match token {
                Token::End => statements.extend(draft.finish()),
                token => draft.add(line, &token).map_err(|problem| fail(line, problem))?,
            }
        }
        statements.extend(draft.finish());
        if statements.is_empty() {
            return Err(fail(1, "no statement in it".into()));
        }
        Ok(Self { source, statements })
    }
}

impl Statement {
    /// Whether it only reads and writes rows of tables that have to be there.
    fn is_about_rows(&self) -> bool {
        const FIRST: [&str; 9] =
            ["delete", "insert", "merge", "replace", "select", "table", "update", "values", "with"];
        let text = self.text.trim_start_matches(['(', ' ']);
        let first = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        FIRST.iter().any(|word| first.eq_ignore_ascii_case(word))
    }
}

impl SqlHandler {
    /// The statements that a database can judge before any event: from the first one on that
    /// makes something, what follows may need it.
    pub(crate) fn judgeable(&self) -> impl Iterator<Item = &Statement> {
        self.statements.iter().take_while(|statement| statement.is_about_rows())
    }
}

/// A statement while its tokens come in.
#[derive(Default)]
struct Draft {
    text: String,
    params: Vec<Param>,
    line: Option<usize>,
}

impl Draft {
    fn add(&mut self, line: usize, token: &Token<'_>) -> Result<(), String> {
        match token {
            Token::Blank => {
                if self.line.is_some() && !self.text.ends_with(' ') {
                    self.text.push(' ');
                }
                return Ok(());
            }
            Token::Param(name) => {
                let index = self.index_of(name)?;
                self.text.push('$');
                self.text.push_str(&index.to_string());
            }
            Token::Positional(text) => {
                return Err(format!("`{text}`: parameters have names here, as in `:event_id`"));
            }
            Token::Word(word) => {
                let lower = word.to_ascii_lowercase();
                if REFUSED_ANYWHERE.contains(&lower.as_str()) {
                    return Err(format!(
                        "{lower} is refused: its effect would outlive the transaction; \
                         pg_advisory_xact_lock does not"
                    ));
                }
                if self.line.is_none() && REFUSED.contains(&lower.as_str()) {
                    return Err(format!(
                        "{} is refused: a handler runs inside the inbox's transaction, which \
                         must not be ended or changed from within",
                        word.to_ascii_uppercase()
                    ));
                }
                self.text.push_str(word);
            }
            Token::Other(text) => self.text.push_str(text),
            Token::End => {}
        }
        self.line.get_or_insert(line);
        Ok(())
    }

    fn index_of(&mut self, name: &str) -> Result<usize, String> {
        let param = Param::named(name).ok_or_else(|| {
            let known: Vec<_> = Param::ALL.iter().map(|(name, _)| format!(":{name}")).collect();
            format!("unknown parameter `:{name}`: known are {}", known.join(", "))
        })?;
        let at = self.params.iter().position(|p| *p == param).unwrap_or_else(|| {
            self.params.push(param);
            self.params.len() - 1
        });
        Ok(at + 1)
    }

    fn finish(&mut self) -> Option<Statement> {
        let draft = std::mem::take(self);
        let line = draft.line?;
        Some(Statement { text: draft.text.trim_end().to_owned(), params: draft.params, line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<Statement>, String> {
        SqlHandler::parse("h.sql", text).map(|h| h.statements).map_err(|e| e.to_string())
    }

    fn texts(text: &str) -> Vec<String> {
        parse(text).expect("a good handler").into_iter().map(|s| s.text).collect()
    }

    #[test]
    fn several_statements_are_split_at_semicolons_outside_quotes_and_comments() {
        let text = "-- a; b\nSELECT ';', $q$ ; $q$; /* ; /* ; */ */ SELECT \"a;b\" ;";
        assert_eq!(texts(text), ["SELECT ';', $q$ ; $q$", "SELECT \"a;b\""]);
    }

    #[test]
    fn statements_are_judgeable_up_to_the_first_that_makes_something() {
        let text = "WITH a AS (SELECT 1) SELECT 2; (SELECT 3); insert into t values (4);
                    CREATE TEMP TABLE t (a int); INSERT INTO t VALUES (5)";
        let handler = SqlHandler::parse("h.sql", text).expect("good");
        assert_eq!(handler.judgeable().count(), 3);
    }

    #[test]
    fn a_parameter_used_twice_has_one_placeholder() {
        let all = parse("SELECT :event_id, :payload -> 'x', :event_id").expect("good");
        assert_eq!(all[0].text, "SELECT $1, $2 -> 'x', $1");
        assert_eq!(all[0].params, [Param::EventId, Param::Payload]);
    }

    #[test]
    fn casts_slices_and_quoted_colons_are_no_parameters() {
        let text = "SELECT ':event_id', a::text, b[1:2], E'\\':event_id' FROM t -- :nope";
        assert_eq!(parse(text).expect("good")[0].params, []);
    }

    #[test]
    fn a_statement_that_ends_or_changes_the_transaction_is_refused_by_line() {
        for word in ["COMMIT", "begin", "Rollback", "SET synchronous_commit = off", "LISTEN x"] {
            let refused = parse(&format!("SELECT 1;\n\n/* no */ {word};")).expect_err(word);
            assert!(refused.starts_with("h.sql:3: "), "{refused}");
            assert!(refused.contains("is refused"), "{refused}");
        }
    }

    #[test]
    fn a_function_whose_effect_outlives_the_transaction_is_refused() {
        let refused = parse("SELECT set_config('search_path', 'x', false)").expect_err("refused");
        assert!(refused.contains("outlive"), "{refused}");
        assert_eq!(texts("SELECT pg_advisory_xact_lock(1)").len(), 1);
    }

    #[test]
    fn a_set_clause_of_an_update_is_not_the_set_command() {
        assert_eq!(texts("UPDATE t SET a = 1").len(), 1);
    }

    #[test]
    fn an_unknown_parameter_is_refused_with_the_known_ones() {
        let refused = parse("SELECT :evnt_id").expect_err("unknown");
        assert!(refused.contains(":evnt_id") && refused.contains(":event_id"), "{refused}");
    }

    #[test]
    fn positional_parameters_are_refused() {
        assert!(parse("SELECT $1").is_err());
    }

    #[test]
    fn an_empty_file_and_an_unclosed_quote_are_refused() {
        assert!(parse(" -- nothing\n ; ").is_err());
        assert!(parse("SELECT 'x").expect_err("open").contains("never closed"));
    }
}
