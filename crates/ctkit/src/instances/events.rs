//! What a controller is told about its shards.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::instances::{
    permit::Permit,
    shard::Shard,
    view::{Seat, View},
};

/// Something about a shard that its controller must know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardEvent {
    /// Begin to act on its objects.
    Gained(Shard, Permit),
    /// Begin nothing new, finish what runs, and answer [`ShardEvents::drained`]. Until then the shard is kept.
    Drain(Shard),
    /// Stop at once. Writes that are on their way will be refused.
    Lost(Shard),
}

/// What a controller is told about its shards, in order for each of them.
///
/// It is the difference between what was told and what is, not a queue: who reads late is told less, but never
/// something that is not true any more, and nobody who does not read holds up the renewal of leases.
#[derive(Debug)]
pub struct ShardEvents {
    view: watch::Receiver<View>,
    told: BTreeMap<Shard, Told>,
    finished: Arc<Finished>,
    closed: bool,
}

/// Shards of which nothing runs any more, and in which term; at most one for each shard.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    shards: Mutex<BTreeMap<Shard, u64>>,
    changed: Notify,
}

#[derive(Debug)]
struct Told {
    number: u64,
    draining: bool,
}

// === impl ShardEvents ===

impl ShardEvents {
    pub(crate) fn new(view: watch::Receiver<View>, finished: Arc<Finished>) -> Self {
        Self { view, told: BTreeMap::new(), finished, closed: false }
    }

    /// What is new; `None` after everything was lost because the instance has stopped.
    ///
    /// # Cancel safety
    /// Nothing is lost if it is dropped before it returns.
    pub async fn next(&mut self) -> Option<ShardEvent> {
        loop {
            let event = self.difference();
            if event.is_some() || self.closed {
                return event;
            }
            self.closed = self.view.changed().await.is_err();
        }
    }

    /// Answers [`ShardEvent::Drain`]: nothing of the shard runs any more, so another instance may have it.
    pub fn drained(&mut self, shard: Shard) {
        if self.told.get(&shard).is_some_and(|told| told.draining)
            && let Some(told) = self.told.remove(&shard)
        {
            self.finished.add(shard, told.number);
        }
    }

    /// Finds one thing that was not told yet, and takes it as told.
    fn difference(&mut self) -> Option<ShardEvent> {
        let view = self.view.borrow_and_update();
        let closed = self.closed;
        let seat = |shard: Shard| view.seats.get(shard.index()).and_then(Option::as_ref).filter(|_| !closed);
        let over = |(shard, told): (&Shard, &Told)| {
            seat(*shard).is_none_or(|seat| seat.number != told.number).then_some(*shard)
        };
        if let Some(shard) = self.told.iter().find_map(over) {
            self.told.remove(&shard);
            return Some(ShardEvent::Lost(shard));
        }
        for index in 0..view.seats.len() {
            let shard = Shard::at(index);
            let Some(Seat { guard, number, draining, .. }) = seat(shard) else { continue };
            match self.told.get_mut(&shard) {
                Some(told) if *draining && !told.draining => {
                    told.draining = true;
                    return Some(ShardEvent::Drain(shard));
                }
                Some(_) => {}
                // What was not begun, or was ended already, needs nobody to end it.
                None if *draining => self.finished.add(shard, *number),
                None => {
                    self.told.insert(shard, Told { number: *number, draining: false });
                    return Some(ShardEvent::Gained(shard, Permit::new(guard.clone())));
                }
            }
        }
        None
    }
}

// === impl Finished ===

impl Finished {
    fn add(&self, shard: Shard, number: u64) {
        self.shards.lock().insert(shard, number);
        self.changed.notify_one();
    }

    /// Waits for answers, and takes them.
    pub(crate) async fn take(&self) -> BTreeMap<Shard, u64> {
        loop {
            let taken = std::mem::take(&mut *self.shards.lock());
            if !taken.is_empty() {
                return taken;
            }
            self.changed.notified().await;
        }
    }
}
