//! `/livez`, `/readyz` and `/metrics`.
//!
//! Liveness must never ask the database: restarting this process does not mend another one.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::{Method, StatusCode, header::HeaderValue};
use tokio::{sync::Mutex, time::timeout};
use tracing::{error, info};

use super::{
    App, Routes,
    answer::{self, Answer},
};
use crate::log::one_line;

/// How long an answer of the database is good for: probes come from several places at once.
const FRESH: Duration = Duration::from_secs(1);
/// How long the database may take to answer a probe.
const WITHIN: Duration = Duration::from_secs(2);

/// What is known about being ready.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    stopping: AtomicBool,
    was_ready: AtomicBool,
    last: Mutex<Option<Last>>,
}

#[derive(Debug)]
struct Last {
    at: Instant,
    problem: Option<String>,
}

impl Readiness {
    /// From now on, not ready.
    pub(crate) fn stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Why we are not ready, if so. One question to the database at a time.
    async fn problem(&self, app: &App) -> Option<String> {
        if self.stopping.load(Ordering::Relaxed) {
            return Some("stopping".into());
        }
        let mut last = self.last.lock().await;
        if let Some(last) = last.as_ref().filter(|last| last.at.elapsed() < FRESH) {
            return last.problem.clone();
        }
        let problem = match timeout(WITHIN, app.engine.check()).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(one_line(&error.to_string()).into_owned()),
            Err(_) => Some(format!("the database did not answer in {} s", WITHIN.as_secs())),
        };
        let before = last.as_ref().map(|last| last.problem.is_none());
        match &problem {
            Some(problem) if before != Some(false) => error!(%problem, "not ready"),
            None if before == Some(false) => {
                let again =
                    if self.was_ready.swap(true, Ordering::Relaxed) { " again" } else { "" };
                info!("ready{again}");
            }
            None => self.was_ready.store(true, Ordering::Relaxed),
            Some(_) => {}
        }
        app.metrics.set_ready(problem.is_none());
        *last = Some(Last { at: Instant::now(), problem: problem.clone() });
        problem
    }
}

/// Asks once and logs the answer, for the start.
pub(crate) async fn first_check(app: &App) {
    let _ = app.readiness.problem(app).await;
}

/// 200 while the process runs.
pub(crate) fn live(method: &Method) -> Answer {
    reads(method).unwrap_or_else(|| answer::text(StatusCode::OK, "ok\n"))
}

/// 200 when a delivery would be taken, else 503; with the reason where strangers don't see it.
pub(crate) async fn ready(app: &App, routes: Routes, method: &Method) -> Answer {
    if let Some(refused) = reads(method) {
        return refused;
    }
    let clock = if routes.details { app.clock.lines() } else { String::new() };
    match app.readiness.problem(app).await {
        None => answer::text(StatusCode::OK, format!("ok\n{clock}")),
        Some(problem) => {
            let reason = if routes.details { problem } else { "not ready".into() };
            answer::text(StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n{clock}"))
        }
    }
}

/// The metrics in the format that Prometheus asks for.
pub(crate) fn metrics(app: &App, method: &Method) -> Answer {
    const OPEN_METRICS: HeaderValue =
        HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    reads(method).unwrap_or_else(|| {
        answer::answer(StatusCode::OK, OPEN_METRICS, Bytes::from(app.metrics.text()))
    })
}

/// The refusal of a method that does not read.
fn reads(method: &Method) -> Option<Answer> {
    let reads = method == Method::GET || method == Method::HEAD;
    (!reads).then(|| answer::method_not_allowed("GET, HEAD"))
}
