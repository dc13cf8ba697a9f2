//! Word of what changes.

use std::sync::Arc;

use nimbus_core::{ObjectKey, Revision};
use nimbus_store::Record;

use crate::reflector::{Reflector, mailbox::Mailbox, status::WatchEpoch};

/// Word of what changes in one kind: first everything there is, then what changes.
///
/// It carries names, not values. Whoever is woken reads the newest value from [`Reflector::snapshot`], and finds none if
/// the object is gone. However slow a subscriber is, what waits for it is bounded by the number of objects: a name is
/// not told twice before it was heard once.
#[derive(Debug)]
pub struct Subscription {
    reflector: Reflector,
    mailbox: Arc<Mailbox>,
}

/// What a subscriber is told at once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Batch {
    /// Objects that are new, different or gone.
    pub keys: Vec<Woken>,
    /// With this, all that a list had to say was said.
    pub listed: Option<WatchEpoch>,
    /// With this, all that was known of up to here was said.
    pub revision: Option<Revision>,
}

/// An object to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Woken {
    /// Its name.
    pub key: ObjectKey,
    /// It comes from a list rather than a change: there may be very many of these, and nobody waits for this one.
    pub boot: bool,
}

// === impl Subscription ===

impl Subscription {
    pub(crate) fn new(reflector: Reflector, mailbox: Arc<Mailbox>) -> Self {
        Self { reflector, mailbox }
    }

    /// What to look at next. Waits if there is nothing.
    ///
    /// # Cancel safety
    /// If it is dropped before it is done, nothing is lost.
    pub async fn next(&mut self) -> Batch {
        let (mut batch, records) = self.mailbox.take().await;
        batch
            .keys
            .extend(records.iter().map(|record| Woken { key: record.key().clone(), boot: true }));
        batch
    }

    /// The same for an early subscriber; what comes from a list that has not ended is there as it was read, and not among
    /// the names.
    pub(crate) async fn next_records(&mut self) -> (Batch, Vec<Arc<Record>>) {
        self.mailbox.take().await
    }

    /// Where to look.
    pub fn reflector(&self) -> &Reflector {
        &self.reflector
    }
}
