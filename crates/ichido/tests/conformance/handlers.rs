//! Handlers in SQL before their first event: what they lack is told by a check of the store.

use ichido::{ErrorKind, OnFailure, Outcome, ReceiveError, Store};

use crate::engines::{BOOK, Engine, billing, deliver, event};

pub(crate) async fn a_handler_that_lacks_a_table_is_told_before_any_event_and_good_once_it_is_there<
    E: Engine,
>() {
    let handler = format!("{BOOK};\nINSERT INTO checked\nSELECT amount FROM ledger");
    let engine = E::open(vec![billing::<E>(&[("invoice.paid", &handler)])]).await;
    let refused = engine.inbox().store().check().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Schema);
    let told = refused.to_string();
    for part in ["endpoint `billing`", "handler `invoice.paid`", "invoice.paid:2: ", "checked"] {
        assert!(told.contains(part), "{told}");
    }
    engine.rows("CREATE TABLE checked (amount int)").await;
    engine.inbox().store().check().await.unwrap();
}

pub(crate) async fn every_statement_that_is_refused_is_told_with_file_and_line<E: Engine>() {
    let paid = format!("SELECT nothing FROM ledger;\n{BOOK};\n\nSELEC 1 FROM ledger");
    let handlers = [("a.b", "DELETE FROM nowhere"), ("c.d", &paid), ("e.f", BOOK)];
    let engine = E::open(vec![billing::<E>(&handlers)]).await;
    let told = engine.inbox().store().check().await.unwrap_err().to_string();
    for part in ["a.b:1: ", "nowhere", "c.d:1: ", "nothing"] {
        assert!(told.contains(part), "{told}");
    }
    assert!(!told.contains("e.f"), "{told}");
}

pub(crate) async fn a_handler_that_makes_its_own_table_is_good<E: Engine>() {
    let handler = "CREATE TEMPORARY TABLE own (id text); INSERT INTO own VALUES (:event_id)";
    let engine = E::open(vec![billing::<E>(&[("*", handler)])]).await;
    engine.inbox().store().check().await.unwrap();
}

pub(crate) async fn a_check_runs_no_handler<E: Engine>() {
    let handler = format!("{BOOK}; SELECT :payload, :body, :event_type, :provider, :occurred_at");
    let engine = E::open(vec![billing::<E>(&[("*", &handler)])]).await;
    engine.inbox().store().check().await.unwrap();
    assert!(engine.rows("SELECT 1 FROM ledger").await.is_empty());
}

pub(crate) async fn what_becomes_of_an_event_names_it_and_its_handler<E: Engine>() {
    let failing = "INSERT INTO ledger (event_id) SELECT 1 FROM nowhere";
    let engine = E::open(vec![billing::<E>(&[("invoice.*", failing)])]).await;
    let body = event("evt_1", "invoice.paid", 5, 1);
    for outcome in [Outcome::Accepted, Outcome::Duplicate] {
        let taken = deliver(&engine, "billing", &body).await.unwrap();
        assert_eq!(taken.outcome, outcome);
        assert_eq!((&*taken.event.id, &*taken.event.event_type), ("evt_1", "invoice.paid"));
        assert_eq!(taken.event.handler.as_deref(), Some("invoice.*"));
    }
    let refusing = billing::<E>(&[("invoice.*", failing)]).on_failure(OnFailure::Refuse);
    let engine = E::open(vec![refusing]).await;
    let Err(ReceiveError::Store(error)) = deliver(&engine, "billing", &body).await else {
        panic!("not refused");
    };
    assert_eq!(error.event().map(|event| &*event.id), Some("evt_1"));
}
