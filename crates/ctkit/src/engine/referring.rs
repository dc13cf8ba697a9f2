//! References that reactions state while they run.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use nimbus_core::ObjectKey;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::references::{Ref, References};

/// References of one controller, shared with its reactions: what a reaction reads must be watched before it is read, or a
/// change in between would be missed.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedReferences(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    references: Mutex<References>,
    /// The engine has not looked since kinds came or went.
    news: AtomicBool,
}

// === impl SharedReferences ===

impl SharedReferences {
    /// A referrer looks at these as well.
    pub(crate) fn add(&self, referrer: &ObjectKey, refs: impl IntoIterator<Item = Ref>) {
        let diff = self.0.references.lock().add(referrer, refs, Instant::now());
        self.note(!diff.kinds_started.is_empty());
    }

    /// A referrer looks at exactly these.
    pub(crate) fn declare(&self, referrer: &ObjectKey, refs: impl IntoIterator<Item = Ref>, now: Instant) {
        let mut references = self.0.references.lock();
        let mut refs = refs.into_iter().peekable();
        if refs.peek().is_none() && !references.knows(referrer) {
            return;
        }
        let diff = references.declare(referrer, refs, now);
        drop(references);
        self.note(!diff.kinds_started.is_empty() || !diff.kinds_stopped.is_empty());
    }

    /// A referrer looks at exactly these, and cannot go on before it has those that it waits for.
    pub(crate) fn wait_for(
        &self,
        referrer: &ObjectKey,
        refs: impl IntoIterator<Item = Ref>,
        awaited: impl IntoIterator<Item = ObjectKey>,
        now: Instant,
    ) {
        let diff = self.0.references.lock().wait_for(referrer, refs, awaited, now);
        self.note(!diff.kinds_started.is_empty() || !diff.kinds_stopped.is_empty());
    }

    /// A referrer is gone.
    pub(crate) fn forget(&self, referrer: &ObjectKey) {
        let mut references = self.0.references.lock();
        if !references.knows(referrer) {
            return;
        }
        let diff = references.forget(referrer);
        drop(references);
        self.note(!diff.kinds_stopped.is_empty());
    }

    /// Whether kinds came or went since the last time that this was asked.
    pub(crate) fn has_news(&self) -> bool {
        self.0.news.load(Ordering::Relaxed) && self.0.news.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, References> {
        self.0.references.lock()
    }

    fn note(&self, news: bool) {
        if news {
            self.0.news.store(true, Ordering::Release);
        }
    }
}
