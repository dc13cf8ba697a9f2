//! Who watches how the disk does.

/// Watches the thread that writes to the disk, such as to measure it: the collection itself looks at no clock.
///
/// Called by that thread, one call after the other, so that what takes long here holds up every write.
pub trait DiskWatch: Send + Sync {
    /// A group of so many writes, with so many bytes of new objects, is being written.
    fn begins(&self, writes: usize, bytes: usize);

    /// It is on disk, or the disk has failed.
    fn ends(&self, written: bool);
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDiskWatch;

// === impl NoDiskWatch ===

impl DiskWatch for NoDiskWatch {
    fn begins(&self, _: usize, _: usize) {}

    fn ends(&self, _: bool) {}
}
