//! A TCP proxy in front of PostgreSQL that sees COMMIT go by and can cut the line there.
//!
//! It reads the frontend's messages just far enough to find a simple query or a parse that
//! holds COMMIT; it never changes a byte.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    task::JoinHandle,
};

/// What the proxy does to connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Cuts the line instead of forwarding COMMIT: it never reached the server.
    CutBeforeCommit,
    /// Forwards COMMIT, withholds the answer and cuts: it landed, and nobody is told.
    CutAfterCommit,
    /// Refuses new connections and cuts those that speak: the server is away.
    Down,
}

impl Fault {
    fn from(number: u8) -> Self {
        match number {
            1 => Self::CutBeforeCommit,
            2 => Self::CutAfterCommit,
            3 => Self::Down,
            _ => Self::None,
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    fault: AtomicU8,
    cut: AtomicU64,
    /// Bytes of all messages that clients sent.
    sent: AtomicU64,
}

/// A proxy on a free port of 127.0.0.1.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Listens, in front of the server on `server_port`.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(server_port: u16) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared::default());
        let ours = shared.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, server_port, ours.clone()));
            }
        });
        Ok(Self { port, shared, accepting })
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Changes what happens from now on.
    pub fn set(&self, fault: Fault) {
        self.shared.fault.store(fault as u8, Ordering::SeqCst);
    }

    /// How many bytes clients have sent to the server so far. As long as it does not change,
    /// nobody has connected, nor sent a statement.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::SeqCst)
    }

    /// How many commits were cut.
    pub fn cut(&self) -> u64 {
        self.shared.cut.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn fault(&self) -> Fault {
        Fault::from(self.fault.load(Ordering::SeqCst))
    }
}

async fn carry(client: TcpStream, server_port: u16, shared: Arc<Shared>) {
    if shared.fault() == Fault::Down {
        return;
    }
    let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)).await else { return };
    drop((client.set_nodelay(true), server.set_nodelay(true)));
    let (client_in, mut client_out) = client.into_split();
    let (mut server_in, mut server_out) = server.into_split();
    let up = forward(client_in, &mut server_out, &shared);
    let down = tokio::io::copy(&mut server_in, &mut client_out);
    // When `up` ends first, nothing that the server answers goes down any more.
    let withheld = tokio::select! {
        end = up => end.is_some(),
        _ = down => false,
    };
    if withheld {
        tokio::time::sleep(COMMIT_TIME).await;
    }
}

/// COMMIT was forwarded; its answer must not be.
struct Withheld;

/// How long a withheld answer gives the server to finish its commit.
const COMMIT_TIME: Duration = Duration::from_millis(300);

/// Forwards messages until the line is cut.
async fn forward(
    mut from: OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    shared: &Shared,
) -> Option<Withheld> {
    let startup = message(&mut from, 0, shared).await?;
    to.write_all(&startup).await.ok()?;
    loop {
        let message = message(&mut from, 1, shared).await?;
        let fault = shared.fault();
        if fault == Fault::Down {
            return None;
        }
        if fault != Fault::None && commits(&message) {
            shared.cut.fetch_add(1, Ordering::SeqCst);
            if fault == Fault::CutAfterCommit {
                to.write_all(&message).await.ok()?;
                return Some(Withheld);
            }
            return None;
        }
        to.write_all(&message).await.ok()?;
    }
}

/// One message, counted: `tag` bytes of type, then its length, which counts itself.
async fn message(from: &mut OwnedReadHalf, tag: usize, shared: &Shared) -> Option<Vec<u8>> {
    let mut head = vec![0; tag + 4];
    from.read_exact(&mut head).await.ok()?;
    let length = u32::from_be_bytes(head[tag..].try_into().ok()?);
    let start = head.len();
    head.resize(start + usize::try_from(length).ok()?.checked_sub(4)?, 0);
    from.read_exact(&mut head[start..]).await.ok()?;
    shared.sent.fetch_add(head.len() as u64, Ordering::SeqCst);
    Some(head)
}

/// A simple query (`Q`) or a parse (`P`) that ends in COMMIT. `READ COMMITTED` does not.
fn commits(message: &[u8]) -> bool {
    matches!(message.first(), Some(b'Q' | b'P')) && message.windows(7).any(|w| w == b"COMMIT\0")
}
