//! What is sent, and the sender's own model of what must come of it.
//!
//! The model must never look at the server or its SQL: it is what they are judged by.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use fastrand::Rng;
use serde_json::json;

/// Invoices in play; each has a story of its own.
const INVOICES: u64 = 1_000;
/// Deliveries that come again after everything else, as a provider's late retries do.
const LATE: usize = 300;
/// How often one event is delivered at the same time: the pattern's own test.
const AT_ONCE: usize = 8;
/// The same play every time, so that two runs can be compared.
const SEED: u64 = 1;

/// One Stripe event.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) id: String,
    /// Its type.
    pub(super) kind: &'static str,
    pub(super) invoice: String,
    pub(super) amount: i64,
}

impl Event {
    /// Its body. `pending_webhooks` differs between two sends of one event.
    pub(super) fn body(&self, pending_webhooks: u32) -> String {
        let status = match self.kind {
            "invoice.created" => "draft",
            "invoice.voided" => "void",
            _ => "paid",
        };
        json!({
            "id": self.id, "object": "event", "created": 1_767_225_600, "livemode": false,
            "pending_webhooks": pending_webhooks, "type": self.kind,
            "data": { "object": {
                "id": self.invoice, "object": "invoice", "customer": "cus_demo",
                "status": status, "currency": "usd", "amount_paid": self.amount,
            } },
        })
        .to_string()
    }
}

/// What is wrong with a delivery's signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forgery {
    /// Nothing: it is genuine.
    None,
    /// Made with another secret.
    WrongSecret,
    /// Genuine, and the body was changed after signing.
    Altered,
}

/// One delivery of an event.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pub(super) event: Arc<Event>,
    pub(super) forgery: Forgery,
}

/// Deliveries that leave at the same time; the next step waits for all their answers.
pub(super) type Step = Vec<Delivery>;
/// Steps, one after the other. Stories run beside each other.
pub(super) type Story = Vec<Step>;

/// Everything that is sent: acts one after the other, the stories of an act beside each other.
pub(super) struct Script {
    pub(super) acts: [Vec<Story>; 2],
}

impl Script {
    /// Writes the play.
    pub(super) fn new() -> Self {
        let mut rng = Rng::with_seed(SEED);
        let mut stories: Vec<_> = (0..INVOICES).map(|n| story(n, &mut rng)).collect();
        rng.shuffle(&mut stories);
        let genuine: Vec<_> = deliveries(&stories)
            .filter(|delivery| delivery.forgery == Forgery::None)
            .cloned()
            .collect();
        let late = (0..LATE).map(|_| vec![vec![genuine[rng.usize(..genuine.len())].clone()]]);
        Self { acts: [stories, late.collect()] }
    }

    /// How many deliveries there are.
    pub(super) fn len(&self) -> usize {
        self.acts.iter().map(|act| deliveries(act).count()).sum()
    }

    /// What must come of them.
    pub(super) fn expected(&self) -> Expected {
        let mut expected = Expected::default();
        for act in &self.acts {
            deliveries(act).for_each(|delivery| expected.take(delivery));
        }
        expected
    }
}

fn deliveries(stories: &[Story]) -> impl Iterator<Item = &Delivery> {
    stories.iter().flatten().flatten()
}

/// The story of invoice `n`.
fn story(n: u64, rng: &mut Rng) -> Story {
    let amount = rng.i64(500..50_000);
    let event = |kind: &'static str, tag: &str| {
        let event = Event {
            id: format!("evt_demo_{n}_{tag}"),
            kind,
            invoice: format!("in_demo_{n}"),
            amount,
        };
        Delivery { event: Arc::new(event), forgery: Forgery::None }
    };
    let created = event("invoice.created", "created");
    let paid = event("invoice.paid", "paid");
    let paid_too = event("invoice.paid", "paid_too");
    let voided = event("invoice.voided", "voided");
    let unknown = event("customer.updated", "updated");
    let forged = |forgery| Delivery { forgery, ..paid.clone() };
    let mut steps: Story = match n % 20 {
        // Void, then paid: nothing is booked, a flag is raised.
        0 => vec![vec![created], vec![voided], vec![paid]],
        1 => vec![vec![voided], vec![created], vec![paid], vec![paid_too]],
        // Two events report one payment, one after the other and at once.
        2 => vec![vec![created], vec![paid], vec![paid_too]],
        3 => vec![vec![created, paid, paid_too]],
        // One event, eight times at once.
        4 => vec![vec![created], vec![paid; AT_ONCE]],
        // A forgery takes the id of a genuine event before that comes.
        5 => vec![vec![forged(Forgery::WrongSecret)], vec![created], vec![paid]],
        6 => vec![vec![created], vec![forged(Forgery::Altered)], vec![paid]],
        7 => vec![vec![created, paid.clone(), forged(Forgery::Altered)], vec![paid]],
        // A type that nobody handles.
        8 | 9 => vec![vec![unknown], vec![created], vec![paid]],
        // Paid comes before created.
        10..15 => vec![vec![paid], vec![created]],
        _ => vec![vec![created], vec![paid]],
    };
    if n.is_multiple_of(3) {
        // The answer got lost on the way: all of it comes again.
        let again: Step = steps.iter().flatten().cloned().collect();
        steps.push(again);
    }
    steps
}

/// What must be found in the end.
#[derive(Debug, Default)]
pub(super) struct Expected {
    pub(super) processed: u64,
    pub(super) duplicate: u64,
    pub(super) ignored: u64,
    pub(super) refused: u64,
    pub(super) flags: u64,
    /// Amount booked for each invoice.
    pub(super) booked: BTreeMap<String, i64>,
    /// The status of each invoice.
    pub(super) status: BTreeMap<String, &'static str>,
    seen: BTreeSet<String>,
}

impl Expected {
    fn take(&mut self, Delivery { event, forgery }: &Delivery) {
        if *forgery != Forgery::None {
            self.refused += 1;
            return;
        }
        if !self.seen.insert(event.id.clone()) {
            self.duplicate += 1;
            return;
        }
        let status = self.status.get(&event.invoice).copied();
        let invoice = event.invoice.clone();
        match (event.kind, status) {
            ("invoice.paid", Some("void")) => self.flags += 1,
            ("invoice.paid", _) => {
                self.booked.entry(invoice.clone()).or_insert(event.amount);
                self.status.insert(invoice, "paid");
            }
            ("invoice.voided", _) => {
                self.status.insert(invoice, "void");
            }
            ("invoice.created", _) => {
                self.status.entry(invoice).or_insert("draft");
            }
            _ => {
                self.ignored += 1;
                return;
            }
        }
        self.processed += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_counts_every_delivery_once_and_books_no_void_invoice() {
        let script = Script::new();
        let expected = script.expected();
        let counted = expected.processed + expected.duplicate + expected.ignored + expected.refused;
        assert_eq!(counted, script.len() as u64);
        assert_eq!(expected.flags, INVOICES / 20 * 3);
        assert_eq!(expected.booked.len() as u64, INVOICES - INVOICES / 10);
        assert!(expected.booked.keys().all(|invoice| expected.status[invoice] == "paid"));
    }
}
