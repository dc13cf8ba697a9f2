//! How a line is.

use std::{num::NonZeroU64, time::Duration};

/// What happens to bytes on their way; with the default, nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// They take so long.
    pub delay: Duration,
    /// And up to so much longer, each piece another time. Nothing overtakes anything, as on every TCP connection.
    pub jitter: Duration,
    /// So many per second, in each direction of each connection.
    pub rate: Option<NonZeroU64>,
    /// Bytes in this direction vanish. A connection that has lost some is half open in that direction from then on, whatever
    /// the line is like later: nothing more arrives, not even its end.
    pub loses: Option<Toward>,
    /// Nothing arrives, and nothing is lost: all of it arrives at once when this is over.
    pub holds: bool,
    /// Each connection breaks when so many bytes have arrived at the client: in the middle of whatever that is.
    pub cut_after: Option<u64>,
    /// Each connection breaks at a random moment, on average after this long.
    pub cut_every: Option<Duration>,
    /// How connections break by themselves.
    pub cut_by: Cut,
    /// New connections are reset at once.
    pub refuses: bool,
}

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toward {
    /// What clients say.
    Server,
    /// What the server says.
    Client,
    /// Both.
    Both,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cut {
    /// With a reset, as by a firewall or a machine that was restarted. What is on its way is gone.
    #[default]
    Reset,
    /// With an orderly end of what was sent so far, as by a load balancer.
    Close,
}

// === impl Toward ===

impl Toward {
    /// Whether this includes that one direction.
    pub(crate) fn includes(self, one: Self) -> bool {
        self == Self::Both || self == one
    }
}
