//! Counts duplicates in lumps: a duplicate itself must write nothing.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio_postgres::types::{ToSql, Type};
use tracing::debug;

use super::core::Core;
use crate::{EndpointSpec, Outcome, Taken};

const DUPLICATES_ADD: &str = include_str!("../../sql/postgres/duplicates_add.sql");
/// How late the count may be.
const LATE: Duration = Duration::from_secs(1);

/// Duplicates by endpoint that the database has not been told of.
#[derive(Default)]
pub(super) struct Duplicates(Mutex<HashMap<Arc<str>, i64>>);

impl Duplicates {
    fn add(&self, endpoint: &EndpointSpec, more: i64) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = counts.is_empty();
        *counts.entry(endpoint.name.clone()).or_default() += more;
        first
    }

    fn take(&self) -> HashMap<Arc<str>, i64> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Counts the duplicates among `taken`, and sees to it that the database is told soon.
pub(super) fn count(core: &Arc<Core>, endpoint: &EndpointSpec, taken: &[Taken]) {
    let duplicates = taken.iter().filter(|taken| taken.outcome == Outcome::Duplicate).count();
    let more = i64::try_from(duplicates).unwrap_or(i64::MAX);
    if more > 0 && core.duplicates.add(endpoint, more) {
        let core = core.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LATE).await;
            flush(&core).await;
        });
    }
}

/// Tells the database now. What cannot be told is forgotten: it is a figure, not a receipt.
pub(super) async fn flush(core: &Core) {
    let counts = core.duplicates.take();
    if counts.is_empty() {
        return;
    }
    let Ok(client) = core.get().await else { return };
    for (name, more) in &counts {
        let params: [(&(dyn ToSql + Sync), Type); 2] = [(&&**name, Type::TEXT), (more, Type::INT8)];
        if let Err(error) = core.query(&client, DUPLICATES_ADD, &params).await {
            debug!(%error, "duplicates were not counted");
        }
    }
}
