//! Group commit of receipts: many async deliveries, one transaction.
//!
//! Each delivery is answered only after the transaction that holds it committed. Row by row is
//! tried only after an error that blames a row, never after an outage.

use std::sync::Arc;

use deadpool_postgres::Object;
use futures_util::FutureExt;

use super::{
    Config,
    batch::{Batch, Stored, Suspect},
    connect,
    core::{Core, is_unknown_endpoint},
    handler::Run,
    prepared::is_stale,
    queue::{self, Queue, Shape},
};
use crate::{Error, Intake, Taken};

/// Deliveries in one transaction: where throughput stops to grow with more.
const DELIVERIES_MAX: usize = 50;

/// With this many a second commit goes beside the one under way, so that neither the processor
/// nor the disk waits for the other.
const ENOUGH: usize = 16;

/// The first try, and two more: the pool may hand out one more connection that has just died.
const TRIES: u32 = 3;

pub(super) type Answer = Result<Vec<Taken>, Error>;
type Job = queue::Job<Answer>;

/// The queue of async deliveries.
pub(super) fn queue(core: Arc<Core>, config: &Config) -> Queue<Answer> {
    let shape = Shape {
        committers: config.committers,
        deliveries_max: DELIVERIES_MAX,
        enough: ENOUGH,
        waiting_max: config.waiting_max,
    };
    Queue::new(core, shape, |core, jobs| commit(core, jobs).boxed())
}

async fn commit(core: Arc<Core>, jobs: Vec<Job>) {
    let core = &*core;
    let (intakes, answers): (Vec<_>, Vec<_>) =
        jobs.into_iter().map(|job| (job.intake, job.answer)).unzip();
    let all: Vec<_> = intakes.iter().collect();
    match store(core, &all).await {
        Ok(rows) => {
            for ((intake, answer), rows) in intakes.iter().zip(answers).zip(rows) {
                drop(answer.send(judge(core, intake, &rows).await));
            }
        }
        // One of them is to blame: each alone, so that it refuses only itself.
        Err(error) if !error.is_retryable() && intakes.len() > 1 => {
            for (intake, answer) in intakes.iter().zip(answers) {
                let taken = match store(core, &[intake]).await {
                    Ok(rows) => judge(core, intake, &rows[0]).await,
                    Err(error) => Err(error),
                };
                drop(answer.send(taken));
            }
        }
        Err(error) => {
            for answer in answers {
                drop(answer.send(Err(Error::new(error.kind(), error.to_string()))));
            }
        }
    }
}

/// Commits the deliveries; rows for each of them. A connection lost on the way leaves the
/// outcome unknown, so it is asked again on a fresh one: our own receipt ids are known again.
async fn store(core: &Core, intakes: &[&Intake<dyn Run>]) -> Result<Vec<Vec<Stored>>, Error> {
    let batch = Batch::new(intakes.iter().copied());
    let mut tries = TRIES;
    let mut rows = loop {
        tries -= 1;
        let connection = core.connection().await?;
        let received = async {
            let receive = core.receiving(&connection).await?;
            batch.receive(&connection, &receive).await
        };
        match received.await {
            Ok(rows) => break rows.into_iter(),
            Err(error) if tries > 0 && is_stale(&error) => drop(Object::take(connection)),
            Err(error) if tries > 0 && is_unknown_endpoint(&error) => core.forget_registration(),
            Err(error) if tries > 0 && connect::is_lost(&error) => {}
            Err(error) => return Err(connect::database(&error)),
        }
    };
    Ok(intakes.iter().map(|i| rows.by_ref().take(i.routes.len()).collect()).collect())
}

async fn judge(core: &Core, intake: &Intake<dyn Run>, rows: &[Stored]) -> Answer {
    let mut all = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        all.push(judge_one(core, intake, index, row).await?);
    }
    Ok(all)
}

/// What the row of an event means, once it is committed.
pub(super) async fn judge_one(
    core: &Core,
    intake: &Intake<dyn Run>,
    index: usize,
    row: &Stored,
) -> Result<Taken, Error> {
    let mut taken = row.taken(intake, index);
    if row.differs {
        taken.conflict = core.judge(&Suspect::new(intake, index, row.receipt)).await?;
    }
    Ok(taken)
}
