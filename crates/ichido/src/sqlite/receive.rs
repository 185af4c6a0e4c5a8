//! The statements of one delivery, inside the writer's transaction and a savepoint of their own.
//!
//! The event key is the judge: a handler runs only for an event that this call inserted. After a
//! failure nothing of the handler stays, and with `keep` the event waits with its error.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use ichido_verify::Provenance;
use rusqlite::{Connection, OptionalExtension, params};
use tracing::warn;
use uuid::Uuid;

use super::{Run, Tx, file, time, watch::Watch};
use crate::{EndpointSpec, Error, ErrorKind, Intake, Mode, OnFailure, Outcome, Route, Taken};

macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("../../sql/sqlite/", $name, ".sql"))
    };
}

/// Longest error text that is kept; the rest says nothing more.
const ERROR_CHARS_MAX: usize = 1_000;
/// A kept event is due again after up to this, so that those of one outage come apart.
const RETRY_JITTER: Duration = Duration::from_secs(2);

/// What the writer knows beside its connection.
pub(super) struct Receiver {
    pub(super) watch: Watch,
    /// Ids of endpoints that are registered for certain.
    pub(super) endpoints: HashMap<Arc<str>, i64>,
}

/// One event on its way in.
struct One<'o> {
    connection: &'o Connection,
    intake: &'o Intake<dyn Run>,
    endpoint: i64,
    now: &'o str,
    index: usize,
}

impl Receiver {
    /// Takes a delivery. An error means that its savepoint must be rolled back.
    pub(super) fn receive(
        &mut self,
        connection: &Connection,
        intake: &Intake<dyn Run>,
    ) -> Result<Vec<Taken>, Error> {
        let endpoint = self.endpoint(connection, &intake.endpoint)?;
        let now = time::now();
        let one = |index| One { connection, intake, endpoint, now: &now, index };
        let failed = |e: rusqlite::Error| file::error(&e);
        let mut fresh = Vec::with_capacity(intake.routes.len());
        for index in 0..intake.routes.len() {
            fresh.push(one(index).insert().map_err(failed)?);
        }
        if fresh.contains(&true) {
            one(0).store_delivery().map_err(failed)?;
        }
        let mut all = Vec::with_capacity(fresh.len());
        for (index, fresh) in fresh.into_iter().enumerate() {
            let one = one(index);
            if fresh {
                one.mark().map_err(failed)?;
                all.push(self.route(&one)?);
            } else {
                all.push(one.known().map_err(failed)?);
            }
        }
        Ok(all)
    }

    fn endpoint(&mut self, connection: &Connection, spec: &EndpointSpec) -> Result<i64, Error> {
        if let Some(id) = self.endpoints.get(&spec.name) {
            return Ok(*id);
        }
        let id: Option<i64> = connection
            .query_row(
                sql!("endpoint_put"),
                params![
                    &*spec.name,
                    &*spec.provider,
                    spec.max_attempts,
                    spec.id_signed,
                    settings(spec)
                ],
                |row| row.get(0),
            )
            .optional()
            .map_err(|e| file::error(&e))?;
        let id = id.ok_or_else(|| {
            let why = format!(
                "endpoint {} belongs to another provider than {}: choose another name",
                spec.name, spec.provider
            );
            Error::new(ErrorKind::Schema, why)
        })?;
        self.endpoints.insert(spec.name.clone(), id);
        Ok(id)
    }

    fn route(&self, one: &One<'_>) -> Result<Taken, Error> {
        let failed = |e: rusqlite::Error| file::error(&e);
        let order_key = one.intake.delivery.events[one.index].order_key();
        let id = one.id();
        let id = id.as_bytes();
        let (outcome, error) = match &one.intake.routes[one.index].route {
            Route::Run(handler) => return self.run(one, &**handler),
            Route::Queue(queue) => {
                let next: Option<&str> = Some(one.now);
                let row = params![
                    id,
                    one.endpoint,
                    &**queue,
                    "fresh",
                    next,
                    one.now,
                    order_key,
                    None::<&str>
                ];
                one.execute(sql!("work_put"), row).map_err(failed)?;
                (Outcome::Accepted, None)
            }
            Route::Ignore => {
                let row = params![id, one.endpoint, "ignored", one.now];
                one.execute(sql!("done_put"), row).map_err(failed)?;
                (Outcome::Ignored, None)
            }
            Route::Review(why) => {
                let queue = &*one.intake.endpoint.name;
                let row = params![id, one.endpoint, queue, one.now, order_key, why];
                one.execute(sql!("review_put"), row).map_err(failed)?;
                (Outcome::Accepted, Some((*why).to_owned()))
            }
        };
        Ok(one.taken(outcome, error))
    }

    /// Runs the handler in the receive transaction.
    fn run(&self, one: &One<'_>, handler: &dyn Run) -> Result<Taken, Error> {
        let failed = |e: rusqlite::Error| file::error(&e);
        let id = one.id();
        let row = params![id.as_bytes(), one.endpoint, "processed", one.now];
        one.execute(sql!("done_put"), row).map_err(failed)?;
        let keep = one.intake.endpoint.on_failure == OnFailure::Keep;
        if keep {
            one.connection.execute_batch("SAVEPOINT ichido_handler").map_err(failed)?;
        }
        let why = match self.guarded(one, handler) {
            Ok(()) => {
                if keep {
                    one.connection.execute_batch("RELEASE ichido_handler").map_err(failed)?;
                }
                return Ok(one.taken(Outcome::Processed, None));
            }
            Err(why) => why.chars().take(ERROR_CHARS_MAX).collect::<String>(),
        };
        if !keep {
            return Err(Error::new(ErrorKind::Handler, why));
        }
        let undo = "ROLLBACK TO ichido_handler; RELEASE ichido_handler";
        one.connection.execute_batch(undo).map_err(failed)?;
        one.keep(&why).map_err(failed)?;
        Ok(one.taken(Outcome::Accepted, Some(why)))
    }

    /// The handler's own part: its errors, panics and time.
    fn guarded(&self, one: &One<'_>, handler: &dyn Run) -> Result<(), String> {
        let limit = one.intake.endpoint.handler_timeout;
        let event = one.intake.event(one.index);
        let began = Instant::now();
        let result = self.watch.over(limit, || {
            let mut tx = Tx(one.connection);
            catch_unwind(AssertUnwindSafe(|| handler.run(&mut tx, &event)))
        });
        let took = began.elapsed();
        if took > limit {
            warn!(
                endpoint = %event.endpoint,
                event_type = %event.event_type,
                took_ms = took.as_millis(),
                limit_ms = limit.as_millis(),
                "a handler held the only writer longer than its handler_timeout"
            );
        }
        match result {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) if took > limit => {
                Err(format!("handler_timeout: not done within {} s", limit.as_secs_f64()))
            }
            Ok(Err(error)) => Err(error.to_string()),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                Err(format!("handler panicked: {}", text.unwrap_or("without a word")))
            }
        }
    }
}

impl One<'_> {
    fn id(&self) -> Uuid {
        self.intake.routes[self.index].receipt
    }

    fn taken(&self, outcome: Outcome, error: Option<String>) -> Taken {
        Taken { receipt: self.id(), outcome, conflict: false, error }
    }

    fn execute(&self, sql: &str, row: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<usize> {
        self.connection.prepare_cached(sql)?.execute(row)
    }

    /// Takes the event key; false where somebody holds it.
    fn insert(&self) -> rusqlite::Result<bool> {
        let event = &self.intake.delivery.events[self.index];
        let range = event.range();
        let occurred = event.occurred_at().map(time::text);
        let signed = event.provenance() == Provenance::Signed;
        let (id, digest) = (self.id(), event.digest());
        let row = params![
            self.endpoint,
            event.id(),
            id.as_bytes(),
            self.intake.delivery_id.as_bytes(),
            range.start,
            range.end,
            event.event_type(),
            digest,
            signed,
            occurred,
            event.order_key(),
            self.now
        ];
        Ok(self.execute(sql!("event_put"), row)? == 1)
    }

    fn store_delivery(&self) -> rusqlite::Result<()> {
        let request = &self.intake.delivery.request;
        let row = params![
            self.intake.delivery_id.as_bytes(),
            self.endpoint,
            self.now,
            request.method,
            request.url,
            request.headers.evidence(),
            &request.body[..],
            self.intake.delivery.secret
        ];
        self.execute(sql!("delivery_put"), row).map(drop)
    }

    /// Where the event id is not signed, marks its bytes.
    fn mark(&self) -> rusqlite::Result<()> {
        let event = &self.intake.delivery.events[self.index];
        if self.intake.endpoint.id_signed || event.provenance() != Provenance::Signed {
            return Ok(());
        }
        let id = self.id();
        let row = params![self.endpoint, event.digest(), id.as_bytes(), self.now];
        self.execute(sql!("digest_mark"), row).map(drop)
    }

    /// The key is held: by our own receipt, by the same event, or by other content.
    fn known(&self) -> rusqlite::Result<Taken> {
        let event = &self.intake.delivery.events[self.index];
        let mut find = self.connection.prepare_cached(sql!("event_find"))?;
        let (id, digest, signed, first): (Uuid16, Vec<u8>, bool, Option<Vec<u8>>) = find
            .query_row(params![self.endpoint, event.id()], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })?;
        let receipt = Uuid::from_bytes(id);
        let mut taken =
            Taken { receipt, outcome: Outcome::Duplicate, conflict: false, error: None };
        let both_signed = signed && event.provenance() == Provenance::Signed;
        let request = &self.intake.delivery.request;
        let again = &request.body[event.range()];
        let same = || {
            first.as_deref().is_some_and(|first| self.intake.verifier.same_content(first, again))
        };
        if both_signed && digest != event.digest() && !same() {
            taken.conflict = true;
            let row = params![
                id,
                event.digest(),
                digest,
                self.now,
                request.method,
                request.url,
                request.headers.evidence(),
                &request.body[..],
                self.intake.delivery.secret
            ];
            self.execute(sql!("conflict_put"), row)?;
        }
        Ok(taken)
    }

    /// Keeps an event whose handler failed, with its error.
    fn keep(&self, why: &str) -> rusqlite::Result<()> {
        let id = self.id();
        let id = id.as_bytes();
        self.execute(sql!("done_undo"), params![id])?;
        let jitter = RETRY_JITTER.mul_f64(fastrand::f64());
        let next = time::text(ichido_verify::Timestamp::now() + jitter);
        let order_key = self.intake.delivery.events[self.index].order_key();
        let queue = &*self.intake.endpoint.name;
        let row = params![id, self.endpoint, queue, "retry", next, self.now, order_key, why];
        self.execute(sql!("work_put"), row)?;
        let mut lease = self.connection.prepare_cached(sql!("lease_next"))?;
        let lease: i64 = lease.query_row([], |row| row.get(0))?;
        let row = params![id, lease, self.now, time::now(), why];
        self.execute(sql!("attempt_put"), row).map(drop)
    }
}

type Uuid16 = [u8; 16];

/// What commands and people need to know of an endpoint.
fn settings(spec: &EndpointSpec) -> String {
    let mode = match spec.mode {
        Mode::Sync => "sync",
        Mode::Async => "async",
    };
    serde_json::json!({ "mode": mode, "types": spec.patterns }).to_string()
}
