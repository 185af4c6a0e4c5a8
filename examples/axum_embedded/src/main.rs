//! The billing example inside an axum application: handlers in Rust, the inbox in one SQLite file.
//!
//! A handler must never call anything outside the database: what has to leave goes through
//! `tx.outbox`.
#![forbid(unsafe_code)]

use axum::Router;
use ichido::{
    BoxError, Endpoint, Event, Inbox, Store,
    sqlite::{Config, Sqlite, Tx},
};
use serde::Deserialize;
use serde_json::json;

/// The same tables as in the SQL example.
const SCHEMA: &str = include_str!("../../billing/sqlite/schema.sql");

#[derive(Deserialize)]
struct Payload {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    object: Invoice,
}

#[derive(Deserialize)]
struct Invoice {
    id: String,
    customer: Option<String>,
    status: Option<String>,
    #[serde(default)]
    amount_paid: i64,
}

fn invoice(event: &Event) -> Result<Invoice, serde_json::Error> {
    Ok(event.json::<Payload>()?.data.object)
}

/// Only inserts: `invoice.paid` may have come first.
fn created(tx: &mut Tx<'_>, event: &Event) -> Result<(), BoxError> {
    let invoice = invoice(event)?;
    let status = invoice.status.as_deref().unwrap_or("draft");
    tx.execute(
        "INSERT INTO invoices (id, customer_id, status) VALUES (?1, ?2, ?3)
         ON CONFLICT (id) DO NOTHING",
        (&invoice.id, &invoice.customer, status),
    )?;
    Ok(())
}

/// Books a payment once, however many events report it; never for a void invoice.
fn paid(tx: &mut Tx<'_>, event: &Event) -> Result<(), BoxError> {
    let Invoice { id, customer, amount_paid, .. } = invoice(event)?;
    let paid_at = event.occurred_at.map(|at| at.to_string());
    tx.execute(
        "INSERT INTO invoices AS i (id, customer_id, status, amount_paid, paid_at)
         VALUES (?1, ?2, 'paid', ?3, ?4)
         ON CONFLICT (id) DO UPDATE SET status = 'paid', amount_paid = excluded.amount_paid,
           paid_at = excluded.paid_at, updated_at = excluded.updated_at
         WHERE i.status NOT IN ('paid', 'void')",
        (&id, &customer, amount_paid, paid_at),
    )?;
    if status(tx, &id)? == "void" {
        tx.flag(event, &format!("payment for the void invoice {id}"))?;
        return Ok(());
    }
    let booked = tx.execute(
        "INSERT INTO ledger_entries (invoice_id, kind, amount) VALUES (?1, 'payment', ?2)
         ON CONFLICT (invoice_id, kind) DO NOTHING",
        (&id, amount_paid),
    )?;
    if booked == 1 {
        let payload = json!({ "invoice_id": id, "amount": amount_paid });
        tx.outbox("Invoice", &id, "InvoicePaymentBooked", &payload)?;
    }
    Ok(())
}

/// Ends an invoice. One that was paid stays paid, and a human is told.
fn voided(tx: &mut Tx<'_>, event: &Event) -> Result<(), BoxError> {
    let Invoice { id, customer, .. } = invoice(event)?;
    tx.execute(
        "INSERT INTO invoices AS i (id, customer_id, status) VALUES (?1, ?2, 'void')
         ON CONFLICT (id) DO UPDATE SET status = 'void', updated_at = excluded.updated_at
         WHERE i.status <> 'paid'",
        (&id, &customer),
    )?;
    if status(tx, &id)? == "paid" {
        tx.flag(event, &format!("void for the paid invoice {id}"))?;
    }
    Ok(())
}

fn status(tx: &Tx<'_>, id: &str) -> Result<String, BoxError> {
    Ok(tx.query_row("SELECT status FROM invoices WHERE id = ?1", [id], |row| row.get(0))?)
}

/// The inbox with its one endpoint.
async fn inbox(file: &str, secret: String) -> anyhow::Result<Inbox<Sqlite>> {
    let store = Sqlite::open(Config::new(file))?;
    store.apply(SCHEMA).await?;
    let billing = Endpoint::<Sqlite>::new("billing", "stripe")
        .secret(secret)
        .on("invoice.created", created)
        .on("invoice.paid", paid)
        .on("invoice.voided", voided);
    Ok(Inbox::new(store, [billing])?)
}

/// Your application's routes, with `/webhooks/{endpoint}` among them.
fn app(inbox: Inbox<Sqlite>) -> Router {
    let own = Router::new().route("/", axum::routing::get(|| async { "billing" }));
    own.merge(ichido::axum::webhooks(inbox))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let inbox = inbox("billing.db", std::env::var("STRIPE_WEBHOOK_SECRET")?).await?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 8080)).await?;
    let stop = async {
        // A failure to listen for Ctrl-C is no reason to go on without it.
        let _ = tokio::signal::ctrl_c().await;
    };
    axum::serve(listener, app(inbox.clone())).with_graceful_shutdown(stop).await?;
    inbox.store().close().await;
    Ok(())
}

#[cfg(test)]
mod tests;
