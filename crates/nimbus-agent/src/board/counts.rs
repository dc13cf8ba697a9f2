//! How many objects are how.

/// How many objects are how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Should be here.
    pub(crate) desired: usize,
    /// Are here, in whatever version.
    pub(crate) applied: usize,
    /// Are not as they should be.
    pub(crate) unfinished: usize,
    /// A handler is running for them.
    pub(crate) running: usize,
    /// Could begin if there were room.
    pub(crate) ready: usize,
    /// Wait for other objects.
    pub(crate) waiting: usize,
    /// The last attempt failed, or none can be made.
    pub(crate) failed: usize,
    /// Of those, the handler panicked.
    pub(crate) quarantined: usize,
    /// Are as they should be, and yet worth a look.
    pub(crate) degraded: usize,
}

/// What one node adds to the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Share {
    pub(crate) desired: bool,
    pub(crate) applied: bool,
    pub(crate) unfinished: bool,
    pub(crate) running: bool,
    pub(crate) ready: bool,
    pub(crate) waiting: bool,
    pub(crate) failed: bool,
    pub(crate) quarantined: bool,
    pub(crate) degraded: bool,
}

// === impl Counts ===

impl Counts {
    /// Takes the share of a node that has changed.
    pub(crate) fn replace(&mut self, old: Share, new: Share) {
        let Self { desired, applied, unfinished, running, ready, waiting, failed, quarantined, degraded } = self;
        for (count, old, new) in [
            (desired, old.desired, new.desired),
            (applied, old.applied, new.applied),
            (unfinished, old.unfinished, new.unfinished),
            (running, old.running, new.running),
            (ready, old.ready, new.ready),
            (waiting, old.waiting, new.waiting),
            (failed, old.failed, new.failed),
            (quarantined, old.quarantined, new.quarantined),
            (degraded, old.degraded, new.degraded),
        ] {
            *count += usize::from(new);
            *count -= usize::from(old);
        }
    }
}
