//! What the users of a reflector and its worker share.

use std::sync::{Arc, Weak};

use nimbus_core::{Kind, ObjectKey, Revision};
use nimbus_store::Record;
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Duration, sleep},
};

use crate::{
    reflector::{
        intake::News,
        mailbox::Mailbox,
        status::{WatchEpoch, WatchPhase, WatchStatus},
    },
    snapshot::{KindCopy, Snapshot},
    source::DynSource,
};

/// What the users of a reflector and its worker share.
pub(crate) struct Shared {
    pub(crate) kind: Kind,
    pub(crate) source: Arc<dyn DynSource>,
    known: watch::Sender<Known>,
    mailboxes: Mutex<Vec<Weak<Mailbox>>>,
    pub(crate) users: watch::Sender<usize>,
}

/// What is known of the kind.
#[derive(Debug, Default)]
struct Known {
    copy: KindCopy,
    status: WatchStatus,
    /// When there was last something to tell.
    news: Revision,
}

// === impl Shared ===

impl Shared {
    pub(crate) fn new(kind: Kind, source: Arc<dyn DynSource>) -> Self {
        let (known, users) = (watch::Sender::default(), watch::Sender::new(0));
        Self { kind, source, known, mailboxes: Mutex::default(), users }
    }

    pub(crate) fn status(&self) -> WatchStatus {
        self.known.borrow().status.clone()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::of_copies([(self.kind.clone(), self.copy())])
    }

    /// One object as subscribers know it.
    pub(crate) fn find(&self, key: &ObjectKey) -> Option<Arc<Record>> {
        self.known.borrow().copy.objects.get(key).cloned()
    }

    /// The kind as subscribers know it.
    pub(crate) fn copy(&self) -> KindCopy {
        self.known.borrow().copy.clone()
    }

    /// Whether somebody who was told everything up to a revision has nothing more to hear: not even of what happened in
    /// the source just now, if that can be read directly.
    pub(crate) fn has_told_all(&self, told: Revision) -> bool {
        let (news, position) = {
            let known = self.known.borrow();
            (known.news, known.status.position)
        };
        let is_still = |state: Snapshot| position.is_some_and(|at| state.is_unchanged(&self.kind, at.revision));
        news == told && self.source.state().is_none_or(is_still)
    }

    /// Waits until the watch is so far.
    pub(crate) async fn until(&self, mut reached: impl FnMut(&WatchStatus) -> bool) {
        let mut known = self.known.subscribe();
        // It fails only when the sender is gone, and that is our own.
        drop(known.wait_for(|known| reached(&known.status)).await);
    }

    /// Waits until an object is no longer as it was seen.
    pub(crate) async fn changed(&self, key: &ObjectKey, seen: Option<&Record>) {
        let version = |record: &Record| (record.uid().clone(), record.revision());
        let seen = seen.map(version);
        let mut known = self.known.subscribe();
        let is_other = |known: &Known| known.copy.objects.get(key).map(|record| version(record)) != seen;
        // It fails only when the sender is gone, and that is our own.
        drop(known.wait_for(is_other).await);
    }

    /// Begins to tell a new subscriber: everything that is known, as soon as there was a list.
    pub(crate) fn open_mailbox(&self) -> Arc<Mailbox> {
        let mailbox = Arc::new(Mailbox::default());
        // The worker changes what is known first and tells then: between the two, a subscriber may be told twice.
        let mut mailboxes = self.mailboxes.lock();
        mailboxes.push(Arc::downgrade(&mailbox));
        let (copy, epoch, news) = {
            let known = self.known.borrow();
            (known.copy.clone(), known.status.epoch, known.news)
        };
        if epoch > WatchEpoch::ZERO {
            mailbox.list(copy.objects.iter().map(|record| record.key().clone()), epoch, news);
        }
        mailbox
    }

    /// Makes news readable, and tells the subscribers then: who is woken reads what it was woken for.
    pub(crate) fn publish(&self, news: News) {
        let News { keys, listed, copy, position } = news;
        let (is_quiet, revision) = (keys.is_empty() && listed.is_none(), position.revision);
        self.known.send_modify(|known| {
            let epoch = listed.unwrap_or(known.status.epoch);
            let (phase, position, objects) = (WatchPhase::Live, Some(position), copy.objects.len());
            known.status = WatchStatus { phase, epoch, position, objects, failures: 0, error: None };
            known.copy = copy;
            if !is_quiet {
                known.news = revision;
            }
        });
        if is_quiet {
            return;
        }
        self.mailboxes.lock().retain(|mailbox| {
            let Some(mailbox) = mailbox.upgrade() else { return false };
            match listed {
                Some(epoch) => mailbox.list(keys.iter().cloned(), epoch, revision),
                None => mailbox.change(&keys, revision),
            }
            true
        });
    }

    /// A watch begins, with a list or without.
    pub(crate) fn began(&self, phase: WatchPhase) {
        self.known.send_modify(|known| known.status.phase = phase);
    }

    /// A watch broke off.
    pub(crate) fn failed(&self, error: Arc<str>) {
        self.known.send_modify(|known| {
            known.status.phase = WatchPhase::Waiting;
            known.status.failures = known.status.failures.saturating_add(1);
            known.status.error = Some(error);
        });
    }

    /// Waits until nobody has used the reflector for that long.
    pub(crate) async fn unused_for(&self, linger: Duration) {
        let mut users = self.users.subscribe();
        loop {
            drop(users.wait_for(|users| *users == 0).await);
            tokio::select! {
                // Whoever came and left again was a user as well.
                _ = users.changed() => {}
                () = sleep(linger) => return,
            }
        }
    }
}
