//! Sends the script over HTTP and remembers how each event was answered.
//!
//! It must never decide what an answer should have been; `verdict` does.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::try_join_all;
use ichido_verify::{Request, Secret, Settings, Timestamp, Verifier};
use indicatif::ProgressBar;
use tokio::task::JoinSet;

use super::story::{Delivery, Forgery, Script, Story};
use crate::cli::send::{
    self,
    client::{Answer, Client},
    tally::{Summary, Tally},
};

/// Stories that run beside each other.
const STORIES_AT_ONCE: usize = 32;

/// How one event was answered, over all its deliveries.
#[derive(Debug, Default, Clone)]
pub(super) struct Fate {
    /// Genuine deliveries that were answered 2xx.
    pub(super) acknowledged: u64,
    /// Of them, as `processed`.
    pub(super) processed: u64,
}

/// What came back.
#[derive(Debug, Default)]
pub(super) struct Played {
    tally: Tally,
    /// Genuine events.
    pub(super) fates: BTreeMap<String, Fate>,
    /// Forgeries that were answered 400.
    pub(super) refused: u64,
    /// Forgeries that were answered 2xx.
    pub(super) believed: u64,
}

/// What all senders share.
struct Stage {
    client: Client,
    genuine: Verifier,
    forger: Verifier,
    bar: ProgressBar,
    played: Mutex<Played>,
    pending_webhooks: AtomicUsize,
}

impl Played {
    /// Plays the acts of `script`, one after the other.
    pub(super) async fn play(
        script: Script,
        client: &Client,
        secret: &str,
    ) -> anyhow::Result<Self> {
        let verifier =
            |secret: &str| Verifier::new("stripe", &Settings::default(), &[Secret::new(secret)]);
        let stage = Arc::new(Stage {
            client: client.clone(),
            genuine: verifier(secret)?,
            forger: verifier("whsec_of_somebody_else")?,
            bar: send::progress(script.len() as u64),
            played: Mutex::default(),
            pending_webhooks: AtomicUsize::new(1),
        });
        for act in script.acts {
            stage.clone().act(act).await?;
        }
        stage.bar.finish_and_clear();
        let mut played = stage.played.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut played))
    }

    /// The figures of the sending.
    pub(super) fn summary(&mut self, took: Duration) -> Summary {
        std::mem::take(&mut self.tally).summary(took)
    }
}

impl Stage {
    async fn act(self: Arc<Self>, stories: Vec<Story>) -> anyhow::Result<()> {
        let (stories, next) = (Arc::new(stories), Arc::new(AtomicUsize::new(0)));
        let mut senders = JoinSet::new();
        for _ in 0..STORIES_AT_ONCE {
            let (stage, stories, next) = (self.clone(), stories.clone(), next.clone());
            senders.spawn(async move {
                while let Some(story) = stories.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for step in story {
                        try_join_all(step.iter().map(|delivery| stage.send(delivery))).await?;
                    }
                }
                anyhow::Ok(())
            });
        }
        while let Some(sender) = senders.join_next().await {
            sender??;
        }
        Ok(())
    }

    async fn send(&self, delivery: &Delivery) -> anyhow::Result<()> {
        let delivered = self.client.deliver(|now| self.sign(delivery, now)).await?;
        let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        let acknowledged = u64::from(delivered.last().is_success());
        if delivery.forgery == Forgery::None {
            let fate = played.fates.entry(delivery.event.id.clone()).or_default();
            fate.acknowledged += acknowledged;
            fate.processed += u64::from(matches!(
                delivered.last(),
                Answer::Status(_, Some(outcome)) if outcome == "processed"
            ));
        } else {
            played.believed += acknowledged;
            played.refused += u64::from(matches!(
                delivered.last(),
                Answer::Status(status, _) if status.as_u16() == 400
            ));
        }
        played.tally.add(delivered);
        self.bar.inc(1);
        Ok(())
    }

    fn sign(&self, delivery: &Delivery, now: Timestamp) -> anyhow::Result<Request> {
        let event = &delivery.event;
        let pending = self.pending_webhooks.fetch_add(1, Ordering::Relaxed) % 3;
        let body = event.body(u32::try_from(pending)?);
        let signer = match delivery.forgery {
            Forgery::WrongSecret => &self.forger,
            Forgery::None | Forgery::Altered => &self.genuine,
        };
        let mut request =
            Request { method: "POST".into(), body: body.into(), ..Request::default() };
        signer.sign(&mut request, &event.id, event.kind, now)?;
        if delivery.forgery == Forgery::Altered {
            // One byte: the customer is somebody else.
            let body = event.body(u32::try_from(pending)?).replace("cus_demo", "cus_demp");
            request.body = body.into();
        }
        Ok(request)
    }
}
