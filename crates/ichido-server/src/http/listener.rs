//! Accepts connections within the limits, and ends without dropping what is in flight.
//!
//! It must never stop accepting for good because one `accept` failed.

use std::{future::Future, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use hyper_util::server::graceful::GracefulShutdown;
use tokio::{
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, timeout},
};
use tracing::warn;

use super::{App, Face, connection, places::Places};
use crate::metrics::Ended;

/// First pause after `accept` failed, for want of file descriptors for example. Doubles.
const PAUSE: Duration = Duration::from_millis(50);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// After the shutdown deadline, the time for the last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// A line that a flood could cause is not written more often.
const TELL_AGAIN: Duration = Duration::from_secs(30);

/// Accepts on `listener` until `stop` is done, then gives what is in flight `deadline` to finish.
pub(crate) async fn serve(
    listener: TcpListener,
    app: Arc<App>,
    face: Face,
    stop: impl Future<Output = ()>,
    deadline: Duration,
) {
    let places = Places::new(&app.limits);
    let connections = GracefulShutdown::new();
    let mut crowded = Told::default();
    let mut stop = pin!(stop);
    loop {
        let accepting = async {
            let (stream, address) = accept(&listener, &app).await;
            let place = places.take(address.ip(), || crowded.tell(&app)).await;
            (stream, place)
        };
        let (stream, place) = tokio::select! {
            () = &mut stop => break,
            accepted = accepting => accepted,
        };
        match place {
            Ok(place) => {
                let watcher = connections.watcher();
                tokio::spawn(connection::run(stream, place, watcher, app.clone(), face.clone()));
            }
            Err(_full) => app.metrics.edge.ended(Ended::PeerFull),
        }
    }
    drop(listener);
    let open = connections.count();
    let mut done = pin!(connections.shutdown());
    if timeout(deadline, &mut done).await.is_err() {
        warn!(open, "requests were still in flight at the shutdown deadline; they get a 503");
        app.cut_short();
        // Who does not take even that answer gets none.
        let _ = timeout(LAST_ANSWERS, done).await;
    }
}

/// The next connection, however long it takes and whatever fails meanwhile.
async fn accept(listener: &TcpListener, app: &App) -> (TcpStream, SocketAddr) {
    let mut pause = PAUSE;
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                // Without it answers come late, and no more: not worth a connection.
                let _ = stream.set_nodelay(true);
                return (stream, address);
            }
            // The peer's own end; the next one is not to wait for it.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                app.metrics.edge.accept_failed.inc();
                warn!(%error, "cannot accept a connection");
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

/// When it was last said that all places are taken.
#[derive(Default)]
struct Told(Option<Instant>);

impl Told {
    fn tell(&mut self, app: &App) {
        if self.0.is_none_or(|at| at.elapsed() > TELL_AGAIN) {
            self.0 = Some(Instant::now());
            let connections_max = app.limits.connections_max;
            warn!(
                connections_max,
                "all connections are taken: those that wait longest for their client give way; if \
                 the clients are honest, raise limits.connections_max"
            );
        }
    }
}
