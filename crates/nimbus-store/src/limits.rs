//! What a collection accepts.

/// What a collection accepts; beyond it, writes are refused and nothing is lost.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Objects in all. A million of 512 bytes take about a gigabyte.
    pub objects: usize,
    /// Bytes of all encoded objects.
    pub bytes: u64,
    /// Kinds; each costs a little for every subscriber that asks for all of them.
    pub kinds: usize,
    /// Bytes of one encoded object: it must fit into a frame of 1 MiB.
    pub object_bytes: usize,
    /// Labels of one object: they are matched on every write.
    pub labels: usize,
    /// References of one object: they are followed on every write.
    pub refs: usize,
    /// Finalizers of one object: each is somebody who must act before it goes.
    pub finalizers: usize,
    /// Agents named by one object: each has a place of its own in a lane.
    pub named_agents: usize,
    /// Changes in one transaction: it is delivered as a unit.
    pub steps: usize,
    /// Leases that are held: one for each shard of each controller, and more is somebody making up names.
    pub leases: usize,
    /// Ends of objects that are remembered: who was away for longer than they reach resyncs by digest.
    pub tombstones: usize,
    /// Objects in the views of filters that nobody is subscribed with any more, kept for those who come back; a view
    /// counts as one object more.
    pub idle_filters: usize,
    /// Writes of a durable collection that wait for the disk. A group of them is written in tens of milliseconds; so many
    /// are seconds, after which a writer should rather be told.
    pub unsettled: usize,
    /// Bytes of new objects that wait for the disk, besides those of the last write: they are in memory twice, and a
    /// restart that waits for them should not wait for long.
    pub unsettled_bytes: usize,
}

/// The largest object that still fits, with its envelope, into the largest frame.
pub const MAX_OBJECT_BYTES: usize = (1 << 20) - 4096;

impl Default for Limits {
    fn default() -> Self {
        Self {
            objects: 1_000_000,
            bytes: 4 << 30,
            kinds: 1_000,
            object_bytes: 256 << 10,
            labels: 64,
            refs: 256,
            finalizers: 32,
            named_agents: 10_000,
            steps: 10_000,
            leases: 10_000,
            tombstones: 200_000,
            idle_filters: 100_000,
            unsettled: 20_000,
            unsettled_bytes: 64 << 20,
        }
    }
}
