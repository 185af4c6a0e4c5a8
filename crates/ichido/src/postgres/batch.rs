//! Deliveries as the arrays that `ichido.receive` takes, and its rows as outcomes.
//! Pure but for the one call; must never split a delivery over two calls.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use ichido_verify::{Provenance, Timestamp, Verifier};
use tokio_postgres::{
    Client, Row,
    types::{ToSql, Type},
};
use uuid::Uuid;

use super::{handler::Run, prepared::Sql};
use crate::{Intake, Outcome, Route, Taken};

/// The statement that takes a batch.
pub(super) const RECEIVE: &str = include_str!("../../sql/postgres/receive.sql");

/// What one call of `ichido.receive` takes.
#[derive(Default)]
pub(super) struct Batch<'i> {
    d_id: Vec<Uuid>,
    d_endpoint: Vec<&'i str>,
    d_method: Vec<&'i str>,
    d_url: Vec<&'i str>,
    d_headers: Vec<Vec<u8>>,
    d_body: Vec<&'i [u8]>,
    d_secret: Vec<i16>,
    e_receipt: Vec<Uuid>,
    e_delivery: Vec<i32>,
    e_id: Vec<&'i str>,
    e_type: Vec<&'i str>,
    e_from: Vec<i32>,
    e_to: Vec<i32>,
    e_digest: Vec<Vec<u8>>,
    e_occurred: Vec<Option<SystemTime>>,
    e_order_key: Vec<Option<&'i str>>,
    e_signed: Vec<bool>,
    e_route: Vec<&'static str>,
    e_queue: Vec<Option<&'i str>>,
    e_error: Vec<Option<&'static str>>,
}

/// Bodies are at most 32 MiB, so that a place in one fits.
fn int(place: usize) -> i32 {
    i32::try_from(place).unwrap_or(i32::MAX)
}

/// A time as the driver takes it, to the microsecond that the database keeps.
pub(super) fn system_time(at: Timestamp) -> SystemTime {
    let micros = at.as_microsecond();
    let distance = Duration::from_micros(micros.unsigned_abs());
    if micros < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}

impl<'i> Batch<'i> {
    pub(super) fn new(intakes: impl IntoIterator<Item = &'i Intake<dyn Run>>) -> Self {
        let mut batch = Self::default();
        for intake in intakes {
            batch.add(intake);
        }
        batch
    }

    fn add(&mut self, intake: &'i Intake<dyn Run>) {
        let request = &intake.delivery.request;
        self.d_id.push(intake.delivery_id);
        self.d_endpoint.push(&intake.endpoint.name);
        self.d_method.push(&request.method);
        self.d_url.push(&request.url);
        self.d_headers.push(request.headers.evidence());
        self.d_body.push(&request.body);
        self.d_secret.push(i16::try_from(intake.delivery.secret).unwrap_or(i16::MAX));
        let delivery = int(self.d_id.len());
        for (event, routed) in intake.delivery.events.iter().zip(&intake.routes) {
            let (route, queue, error) = match &routed.route {
                Route::Run(_) => ("run", None, None),
                Route::Queue(queue) => ("work", Some(&**queue), None),
                Route::Ignore => ("ignored", None, None),
                Route::Review(why) => ("review", Some(&*intake.endpoint.name), Some(*why)),
            };
            let range = event.range();
            self.e_receipt.push(routed.receipt);
            self.e_delivery.push(delivery);
            self.e_id.push(event.id());
            self.e_type.push(event.event_type());
            self.e_from.push(int(range.start));
            self.e_to.push(int(range.end));
            self.e_digest.push(event.digest().to_vec());
            self.e_occurred.push(event.occurred_at().map(system_time));
            self.e_order_key.push(event.order_key());
            self.e_signed.push(event.provenance() == Provenance::Signed);
            self.e_route.push(route);
            self.e_queue.push(queue);
            self.e_error.push(error);
        }
    }

    /// Marks all of it as processed by whoever commits.
    pub(super) fn processed_by_caller(&mut self) {
        self.e_route.fill("run");
        self.e_queue.fill(None);
    }

    /// The types of what [`RECEIVE`] takes.
    pub(super) const TYPES: [Type; 20] = [
        Type::UUID_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::BYTEA_ARRAY,
        Type::BYTEA_ARRAY,
        Type::INT2_ARRAY,
        Type::UUID_ARRAY,
        Type::INT4_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT4_ARRAY,
        Type::INT4_ARRAY,
        Type::BYTEA_ARRAY,
        Type::TIMESTAMPTZ_ARRAY,
        Type::TEXT_ARRAY,
        Type::BOOL_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
    ];

    /// Calls `ichido.receive` by [`RECEIVE`]. Outside a transaction, `Ok` means committed: the
    /// driver waits for the server to be ready again, and an error at commit comes before that.
    pub(super) async fn receive(
        &self,
        client: &Client,
        receive: &Sql<'_>,
    ) -> Result<Vec<Stored>, tokio_postgres::Error> {
        let values: [&(dyn ToSql + Sync); 20] = [
            &self.d_id,
            &self.d_endpoint,
            &self.d_method,
            &self.d_url,
            &self.d_headers,
            &self.d_body,
            &self.d_secret,
            &self.e_receipt,
            &self.e_delivery,
            &self.e_id,
            &self.e_type,
            &self.e_from,
            &self.e_to,
            &self.e_digest,
            &self.e_occurred,
            &self.e_order_key,
            &self.e_signed,
            &self.e_route,
            &self.e_queue,
            &self.e_error,
        ];
        let mut values = values.into_iter();
        let params = Self::TYPES.map(|ty| (values.next().expect("a value for each type"), ty));
        let rows = receive.query(client, &params).await?;
        rows.iter().map(Stored::read).collect()
    }
}

/// One row of `ichido.receive`.
pub(super) struct Stored {
    pub(super) receipt: Uuid,
    pub(super) taken: bool,
    pub(super) differs: bool,
    pub(super) repeated: bool,
    pub(super) xid: String,
}

impl Stored {
    fn read(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            receipt: row.try_get(0)?,
            taken: row.try_get(1)?,
            differs: row.try_get(2)?,
            xid: row.try_get(3)?,
            repeated: row.try_get(4)?,
        })
    }

    /// The outcome of the event at `index` of `intake`, which was stored as this row says.
    pub(super) fn taken(&self, intake: &Intake<dyn Run>, index: usize) -> Taken {
        let route = &intake.routes[index].route;
        let outcome = match route {
            _ if !self.taken => Outcome::Duplicate,
            Route::Run(_) => Outcome::Processed,
            Route::Queue(_) | Route::Review(_) => Outcome::Accepted,
            Route::Ignore => Outcome::Ignored,
        };
        let error = match route {
            Route::Review(why) if self.taken => Some((*why).to_owned()),
            _ => None,
        };
        Taken { repeated: self.repeated, ..intake.taken(index, self.receipt, outcome, error) }
    }
}

/// A duplicate whose bytes differ from the first one's, on its way to being judged.
pub(super) struct Suspect {
    pub(super) receipt: Uuid,
    pub(super) digest: [u8; 32],
    pub(super) range: Range<usize>,
    pub(super) method: String,
    pub(super) url: String,
    pub(super) headers: Vec<u8>,
    pub(super) body: Bytes,
    pub(super) secret: i32,
    pub(super) verifier: Arc<Verifier>,
}

impl Suspect {
    /// The event at `index` of a delivery, found to differ from the receipt under its key.
    pub(super) fn new(intake: &Intake<dyn Run>, index: usize, receipt: Uuid) -> Self {
        let event = &intake.delivery.events[index];
        let request = &intake.delivery.request;
        Self {
            receipt,
            digest: event.digest(),
            range: event.range(),
            method: request.method.clone(),
            url: request.url.clone(),
            headers: request.headers.evidence(),
            body: request.body.clone(),
            secret: int(intake.delivery.secret),
            verifier: intake.verifier.clone(),
        }
    }
}
