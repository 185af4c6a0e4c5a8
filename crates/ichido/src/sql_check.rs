//! Which statements of SQL handlers an engine is asked about before any event needs them, and how
//! a refusal is told: a table that is missing should show at start, not in the first event.

use std::sync::Arc;

use crate::{EndpointSpec, Error, ErrorKind, SqlHandler, Statement};

/// A statement and whose it is.
pub(crate) struct Place<'s> {
    endpoint: &'s str,
    pattern: &'s str,
    handler: &'s SqlHandler,
    pub(crate) statement: &'s Statement,
}

/// Every statement that can be judged.
pub(crate) fn places(endpoints: &[Arc<EndpointSpec>]) -> impl Iterator<Item = Place<'_>> {
    let handlers = endpoints.iter().flat_map(|spec| {
        spec.sql.iter().map(|(pattern, handler)| (&*spec.name, pattern.as_str(), &**handler))
    });
    handlers.flat_map(|(endpoint, pattern, handler)| {
        handler.judgeable().map(move |statement| Place { endpoint, pattern, handler, statement })
    })
}

impl Place<'_> {
    /// What the engine has against it.
    pub(crate) fn refused(&self, why: &str) -> String {
        let Self { endpoint, pattern, handler, statement } = self;
        let (file, line) = (&handler.source, statement.line);
        format!("endpoint `{endpoint}`: handler `{pattern}`: {file}:{line}: {why}")
    }
}

/// All refusals in one error.
pub(crate) fn verdict(refused: &[String]) -> Result<(), Error> {
    if refused.is_empty() {
        return Ok(());
    }
    let fix = "events of these types would be kept or refused: mend the file, or bring what it \
               needs (`ichido migrate --app` applies app.schema)";
    Err(Error::new(ErrorKind::Schema, format!("{}; {fix}", refused.join("; "))))
}
