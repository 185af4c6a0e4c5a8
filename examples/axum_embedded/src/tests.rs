//! Signed events through the router, as axum would hand them over.

use axum::{
    body::{Body, to_bytes},
    http::{Request, StatusCode},
};
use ichido::verify::{self, Timestamp};
use serde_json::json;
use tower::ServiceExt;

use super::*;

const SECRET: &str = "whsec_geheim_geheim";

/// The application on a file of its own.
struct World {
    inbox: Inbox<Sqlite>,
    folder: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("billing.db");
        let inbox = inbox(file.to_str().expect("UTF-8"), SECRET.into()).await.expect("opens");
        Self { inbox, folder }
    }

    fn request(&self, event_type: &str, id: &str, invoice: &str) -> verify::Request {
        let object = json!({ "id": invoice, "customer": "cus_1", "amount_paid": 1200 });
        let body = json!({ "id": id, "type": event_type, "data": { "object": object } });
        let mut request = verify::Request {
            method: "POST".into(),
            body: body.to_string().into(),
            ..verify::Request::default()
        };
        let verifier = self.inbox.verifier("billing").expect("configured");
        verifier.sign(&mut request, id, event_type, Timestamp::now()).expect("signed");
        request
    }

    async fn post(&self, request: verify::Request) -> (StatusCode, String) {
        let mut builder = Request::post("/webhooks/billing");
        for (name, value) in request.headers.iter() {
            builder = builder.header(name, value);
        }
        let request = builder.body(Body::from(request.body)).expect("a request");
        let answer = app(self.inbox.clone()).oneshot(request).await.expect("infallible");
        let status = answer.status();
        let body = to_bytes(answer.into_body(), 1_000).await.expect("whole");
        (status, String::from_utf8(body.to_vec()).expect("UTF-8"))
    }

    async fn take(&self, event_type: &str, id: &str, invoice: &str) -> String {
        let (status, body) = self.post(self.request(event_type, id, invoice)).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        body
    }

    fn count(&self, what: &str) -> i64 {
        let file = self.folder.path().join("billing.db");
        let database = rusqlite::Connection::open(file).expect("opens");
        let sql = format!("SELECT count(*) FROM {what}");
        database.query_row(&sql, [], |row| row.get(0)).expect("counts")
    }
}

#[tokio::test]
async fn a_signed_event_is_processed_once_and_its_repeat_is_a_duplicate() {
    let world = World::new().await;
    let first = world.take("invoice.paid", "evt_1", "in_1").await;
    let second = world.take("invoice.paid", "evt_1", "in_1").await;
    assert_eq!([&*first, &*second], [r#"{"outcome":"processed"}"#, r#"{"outcome":"duplicate"}"#]);
    assert_eq!((world.count("ledger_entries"), world.count("outbox")), (1, 1));
}

#[tokio::test]
async fn two_events_that_report_one_payment_book_it_once_even_before_created() {
    let world = World::new().await;
    for (event_type, id) in
        [("invoice.paid", "evt_1"), ("invoice.paid", "evt_2"), ("invoice.created", "evt_3")]
    {
        world.take(event_type, id, "in_1").await;
    }
    assert_eq!((world.count("ledger_entries"), world.count("outbox")), (1, 1));
    assert_eq!(world.count("invoices WHERE status = 'paid'"), 1);
}

#[tokio::test]
async fn a_payment_for_a_void_invoice_books_nothing_and_raises_a_flag() {
    let world = World::new().await;
    world.take("invoice.voided", "evt_1", "in_1").await;
    world.take("invoice.paid", "evt_2", "in_1").await;
    assert_eq!((world.count("ledger_entries"), world.count("outbox")), (0, 0));
    assert_eq!(world.count("ichido_flag WHERE event_id = 'evt_2'"), 1);
}

#[tokio::test]
async fn a_body_that_was_changed_is_refused_and_leaves_nothing() {
    let world = World::new().await;
    let mut request = world.request("invoice.paid", "evt_1", "in_1");
    let body = String::from_utf8(request.body.to_vec()).expect("UTF-8");
    request.body = body.replace("1200", "9200").into();
    let (status, body) = world.post(request).await;
    assert_eq!((status, &*body), (StatusCode::BAD_REQUEST, r#"{"error":"rejected"}"#));
    assert_eq!(world.count("webhook_inbox"), 0);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_as_too_large() {
    let world = World::new().await;
    let mut request = world.request("invoice.paid", "evt_1", "in_1");
    request.body = vec![b' '; ichido::axum::BODY_BYTES_MAX + 1].into();
    let (status, _) = world.post(request).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}
