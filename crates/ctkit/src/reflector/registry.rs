//! Reflectors that are shared: one watch per kind, for as long as it has users.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fmt,
    sync::Arc,
};

use nimbus_core::{Kind, Revision};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::{
    reflector::{Reflector, config::ReflectorConfig, shared::Shared, status::WatchStatus, worker::Worker},
    snapshot::Snapshot,
    source::{DynSource, Source},
};

/// The reflectors of one source: one watch per kind, shared and counted.
///
/// The watch of a kind starts with its first user and ends, after a linger, with its last. Kinds need not be known
/// before: any name will do. Cheap to clone; all clones are the same. When the last of them and the last reflector are
/// gone, every watch ends at once.
#[derive(Clone)]
pub struct Reflectors(Arc<Inner>);

pub(crate) struct Inner {
    source: Arc<dyn DynSource>,
    config: ReflectorConfig,
    watched: Mutex<BTreeMap<Kind, Arc<Shared>>>,
    tasks: Mutex<JoinSet<()>>,
}

/// One use of a shared reflector; it is given back when this is dropped.
pub(crate) struct Use {
    shared: Arc<Shared>,
    /// The tasks live as long as their users.
    _registry: Arc<Inner>,
}

// === impl Reflectors ===

impl Reflectors {
    /// Reflectors of that source; none is started yet.
    pub fn new(source: impl Source, config: ReflectorConfig) -> Self {
        let (watched, tasks) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { source: Arc::new(source), config, watched, tasks }))
    }

    /// The reflector of a kind; its watch is started if it has to be.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn get(&self, kind: &Kind) -> Reflector {
        let mut watched = self.0.watched.lock();
        let shared = match watched.entry(kind.clone()) {
            Entry::Occupied(entry) => entry.get().clone(),
            Entry::Vacant(entry) => {
                let shared = Arc::new(Shared::new(kind.clone(), self.0.source.clone()));
                self.0.start(&shared);
                entry.insert(shared).clone()
            }
        };
        // Counted before the registry can let go of it.
        shared.users.send_modify(|users| *users += 1);
        Reflector(Arc::new(Use { shared, _registry: self.0.clone() }))
    }

    /// Waits until everything can be read that has happened in the source until now, also if watches hear nothing at the
    /// moment. Says of each kind when there was last something to tell by then.
    ///
    /// What the source refuses to show is waited for only if it is needed.
    pub(crate) async fn renew(&self, needed: &BTreeSet<Kind>) -> BTreeMap<Kind, Revision> {
        let kinds: BTreeSet<_> = self.0.watched.lock().keys().chain(needed).cloned().collect();
        let mut renewals = JoinSet::new();
        for kind in kinds {
            let (reflector, is_needed) = (self.get(&kind), needed.contains(&kind));
            renewals.spawn(async move { (kind, reflector.renew(is_needed).await) });
        }
        renewals.join_all().await.into_iter().collect()
    }

    /// The kinds that are watched, and how that goes.
    pub fn status(&self) -> BTreeMap<Kind, WatchStatus> {
        let watched = self.0.watched.lock();
        watched.iter().map(|(kind, shared)| (kind.clone(), shared.status())).collect()
    }

    /// All kinds that are watched, each as its subscribers know it.
    pub fn snapshot(&self) -> Snapshot {
        let watched = self.0.watched.lock();
        Snapshot::of_copies(watched.iter().map(|(kind, shared)| (kind.clone(), shared.copy())))
    }
}

impl fmt::Debug for Reflectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflectors").field("watched", &self.status()).finish_non_exhaustive()
    }
}

// === impl Inner ===

impl Inner {
    fn start(self: &Arc<Self>, shared: &Arc<Shared>) {
        let worker = Worker::new(shared.clone(), self.config.clone());
        let mut tasks = self.tasks.lock();
        // Those that have ended are of no interest any more.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(worker.run(Arc::downgrade(self)));
    }

    /// Lets go of a reflector, unless it is in use again.
    pub(crate) fn retire(&self, shared: &Shared) -> bool {
        let mut watched = self.watched.lock();
        let unused = *shared.users.borrow() == 0;
        if unused {
            watched.remove(&shared.kind);
        }
        unused
    }
}

// === impl Use ===

impl Use {
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.shared.users.send_modify(|users| *users -= 1);
    }
}

impl fmt::Debug for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflector")
            .field("kind", &self.shared.kind)
            .field("status", &self.shared.status())
            .finish_non_exhaustive()
    }
}
