//! What the worker shares with the handles.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep},
};

use crate::cache::{
    health::{CacheFailure, Health},
    memory::Delta,
    pending::{Batch, Pending},
};

/// What the worker shares with the handles.
#[derive(Debug)]
pub(crate) struct Shared {
    pending: Mutex<Pending>,
    /// Something was saved, or it is being closed. Only the worker waits.
    wake: Notify,
    progress: watch::Sender<Progress>,
    /// Outlives the worker, so that who watches does not see the end of the worker as news.
    health: Arc<watch::Sender<Health>>,
}

/// How far the worker is.
#[derive(Debug, Clone, PartialEq)]
struct Progress {
    /// The last delta that is on disk.
    durable: u64,
    /// Why no other is.
    failure: Option<CacheFailure>,
}

// === impl Shared ===

impl Shared {
    pub(crate) fn new(pending: Pending, health: Arc<watch::Sender<Health>>) -> Self {
        let progress = watch::Sender::new(Progress { durable: pending.saved(), failure: None });
        Self { pending: Mutex::new(pending), wake: Notify::new(), progress, health }
    }

    pub(crate) fn save(&self, delta: Delta) {
        self.pending.lock().save(delta);
        self.wake.notify_one();
    }

    /// Lets the worker end, after one last attempt.
    pub(crate) fn close(&self) {
        self.pending.lock().close();
        self.wake.notify_one();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.pending.lock().is_closing()
    }

    /// Waits until all that was saved before the call is on disk, or cannot be for now.
    pub(crate) async fn barrier(&self) -> Result<(), CacheFailure> {
        let saved = self.pending.lock().saved();
        let mut progress = self.progress.subscribe();
        let progress = progress.wait_for(|progress| progress.durable >= saved || progress.failure.is_some());
        let progress = progress.await.expect("the sender is in self");
        match &progress.failure {
            Some(failure) if progress.durable < saved => Err(failure.clone()),
            _ => Ok(()),
        }
    }

    /// Waits until the worker has ended, and the file is closed.
    pub(crate) async fn ended(&self) {
        let is_over = |progress: &Progress| progress.failure == Some(CacheFailure::Closed);
        self.progress.subscribe().wait_for(is_over).await.expect("the sender is in self");
    }

    /// What is not on disk, if there is anything.
    pub(crate) fn changes(&self) -> Option<Batch> {
        let pending = self.pending.lock();
        pending.has_changes().then(|| pending.changes())
    }

    /// All that there is.
    pub(crate) fn everything(&self) -> Batch {
        self.pending.lock().everything()
    }

    /// Everything up to this delta is on disk.
    pub(crate) fn written(&self, sequence: u64) {
        self.pending.lock().written(sequence);
        self.progress.send_modify(|progress| progress.durable = sequence);
    }

    /// An attempt succeeded. Returns since when none had, if that is so.
    pub(crate) fn succeeded(&self) -> Option<Instant> {
        self.progress.send_if_modified(|progress| progress.failure.take().is_some());
        // Most attempts succeed, and nobody wants to hear of them.
        let mut before = None;
        self.health.send_if_modified(|health| {
            if let Health::Failing { since, .. } = health {
                before = Some(*since);
                *health = Health::Good;
            }
            before.is_some()
        });
        before
    }

    /// An attempt failed. Returns whether that is new.
    pub(crate) fn failed(&self, now: Instant, message: &Arc<str>) -> bool {
        let was_good = *self.health.borrow() == Health::Good;
        self.health.send_if_modified(|health| {
            let since = if let Health::Failing { since, .. } = health { *since } else { now };
            let after = Health::Failing { since, message: message.clone() };
            let is_new = *health != after;
            *health = after;
            is_new
        });
        let failure = CacheFailure::Failing(message.clone());
        self.progress.send_modify(|progress| progress.failure = Some(failure));
        was_good
    }

    /// The worker has ended, and the file is closed.
    pub(crate) fn end(&self) {
        self.progress.send_modify(|progress| progress.failure = Some(CacheFailure::Closed));
    }

    /// Waits until there is something to write; false if there is nothing and never will be.
    pub(crate) async fn has_work(&self) -> bool {
        loop {
            {
                let pending = self.pending.lock();
                if pending.has_changes() {
                    return true;
                }
                if pending.is_closing() {
                    return false;
                }
            }
            self.wake.notified().await;
        }
    }

    /// Waits for a while, or until it is being closed.
    pub(crate) async fn pause(&self, delay: Duration) {
        let closing = async {
            while !self.is_closing() {
                self.wake.notified().await;
            }
        };
        tokio::select! {
            () = closing => {}
            () = sleep(delay) => {}
        }
    }
}
