//! The statements of one delivery, inside the writer's transaction and a savepoint of their own.
//!
//! The event key is the judge: a handler runs only for an event that this call inserted. After a
//! failure nothing of the handler stays, and with `keep` the event waits with its error; also
//! when the failure took the whole transaction along, in the one after it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use ichido_verify::Provenance;
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use super::{
    Run,
    attempt::{Why, attempt},
    file, time,
    watch::Watch,
};
use crate::{
    EndpointSpec, Error, ErrorKind, Fault, Intake, OnFailure, OrderByKey, Outcome, RepeatedBody,
    Route, Taken,
};

macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("../../sql/sqlite/", $name, ".sql"))
    };
}

/// A kept event is due again after up to this, so that those of one outage come apart.
const RETRY_JITTER: Duration = Duration::from_secs(2);

/// What the writer knows beside its connection.
pub(super) struct Receiver {
    pub(super) watch: Watch,
    /// Ids of endpoints that are registered for certain.
    pub(super) endpoints: HashMap<Arc<str>, i64>,
}

/// Why a delivery was not taken.
pub(super) enum Failed {
    /// Its savepoint must be rolled back.
    Delivery(Error),
    /// Its handler failed, and the whole transaction is gone with it: SQL that writes takes it
    /// along when it is interrupted, and so does `OR ROLLBACK`.
    Transaction(String),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Delivery(error)
    }
}

impl Failed {
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Delivery(error) => error,
            Self::Transaction(why) => Error::new(ErrorKind::Handler, why),
        }
    }
}

/// One event on its way in.
struct One<'o> {
    connection: &'o Connection,
    intake: &'o Intake<dyn Run>,
    endpoint: i64,
    now: &'o str,
    index: usize,
    /// Why its handler failed in a transaction that is gone; it is not run again.
    failed: Option<&'o str>,
}

impl Receiver {
    /// Takes a delivery. `handler_failed`: it was tried before, and its handler is not run again.
    pub(super) fn receive(
        &mut self,
        connection: &Connection,
        intake: &Intake<dyn Run>,
        handler_failed: Option<&str>,
    ) -> Result<Vec<Taken>, Failed> {
        let endpoint = self.endpoint(connection, &intake.endpoint)?;
        let now = time::now();
        let one =
            |index| One { connection, intake, endpoint, now: &now, index, failed: handler_failed };
        let failed = |e: rusqlite::Error| file::error(&e);
        let mut fresh = Vec::with_capacity(intake.routes.len());
        for index in 0..intake.routes.len() {
            fresh.push(one(index).insert().map_err(failed)?);
        }
        if fresh.contains(&true) {
            one(0).store_delivery().map_err(failed)?;
        }
        let refuses = intake.endpoint.repeated_body == RepeatedBody::Refuse;
        let mut all = Vec::with_capacity(fresh.len());
        for (index, fresh) in fresh.into_iter().enumerate() {
            let one = one(index);
            if fresh {
                let repeated = one.mark().map_err(failed)?;
                if repeated && refuses {
                    let why = "a body that was received before, under another event id";
                    return Err(Error::new(ErrorKind::RepeatedBody, why).into());
                }
                all.push(Taken { repeated, ..self.route(&one)? });
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
        if spec.order_by_key.is_none() {
            let row = params![id, time::now()];
            connection.execute(sql!("order_end"), row).map_err(|e| file::error(&e))?;
        }
        self.endpoints.insert(spec.name.clone(), id);
        Ok(id)
    }

    fn route(&self, one: &One<'_>) -> Result<Taken, Failed> {
        let failed = |e: rusqlite::Error| file::error(&e);
        let order_key = one.intake.delivery.events[one.index].order_key();
        let id = one.id();
        let id = id.as_bytes();
        let (outcome, error) = match &one.intake.routes[one.index].route {
            Route::Run(handler) => return self.run(one, &**handler),
            Route::Queue(queue) => {
                one.leave(queue, order_key).map_err(failed)?;
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
    fn run(&self, one: &One<'_>, handler: &dyn Run) -> Result<Taken, Failed> {
        let failed = |e: rusqlite::Error| file::error(&e);
        let id = one.id();
        let row = params![id.as_bytes(), one.endpoint, "processed", one.now];
        one.execute(sql!("done_put"), row).map_err(failed)?;
        let keep = one.intake.endpoint.on_failure == OnFailure::Keep;
        if keep {
            one.connection.execute_batch("SAVEPOINT ichido_handler").map_err(failed)?;
        }
        let spec = &one.intake.endpoint;
        let result = if let Some(why) = one.failed {
            Err(Why { fault: Fault::retry(why), ours: false })
        } else {
            let event = one.intake.event(one.index);
            attempt(&self.watch, one.connection, &event, spec.handler_timeout, handler)
        };
        let lost = one.connection.is_autocommit();
        let why = match result {
            Ok(()) => {
                if keep {
                    one.connection.execute_batch("RELEASE ichido_handler").map_err(failed)?;
                }
                return Ok(one.taken(Outcome::Processed, None));
            }
            Err(why) if why.ours => {
                return Err(Error::new(ErrorKind::Unavailable, why.fault.text).into());
            }
            Err(why) => why.fault.text,
        };
        if lost {
            return Err(Failed::Transaction(why));
        }
        if !keep {
            return Err(Error::new(ErrorKind::Handler, why).into());
        }
        let undo = "ROLLBACK TO ichido_handler; RELEASE ichido_handler";
        one.connection.execute_batch(undo).map_err(failed)?;
        one.keep(&why).map_err(failed)?;
        Ok(one.taken(Outcome::Accepted, Some(why)))
    }
}

impl One<'_> {
    fn id(&self) -> Uuid {
        self.intake.routes[self.index].receipt
    }

    fn taken(&self, outcome: Outcome, error: Option<String>) -> Taken {
        self.intake.taken(self.index, self.id(), outcome, error)
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
            self.now,
            is_text(&self.intake.delivery.request.body[range.clone()])
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

    /// Where the event id is not signed, marks its bytes. True when they came under another id.
    fn mark(&self) -> rusqlite::Result<bool> {
        let event = &self.intake.delivery.events[self.index];
        if self.intake.endpoint.id_signed || event.provenance() != Provenance::Signed {
            return Ok(false);
        }
        let id = self.id();
        let row = params![self.endpoint, event.digest(), id.as_bytes(), self.now];
        let mut mark = self.connection.prepare_cached(sql!("digest_mark"))?;
        mark.query_row(row, |row| row.get(0))
    }

    /// The key is held: by our own receipt, by the same event, or by other content.
    fn known(&self) -> rusqlite::Result<Taken> {
        let event = &self.intake.delivery.events[self.index];
        let mut find = self.connection.prepare_cached(sql!("event_find"))?;
        let (id, digest, signed): (Uuid16, Vec<u8>, bool) = find
            .query_row(params![self.endpoint, event.id()], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        let receipt = Uuid::from_bytes(id);
        let mut taken = self.intake.taken(self.index, receipt, Outcome::Duplicate, None);
        let both_signed = signed && event.provenance() == Provenance::Signed;
        let request = &self.intake.delivery.request;
        if both_signed && digest != event.digest() && !self.same_content(&id)? {
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

    /// Whether the event that came first has the same content. Where its bytes are no longer
    /// kept, only the digests can speak.
    fn same_content(&self, first: &Uuid16) -> rusqlite::Result<bool> {
        let mut body = self.connection.prepare_cached(sql!("event_body"))?;
        let first: Option<Vec<u8>> = body.query_row(params![first], |row| row.get(0)).optional()?;
        let again = self.intake.delivery.events[self.index].range();
        let again = &self.intake.delivery.request.body[again];
        Ok(first.is_some_and(|first| self.intake.verifier.same_content(&first, again)))
    }

    /// Leaves an event to a worker.
    fn leave(&self, queue: &str, order_key: Option<&str>) -> rusqlite::Result<()> {
        let id = self.id();
        let id = id.as_bytes();
        let policy = self.intake.endpoint.order_by_key;
        if let (Some(policy), Some(key)) = (policy, order_key) {
            let blocks = policy == OrderByKey::Block;
            let row = params![id, self.endpoint, queue, self.now, key, blocks];
            return self.execute(sql!("order_put"), row).map(drop);
        }
        let (now, error) = (self.now, None::<&str>);
        let row = params![id, self.endpoint, queue, "fresh", now, now, order_key, error];
        self.execute(sql!("work_put"), row).map(drop)
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

/// What the view may show as text. The engine itself takes invalid UTF-8 for JSON.
fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

/// What commands and people need to know of an endpoint.
fn settings(spec: &EndpointSpec) -> String {
    let repeated_body = spec.repeated_body.as_str();
    let (mode, types) = (spec.mode.as_str(), &spec.patterns);
    let order_by_key = spec.order_by_key.map(OrderByKey::as_str);
    serde_json::json!({
        "mode": mode, "repeated_body": repeated_body, "order_by_key": order_by_key, "types": types
    })
    .to_string()
}
