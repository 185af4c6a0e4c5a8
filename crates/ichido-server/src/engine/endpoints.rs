//! From the endpoints of the configuration to those of `ichido`, secrets and SQL files read.
//!
//! It must never stop at the first problem, and never show a secret.

use std::{fs, path::Path};

use ichido::{Endpoint, EndpointSpec, SqlHandler};
use ichido_verify::Settings;

use super::open::{Kind, Problem};
use crate::config::{
    Config,
    endpoint::{EndpointConfig, HandlerConfig},
};

/// An endpoint as far as it could be put together.
struct Draft<K: Kind> {
    endpoint: Endpoint<K::Store>,
    problems: Vec<String>,
    /// A secret could not be read: what is there is not all.
    secret_missing: bool,
}

/// What cannot work in any endpoint. Opens no database.
pub(super) fn check<K: Kind>(config: &Config) -> Vec<Problem> {
    let all = config.endpoint.iter();
    all.flat_map(|(name, settings)| {
        let Draft { endpoint, mut problems, secret_missing } =
            draft::<K>(name, settings, &config.base);
        let checked =
            if secret_missing { endpoint.check_without_secrets() } else { endpoint.check() };
        problems.extend(checked.err().into_iter().flat_map(|error| error.problems));
        problems.into_iter().map(move |problem| Problem(format!("endpoint `{name}`: {problem}")))
    })
    .collect()
}

/// Every endpoint. Call [`check`] first.
pub(super) fn all<K: Kind>(config: &Config) -> Vec<Endpoint<K::Store>> {
    let all = config.endpoint.iter();
    all.map(|(name, settings)| draft::<K>(name, settings, &config.base).endpoint).collect()
}

/// The settings of every endpoint whose provider is known, with the defaults filled in.
pub(super) fn specs<K: Kind>(config: &Config) -> Vec<EndpointSpec> {
    all::<K>(config).iter().filter_map(|endpoint| endpoint.spec().ok()).collect()
}

fn draft<K: Kind>(name: &str, config: &EndpointConfig, base: &Path) -> Draft<K> {
    let mut problems = Vec::new();
    let mut secret_missing = false;
    let mut endpoint = Endpoint::new(name, &config.provider)
        .mode(config.mode.into())
        .on_failure(config.on_failure.into())
        .repeated_body(config.repeated_body.into())
        .settings(settings(config));
    for secret in &config.secrets.0 {
        match secret.read(base) {
            Ok(secret) => endpoint = endpoint.secret(secret),
            Err(problem) => {
                problems.push(problem);
                secret_missing = true;
            }
        }
    }
    if let Some(span) = config.handler_timeout {
        endpoint = endpoint.handler_timeout(span.0);
    }
    if let Some(span) = config.lease {
        endpoint = endpoint.lease(span.0);
    }
    if let Some(attempts) = config.max_attempts {
        endpoint = endpoint.max_attempts(attempts);
    }
    if let Some(most) = config.concurrency {
        endpoint = endpoint.concurrency(most);
    }
    if let Some(span) = config.keep_identity {
        endpoint = endpoint.keep_identity(span.0);
    }
    for (pattern, handler) in &config.handlers {
        if let HandlerConfig::Queue(queue) = handler {
            endpoint = endpoint.leave(pattern, queue);
            continue;
        }
        match sql_handler::<K>(pattern, handler, base) {
            Ok(handler) => endpoint = K::on_sql(endpoint, pattern, handler),
            Err(problem) => problems.push(problem),
        }
    }
    Draft { endpoint, problems, secret_missing }
}

/// What the provider's scheme is told.
pub(crate) fn settings(config: &EndpointConfig) -> Settings {
    Settings {
        tolerance: config.tolerance.map(|span| span.0),
        public_url: config.public_url.clone(),
        generic: config.generic.clone(),
        ..Settings::default()
    }
}

fn sql_handler<K: Kind>(
    pattern: &str,
    handler: &HandlerConfig,
    base: &Path,
) -> Result<SqlHandler, String> {
    let file = match handler {
        HandlerConfig::File(file) => Some(file),
        HandlerConfig::PerEngine(files) => K::file(files),
        HandlerConfig::Queue(_) => None,
    };
    let engine = K::NAME;
    let Some(file) = file else {
        return Err(format!(
            "handler `{pattern}` has no file for this engine: add {engine} = \"FILE\""
        ));
    };
    let path = base.join(file);
    let text = fs::read_to_string(&path)
        .map_err(|error| format!("handler `{pattern}`: {}: {error}", path.display()))?;
    SqlHandler::parse(file.display().to_string(), &text)
        .map_err(|error| format!("handler `{pattern}`: {error}"))
}
