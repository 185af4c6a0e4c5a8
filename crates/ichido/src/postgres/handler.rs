//! What runs for an event on PostgreSQL: an async function, an object with state, or SQL.
//!
//! A handler must never end the transaction it is given; the guard at COMMIT catches it.

use std::{future::Future, marker::PhantomData, pin::Pin, sync::Arc};

use futures_util::future::join_all;
use tokio_postgres::types::{ToSql, Type};

use super::{
    Postgres, Tx,
    batch::system_time,
    prepared::{Prepared, Sql},
};
use crate::{BoxError, Endpoint, Event, Param, SqlHandler, Statement, Target};

/// The future of a running handler.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send + 'a>>;

/// A handler with state. `async fn handle` is fine in the impl.
pub trait Handle: Send + Sync + 'static {
    /// Applies the event. All writes go through `tx`; calls to the outside go to the outbox.
    fn handle(
        &self,
        tx: &mut Tx,
        event: &Event,
    ) -> impl Future<Output = Result<(), BoxError>> + Send;
}

/// What [`Endpoint::on`] takes; `M` only tells functions and objects apart.
#[diagnostic::on_unimplemented(
    message = "not a handler: want `async fn(&mut Tx, &Event) -> Result<(), E>` or `impl Handle`",
    note = "an async closure that captures is no `Fn`: give its state to a struct with `Handle`"
)]
pub trait IntoHandler<'a, M>: Send + Sync + 'static {
    /// Starts the handler.
    fn start(&'a self, tx: &'a mut Tx, event: &'a Event) -> Running<'a>;
}

/// Marks an async function.
#[derive(Debug)]
pub struct Function<E>(PhantomData<E>);

/// Marks an object.
#[derive(Debug)]
pub struct Object;

impl<'a, F, Fut, E> IntoHandler<'a, Function<E>> for F
where
    F: Fn(&'a mut Tx, &'a Event) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send + 'a,
    E: Into<BoxError> + 'static,
{
    fn start(&'a self, tx: &'a mut Tx, event: &'a Event) -> Running<'a> {
        let running = self(tx, event);
        Box::pin(async move { running.await.map_err(Into::into) })
    }
}

impl<'a, H: Handle> IntoHandler<'a, Object> for H {
    fn start(&'a self, tx: &'a mut Tx, event: &'a Event) -> Running<'a> {
        Box::pin(self.handle(tx, event))
    }
}

/// A handler whose type is forgotten.
pub trait Run: Send + Sync {
    /// Starts the handler.
    fn run<'a>(&'a self, tx: &'a mut Tx, event: &'a Event) -> Running<'a>;

    /// Its statements, where it is a file of SQL: they travel together with the guard.
    fn sql(&self) -> Option<&SqlHandler> {
        None
    }
}

struct Erased<H, M>(H, PhantomData<fn() -> M>);

impl<H: for<'a> IntoHandler<'a, M>, M> Run for Erased<H, M> {
    fn run<'a>(&'a self, tx: &'a mut Tx, event: &'a Event) -> Running<'a> {
        self.0.start(tx, event)
    }
}

impl Run for SqlHandler {
    fn run<'a>(&'a self, tx: &'a mut Tx, event: &'a Event) -> Running<'a> {
        Box::pin(async move { run_sql(self, tx, event).await.map_err(Into::into) })
    }

    fn sql(&self) -> Option<&SqlHandler> {
        Some(self)
    }
}

impl Endpoint<Postgres> {
    /// Adds the handler for `pattern`: a type, a prefix that ends in `.*`, or `*` for the rest.
    pub fn on<M: 'static>(self, pattern: &str, handler: impl for<'a> IntoHandler<'a, M>) -> Self {
        self.target(pattern, Target::Handler(Arc::new(Erased(handler, PhantomData))))
    }

    /// Adds a file of SQL as the handler for `pattern`.
    pub fn on_sql(self, pattern: &str, handler: SqlHandler) -> Self {
        let handler = Arc::new(handler);
        self.sql_target(pattern, &handler, Target::Handler(handler.clone()))
    }
}

/// Sends all statements at once and waits for all: one round trip, however many there are.
pub(super) async fn run_sql(
    handler: &SqlHandler,
    tx: &Tx,
    event: &Event,
) -> Result<(), tokio_postgres::Error> {
    let values = Values::new(event);
    let all: Vec<_> = handler.statements.iter().map(|s| (s, Sql::Text(&s.text))).collect();
    let running = all.iter().map(|(statement, sql)| values.run(tx, statement, sql));
    first_error(join_all(running).await)
}

/// The error that began it: those after it only say that the transaction is aborted.
pub(super) fn first_error(
    results: Vec<Result<(), tokio_postgres::Error>>,
) -> Result<(), tokio_postgres::Error> {
    results.into_iter().find(Result::is_err).unwrap_or(Ok(()))
}

/// The parameters of an event, in the forms that the driver takes.
pub(super) struct Values<'e> {
    event: &'e Event,
    payload: RawJson<'e>,
    body: &'e [u8],
    endpoint: &'e str,
    provider: &'e str,
    occurred_at: Option<std::time::SystemTime>,
}

impl<'e> Values<'e> {
    pub(super) fn new(event: &'e Event) -> Self {
        Self {
            event,
            payload: RawJson(&event.body),
            body: &event.body,
            endpoint: &event.endpoint,
            provider: &event.provider,
            occurred_at: event.occurred_at.map(system_time),
        }
    }

    fn get(&self, param: Param) -> (&(dyn ToSql + Sync), Type) {
        let value: &(dyn ToSql + Sync) = match param {
            Param::Payload => &self.payload,
            Param::Body => &self.body,
            Param::EventId => &self.event.id,
            Param::EventType => &self.event.event_type,
            Param::Endpoint => &self.endpoint,
            Param::Provider => &self.provider,
            Param::OccurredAt => &self.occurred_at,
        };
        (value, type_of(param))
    }

    pub(super) async fn run(
        &self,
        tx: &Tx,
        statement: &Statement,
        sql: &Sql<'_>,
    ) -> Result<(), tokio_postgres::Error> {
        let params: Vec<_> = statement.params.iter().map(|param| self.get(*param)).collect();
        sql.execute(tx, &params).await.map(drop)
    }
}

/// The statements of a handler as they may travel on this connection. One that cannot be prepared
/// travels as text: its error belongs to the event.
pub(super) async fn prepare<'h>(
    prepared: &Prepared,
    connection: &deadpool_postgres::Object,
    handler: &'h SqlHandler,
) -> Vec<Sql<'h>> {
    let mut all = Vec::with_capacity(handler.statements.len());
    for statement in &handler.statements {
        let types: Vec<_> = statement.params.iter().map(|param| type_of(*param)).collect();
        let sql = prepared.sql(connection, &statement.text, &types).await;
        all.push(sql.unwrap_or(Sql::Text(&statement.text)));
    }
    all
}

pub(super) fn type_of(param: Param) -> Type {
    match param {
        Param::Payload => Type::JSONB,
        Param::Body => Type::BYTEA,
        Param::OccurredAt => Type::TIMESTAMPTZ,
        Param::EventId | Param::EventType | Param::Endpoint | Param::Provider => Type::TEXT,
    }
}

/// The body as `jsonb`, unparsed by us: the server judges it, and a refusal is an ordinary
/// failure of the handler.
#[derive(Debug)]
struct RawJson<'e>(&'e [u8]);

impl ToSql for RawJson<'_> {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut bytes::BytesMut,
    ) -> Result<tokio_postgres::types::IsNull, BoxError> {
        const JSONB_VERSION: u8 = 1;
        out.extend_from_slice(&[JSONB_VERSION]);
        out.extend_from_slice(self.0);
        Ok(tokio_postgres::types::IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSONB
    }

    tokio_postgres::types::to_sql_checked!();
}
