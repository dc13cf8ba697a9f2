//! When a watermark advanced, for the latest few times.

use nimbus_core::Revision;
use tokio::time::Instant;

/// The latest advances of one watermark: enough to say when it passed a recent revision, whatever the number of objects.
#[derive(Debug, Clone)]
pub(crate) struct Advances {
    /// Up to here nothing is known.
    floor: Revision,
    /// The oldest first.
    latest: [Option<(Revision, Instant)>; KEPT],
}

/// An agent that reports ten times a second is known to the second, nearly; 200 bytes per agent and watermark.
const KEPT: usize = 8;

// === impl Advances ===

impl Advances {
    /// Nothing is known up to `floor`.
    pub(crate) fn new(floor: Revision) -> Self {
        Self { floor, latest: [None; KEPT] }
    }

    /// The watermark is at `to` now.
    pub(crate) fn advance(&mut self, to: Revision, now: Instant) {
        // It has gone back: it will pass these again.
        for slot in &mut self.latest {
            slot.take_if(|(revision, _)| *revision > to);
        }
        let newest = self.latest.iter().flatten().next_back().map_or(self.floor, |(revision, _)| *revision);
        if to <= newest {
            return;
        }
        let at = self.latest.iter().position(Option::is_none).unwrap_or_else(|| {
            self.floor = self.latest[0].map_or(self.floor, |(revision, _)| revision);
            self.latest.rotate_left(1);
            KEPT - 1
        });
        self.latest[at] = Some((to, now));
    }

    /// When the watermark passed `revision`, if it did and that is still known.
    pub(crate) fn passed(&self, revision: Revision) -> Option<Instant> {
        if revision <= self.floor {
            return None;
        }
        self.latest.iter().flatten().find(|(to, _)| *to >= revision).map(|(_, at)| *at)
    }
}
