//! Metrics of what happens before a request has an endpoint: connections and TLS.
//!
//! It must never take a label from a client.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// Why we ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Ended {
    /// No TLS handshake in time.
    HandshakeTimeout,
    /// No TLS, or none that both sides can.
    HandshakeFailed,
    /// A head did not come whole in time.
    HeaderTimeout,
    /// No further request came.
    IdleTimeout,
    /// The client did not take its answer.
    WriteTimeout,
    /// It waited longest when another needed its place.
    Crowded,
    /// Its peer had as many as one may have.
    PeerFull,
    /// It did not speak HTTP/1.1.
    Malformed,
    /// It went on sending after its last answer.
    Lingered,
}

impl Ended {
    const ALL: [Self; 9] = [
        Self::HandshakeTimeout,
        Self::HandshakeFailed,
        Self::HeaderTimeout,
        Self::IdleTimeout,
        Self::WriteTimeout,
        Self::Crowded,
        Self::PeerFull,
        Self::Malformed,
        Self::Lingered,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::HandshakeTimeout => "handshake_timeout",
            Self::HandshakeFailed => "handshake_failed",
            Self::HeaderTimeout => "header_timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::WriteTimeout => "write_timeout",
            Self::Crowded => "crowded",
            Self::PeerFull => "peer_full",
            Self::Malformed => "malformed",
            Self::Lingered => "lingered",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByEnd {
    reason: &'static str,
}

/// Counters of connections and requests, whatever they are for.
#[derive(Debug)]
pub(crate) struct Edge {
    /// Requests that are being answered.
    pub(crate) in_flight: Gauge,
    /// Open connections, all listeners.
    pub(crate) connections: Gauge,
    /// Failures of `accept`.
    pub(crate) accept_failed: Counter,
    ended: Family<ByEnd, Counter>,
    tls_stale: Gauge,
}

impl Edge {
    /// Registers all of them.
    pub(super) fn new(registry: &mut Registry) -> Self {
        let edge = Self {
            in_flight: Gauge::default(),
            connections: Gauge::default(),
            accept_failed: Counter::default(),
            ended: Family::default(),
            tls_stale: Gauge::default(),
        };
        for why in Ended::ALL {
            drop(edge.ended.get_or_create(&ByEnd { reason: why.as_str() }));
        }
        let in_flight = edge.in_flight.clone();
        registry.register("http_in_flight", "Requests being answered", in_flight);
        registry.register("http_connections", "Open connections", edge.connections.clone());
        registry.register(
            "http_connections_ended",
            "Connections that we ended, by reason",
            edge.ended.clone(),
        );
        registry.register("http_accept_failed", "Failures of accept", edge.accept_failed.clone());
        registry.register(
            "tls_stale",
            "1 when the files hold no usable certificate",
            edge.tls_stale.clone(),
        );
        edge
    }

    /// Counts a connection that we ended.
    pub(crate) fn ended(&self, why: Ended) {
        self.ended.get_or_create(&ByEnd { reason: why.as_str() }).inc();
    }

    /// Remembers whether the certificate could be renewed.
    pub(crate) fn tls_renewed(&self, renewed: bool) {
        self.tls_stale.set(i64::from(!renewed));
    }
}
