//! One connection, from its first byte to its last, within its times.
//!
//! It speaks HTTP/1.1 and nothing else: no upgrade, no tunnel, no HTTP/2.

use std::{convert::Infallible, pin::pin, sync::Arc};

use hyper::{body::Body, server::conn::http1, service::service_fn};
use hyper_util::{rt::TokioIo, server::graceful::Watcher};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::server::TlsStream;

use super::{App, Face, line::Line, places::Place, watched::Watched};
use crate::{metrics::Ended, tls::Tls};

/// Serves `stream` in its `place` until it ends.
pub(super) async fn run(
    stream: TcpStream,
    place: Place,
    watcher: Watcher,
    app: Arc<App>,
    face: Face,
) {
    let _open = Open::new(&app);
    let line = &place.line;
    let ended = match &face.tls {
        None => speak(stream, line, watcher, &app, &face).await,
        // Boxed, so that a connection without TLS does not pay for the larger future.
        Some(tls) => match Box::pin(shake_hands(stream, line, &app, tls)).await {
            Ok(stream) => Box::pin(speak(stream, line, watcher, &app, &face)).await,
            Err(why) => Some(why),
        },
    };
    if let Some(why) = ended {
        app.metrics.edge.ended(why);
    }
}

async fn shake_hands(
    stream: TcpStream,
    line: &Line,
    app: &App,
    tls: &Tls,
) -> Result<TlsStream<TcpStream>, Ended> {
    line.shaking_hands();
    tokio::select! {
        biased;
        shaken = tls.acceptor().accept(stream) => {
            line.ready();
            shaken.map_err(|_| Ended::HandshakeFailed)
        }
        why = line.overdue(&app.limits) => Err(why),
    }
}

/// Speaks HTTP until the client or the line has enough. Gives the reason when it was we who
/// ended it.
async fn speak<S>(
    stream: S,
    line: &Arc<Line>,
    watcher: Watcher,
    app: &App,
    face: &Face,
) -> Option<Ended>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
        line.asked(!request.body().is_end_stream());
        async move {
            let answer = app.answer(line, face, request).await;
            line.answered();
            Ok::<_, Infallible>(answer)
        }
    });
    // Times are the line's business, hence no timer here.
    let http = http1::Builder::new()
        .max_headers(app.limits.headers_max)
        // The buffer may hold more than it was told to: only the second limit is exact.
        .max_buf_size(app.limits.header_bytes_max)
        .max_header_size(app.limits.header_bytes_max)
        .serve_connection(TokioIo::new(Watched::new(stream, line.clone())), service);
    let mut http = pin!(watcher.watch(http));
    tokio::select! {
        biased;
        // Another error is the client's end of the connection.
        done = &mut http => done.err().filter(hyper::Error::is_parse).map(|_| Ended::Malformed),
        why = line.overdue(&app.limits) => Some(why),
    }
}

/// Counts a connection while it is open, also when its task is dropped.
struct Open<'a>(&'a App);

impl<'a> Open<'a> {
    fn new(app: &'a App) -> Self {
        app.metrics.edge.connections.inc();
        Self(app)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.metrics.edge.connections.dec();
    }
}
