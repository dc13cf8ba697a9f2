//! How much of what is limited is used.

use crate::{collection::Collection, queue::Queue};

/// How much of what is limited is used at the moment, for those who watch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// Ends of objects that are remembered.
    pub tombstones: usize,
    /// Filters that somebody is subscribed with.
    pub filters: usize,
    /// Objects in the views of filters that nobody is subscribed with.
    pub idle_filters: usize,
    /// Writes that wait for the disk.
    pub unsettled: usize,
    /// Bytes of them.
    pub unsettled_bytes: usize,
    /// Feeds that somebody reads: different subscriptions, of which each is encoded once.
    pub feeds: usize,
    /// Bytes that large groups under way hold on to.
    pub group_bytes: usize,
    /// Leases that have ended without being given back, since the collection was opened.
    pub leases_expired: u64,
}

// === impl Collection ===

impl Collection {
    /// How much of what is limited is used. Takes the writer's lock for a moment.
    pub fn usage(&self) -> Usage {
        let (feeds, group_bytes) = self.feeds().usage();
        let writer = self.core().lock();
        let (unsettled, unsettled_bytes) = writer.queue.as_ref().map_or((0, 0), Queue::unsettled);
        Usage {
            tombstones: writer.tombstones(),
            filters: writer.filters.len() - writer.idle_filters(),
            idle_filters: writer.idle_objects(),
            unsettled,
            unsettled_bytes,
            feeds,
            group_bytes,
            leases_expired: writer.leases.expired(),
        }
    }
}

#[cfg(test)]
mod tests;
