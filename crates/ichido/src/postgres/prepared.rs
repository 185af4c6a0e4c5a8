//! Prepared statements, where a line leads to one backend and no other: parsed once a connection.
//!
//! It must never name a statement through a pooler that shares backends: there a name may be
//! unknown, or somebody else's. Such a pooler betrays itself, for it hands out a cancel key of its
//! own, without the number of the backend that answers.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use deadpool_postgres::ClientWrapper;
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex,
};
use tokio_postgres::{
    Client, Row, Statement,
    tls::{ChannelBinding, TlsConnect, TlsStream},
    types::{ToSql, Type},
};

use super::core::Params;

/// A cancel request: length, code, backend, key.
const CANCEL_BYTES: usize = 16;
/// The request for TLS that comes before it where TLS is demanded: length, code.
const TLS_BYTES: usize = 8;
const CANCEL_CODE: u32 = 80_877_102;

/// Whether statements of this pool may be prepared. Shared by its connections: one that leads
/// through a pooler speaks for all.
#[derive(Debug, Clone)]
pub(super) struct Prepared(Arc<AtomicBool>);

impl Prepared {
    /// Prepares on direct lines, or never.
    pub(super) fn new(allowed: bool) -> Self {
        Self(Arc::new(AtomicBool::new(allowed)))
    }

    /// Looks at a new connection before anybody uses it.
    pub(super) async fn look_at(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        if self.0.load(Ordering::Acquire) && !is_direct(client).await? {
            self.0.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// The statement as it may travel on this connection. Costs a round trip when it is new
    /// there.
    pub(super) async fn sql<'s>(
        &self,
        client: &ClientWrapper,
        sql: &'s str,
        types: &[Type],
    ) -> Result<Sql<'s>, tokio_postgres::Error> {
        if !self.0.load(Ordering::Acquire) {
            return Ok(Sql::Text(sql));
        }
        client.prepare_typed_cached(sql, types).await.map(Sql::Named)
    }
}

/// A statement in the form in which it travels.
pub(super) enum Sql<'s> {
    /// By name: the server has parsed it before.
    Named(Statement),
    /// As text, unnamed, which every pooler can carry.
    Text(&'s str),
}

impl Sql<'_> {
    /// Sends it when first polled, and waits for its rows.
    pub(super) async fn query(
        &self,
        client: &Client,
        params: &Params<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        match self {
            Self::Named(statement) => client.query(statement, &values(params)).await,
            Self::Text(sql) => client.query_typed(sql, params).await,
        }
    }

    /// Sends it when first polled, and waits for its end. Rows are not read: that could ask the
    /// server for their types.
    pub(super) async fn execute(
        &self,
        client: &Client,
        params: &Params<'_>,
    ) -> Result<u64, tokio_postgres::Error> {
        match self {
            Self::Named(statement) => client.execute(statement, &values(params)).await,
            Self::Text(sql) => client.execute_typed(sql, params).await,
        }
    }
}

fn values<'p>(params: &Params<'p>) -> Vec<&'p (dyn ToSql + Sync)> {
    params.iter().map(|(value, _)| *value).collect()
}

/// Whether the server has another idea of a prepared statement than we have: it was dropped, or
/// what it returns has changed. Its connection is of no use any more; another one is.
pub(super) fn is_stale(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|error| match error.code().code() {
        "26000" => true,
        "0A000" => error.message().starts_with("cached plan must not change"),
        _ => false,
    })
}

async fn is_direct(client: &Client) -> Result<bool, tokio_postgres::Error> {
    let rows = client.query_typed("SELECT pg_backend_pid()", &[]).await?;
    let answering: Option<i32> = rows.first().map(|row| row.get(0));
    let promised = backend(client).await;
    Ok(answering.is_some() && answering == promised)
}

/// The backend that the cancel key names. The driver keeps it to itself, but writes it down for
/// whoever would cancel: here into memory.
async fn backend(client: &Client) -> Option<i32> {
    let (ours, theirs) = duplex(64);
    let token = client.cancel_token();
    let (written, read) = tokio::join!(token.cancel_query_raw(theirs, Plain), read_backend(ours));
    written.ok().and(read)
}

async fn read_backend(mut line: DuplexStream) -> Option<i32> {
    let mut request = [0; CANCEL_BYTES];
    line.read_exact(&mut request[..TLS_BYTES]).await.ok()?;
    let code = |request: &[u8]| request[4..8].try_into().map(u32::from_be_bytes).ok();
    if code(&request)? != CANCEL_CODE {
        line.write_all(b"S").await.ok()?;
        line.read_exact(&mut request[..TLS_BYTES]).await.ok()?;
    }
    line.read_exact(&mut request[TLS_BYTES..]).await.ok()?;
    (code(&request)? == CANCEL_CODE)
        .then(|| request[8..12].try_into().map(i32::from_be_bytes).ok())
        .flatten()
}

/// Where TLS is demanded: none at all, for what it would carry never leaves this process.
struct Plain;

struct PlainStream(DuplexStream);

impl TlsConnect<DuplexStream> for Plain {
    type Stream = PlainStream;
    type Error = Infallible;
    type Future = Ready<Result<PlainStream, Infallible>>;

    fn connect(self, line: DuplexStream) -> Self::Future {
        ready(Ok(PlainStream(line)))
    }
}

impl TlsStream for PlainStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for PlainStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for PlainStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
