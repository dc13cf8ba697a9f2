//! What a server accepts of one connection, and how long it waits.

use std::time::Duration;

/// What a server accepts of one connection, and how long it waits.
#[derive(Debug, Clone)]
pub struct Config {
    /// Requests at the same time; more are refused, and may be tried again.
    pub streams: u32,
    /// Bytes of the headers of a request, counted as RFC 9113 does, with 32 for each field. Larger ones are answered with
    /// 431.
    pub header_bytes: usize,
    /// Bytes of one request that may come before anybody reads them.
    pub stream_window: u32,
    /// The same for all requests of the connection.
    pub connection_window: u32,
    /// The peer must have said hello within this time.
    pub handshake: Duration,
    /// A peer that was not heard for this long is asked whether it is there, and dropped if it takes as long to answer.
    pub keepalive: Duration,
    /// While stopping, requests that were under way when the peer was told are still taken for this long.
    pub grace: Duration,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            streams: 1_024,
            header_bytes: 16 << 10,
            stream_window: 1 << 20,
            connection_window: 1 << 20,
            handshake: Duration::from_secs(10),
            keepalive: Duration::from_secs(20),
            grace: Duration::from_secs(1),
        }
    }
}
