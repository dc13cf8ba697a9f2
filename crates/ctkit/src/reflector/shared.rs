//! What the users of a reflector and its worker share.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering},
};

use nimbus_core::{Kind, ObjectKey, Revision};
use nimbus_store::Record;
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Duration, sleep},
};

use crate::{
    reflector::{
        intake::{News, What},
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
    /// How often something that could be read was replaced or taken away, rather than added.
    edits: AtomicU64,
    mailboxes: Mutex<Vec<Weak<Mailbox>>>,
    pub(crate) users: watch::Sender<usize>,
    /// How often somebody has asked for a watch that begins after that.
    renewals: watch::Sender<u64>,
}

/// What is known of the kind.
#[derive(Debug, Default)]
struct Known {
    copy: KindCopy,
    /// What was read of the first list, until there is a whole one.
    part: Option<KindCopy>,
    status: WatchStatus,
    /// When there was last something to tell.
    news: Revision,
    /// Everything is known that had happened when a new watch was asked for that many times.
    renewed: u64,
}

// === impl Shared ===

impl Shared {
    pub(crate) fn new(kind: Kind, source: Arc<dyn DynSource>) -> Self {
        let (known, users, renewals) = (watch::Sender::default(), watch::Sender::new(0), watch::Sender::new(0));
        Self { kind, source, known, edits: AtomicU64::new(0), mailboxes: Mutex::default(), users, renewals }
    }

    pub(crate) fn status(&self) -> WatchStatus {
        self.known.borrow().status.clone()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::of_copies([(self.kind.clone(), self.copy())])
    }

    /// How often something that could be read was replaced or taken away. As long as this is the same, what was read
    /// before is what would be read now.
    pub(crate) fn edits(&self) -> u64 {
        self.edits.load(Ordering::Acquire)
    }

    /// The same as early subscribers know it.
    pub(crate) fn early_snapshot(&self) -> Snapshot {
        let copy = self.known.borrow().early().clone();
        Snapshot::of_copies([(self.kind.clone(), copy)])
    }

    /// One object as early subscribers know it.
    pub(crate) fn find(&self, key: &ObjectKey) -> Option<Arc<Record>> {
        self.known.borrow().early().objects.get(key).cloned()
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

    /// Waits until everything is known that has happened until now, whatever the watch has missed: another one begins where
    /// it is.
    pub(crate) async fn renew(&self) {
        let mut number = 0;
        self.renewals.send_modify(|renewals| {
            *renewals += 1;
            number = *renewals;
        });
        let mut known = self.known.subscribe();
        // It fails only when the sender is gone, and that is our own.
        drop(known.wait_for(|known| known.renewed >= number).await);
    }

    /// Tells how often another watch was asked for, and when that is once more.
    pub(crate) fn renewals(&self) -> watch::Receiver<u64> {
        self.renewals.subscribe()
    }

    /// Everything is known that had happened when another watch was asked for that many times.
    pub(crate) fn renewed(&self, number: u64) {
        self.known.send_if_modified(|known| {
            let is_news = known.renewed < number;
            known.renewed = known.renewed.max(number);
            is_news
        });
    }

    /// When there was last something to tell.
    pub(crate) fn news(&self) -> Revision {
        self.known.borrow().news
    }

    /// Waits until an object is no longer as it was seen.
    pub(crate) async fn changed(&self, key: &ObjectKey, seen: Option<&Record>) {
        let version = |record: &Record| (record.to_uid(), record.revision());
        let seen = seen.map(version);
        let mut known = self.known.subscribe();
        let is_other = |known: &Known| known.copy.objects.get(key).map(|record| version(record)) != seen;
        // It fails only when the sender is gone, and that is our own.
        drop(known.wait_for(is_other).await);
    }

    /// Begins to tell a new subscriber: everything that is known, as soon as there was a list. An early one is told of the
    /// first list as it is read.
    pub(crate) fn open_mailbox(&self, early: bool) -> Arc<Mailbox> {
        let mailbox = Arc::new(Mailbox::new(early));
        // The worker changes what is known first and tells then: between the two, a subscriber may be told twice.
        let mut mailboxes = self.mailboxes.lock();
        mailboxes.push(Arc::downgrade(&mailbox));
        let (copy, epoch, news) = {
            let known = self.known.borrow();
            (known.early().clone(), known.status.epoch, known.news)
        };
        if epoch > WatchEpoch::ZERO {
            mailbox.list(copy.objects.iter().map(|record| record.key().clone()), epoch, news);
        } else if early {
            mailbox.part(copy.objects.iter().cloned());
        }
        mailbox
    }

    /// Makes news readable, and tells the subscribers then: who is woken reads what it was woken for.
    pub(crate) fn publish(&self, news: News) {
        let News { what, copy } = news;
        let (keys, listed, position) = match what {
            What::Keys { keys, listed, position } => (keys, listed, position),
            What::Part { records, replaces } => return self.publish_part(&records, replaces, copy),
        };
        let (is_quiet, revision) = (keys.is_empty() && listed.is_none(), position.revision);
        let mut all = None;
        self.known.send_modify(|known| {
            // Some have been told a part of the list by now, and the others nothing.
            if known.part.take().is_some() {
                all = Some(copy.clone());
            }
            if !keys.is_empty() {
                self.edits.fetch_add(1, Ordering::Release);
            }
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
                Some(epoch) => match all.as_ref().filter(|_| !mailbox.is_early()) {
                    Some(all) => mailbox.list(all.objects.iter().map(|record| record.key().clone()), epoch, revision),
                    None => mailbox.list(keys.iter().cloned(), epoch, revision),
                },
                None => mailbox.change(&keys, revision),
            }
            true
        });
    }

    /// The same for a part of the first list: only who is early is told of it, and reads it.
    fn publish_part(&self, records: &[Arc<Record>], replaces: bool, copy: KindCopy) {
        self.known.send_modify(|known| {
            if replaces {
                self.edits.fetch_add(1, Ordering::Release);
            }
            known.part = Some(copy);
        });
        self.mailboxes.lock().retain(|mailbox| {
            let Some(mailbox) = mailbox.upgrade() else { return false };
            if mailbox.is_early() {
                mailbox.part(records.iter().cloned());
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

// === impl Known ===

impl Known {
    /// The kind as early subscribers know it.
    fn early(&self) -> &KindCopy {
        self.part.as_ref().unwrap_or(&self.copy)
    }
}
