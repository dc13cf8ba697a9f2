//! A collection in this process, as a source and a target.

mod target;
mod watch;

use std::path::Path;

use nimbus_bus::{Bus, Config, Metrics};
use nimbus_core::{Epoch, Kind, Position};
use nimbus_store::{Committed, OpenError, Txn};
use prometheus_client::registry::Registry;
use tokio_stream::Stream;

use crate::{
    snapshot::Snapshot,
    source::{CommitError, Event, Source, WatchError},
};

pub use target::StoreSync;
use watch::StoreWatch;

/// A collection in this process. Cheap to clone; all clones are the same collection.
///
/// Controllers read it as it is: no object is copied, encoded or kept twice.
///
/// ```
/// use ctkit::Store;
/// use nimbus_core::Kind;
///
/// let store = Store::in_memory();
/// let policies = Kind::new("demo.v1.Policy")?;
/// assert_eq!(store.snapshot().list(&policies).count(), 0);
/// # Ok::<_, nimbus_core::Invalid>(())
/// ```
#[derive(Debug, Clone)]
pub struct Store {
    bus: Bus,
}

// === impl Store ===

impl Store {
    /// An empty collection that ends with the process.
    pub fn in_memory() -> Self {
        let config = Config::new(Epoch(rand::random()), rand::random());
        Self::from_bus(Bus::new(config, Metrics::new(&mut Registry::default())))
    }

    /// A collection in a file, which is made if there is none. What was acknowledged is there again after a restart, at the
    /// same revision.
    ///
    /// # Errors
    /// If the file is damaged, of a newer version, in use, or cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let config = Config::new(Epoch(rand::random()), rand::random());
        Ok(Self::from_bus(Bus::open(path.as_ref(), config, Metrics::new(&mut Registry::default()))?))
    }

    /// The collection that a bus serves.
    pub fn from_bus(bus: Bus) -> Self {
        Self { bus }
    }

    /// The bus that serves it, if somebody connects it.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// The whole collection as it is now.
    pub fn snapshot(&self) -> Snapshot {
        self.bus.store().state().into()
    }

    /// Makes the messages in an encoded `FileDescriptorSet` kinds, so that specs are checked before they are taken, and tools
    /// such as grpcurl can read them. Asking again changes nothing.
    ///
    /// # Errors
    /// If it is none, or a kind would no longer read what was written with it.
    pub fn register_kinds(&self, descriptor_set: &[u8]) -> Result<(), CommitError> {
        let registered = self.bus.schemas().register(descriptor_set, &[]);
        registered
            .map(drop)
            .map_err(|error| CommitError::Invalid { key: None, message: error.to_string() })
    }

    /// The one place where transactions go in.
    async fn submit(&self, txn: &Txn) -> Result<Committed, CommitError> {
        Ok(self.bus.submit(txn).await?)
    }
}

impl Source for Store {
    fn watch(
        &self,
        kind: &Kind,
        from: Option<Position>,
    ) -> impl Stream<Item = Result<Event, WatchError>> + Send + 'static {
        StoreWatch::new(self.bus.store().clone(), kind, from)
    }

    async fn commit(&self, txn: Txn) -> Result<Committed, CommitError> {
        self.submit(&txn).await
    }

    fn state(&self) -> Option<Snapshot> {
        Some(self.snapshot())
    }
}

#[cfg(test)]
mod tests;
