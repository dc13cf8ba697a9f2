//! What this instance may act on.

use std::{sync::Arc, time::Duration};

use nimbus_core::ObjectKey;
use tokio::{sync::watch, time::Instant};

use crate::instances::{
    instance_id::InstanceId,
    permit::Permit,
    shard::Shard,
    view::{Standing, View},
};

/// What this instance may act on. Cheap to clone, and cheap to ask before every write.
#[derive(Debug, Clone)]
pub struct Shares {
    instance: InstanceId,
    shards: u32,
    view: watch::Receiver<View>,
}

/// How an instance stands with the others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstancesStatus {
    /// Its name.
    pub instance: InstanceId,
    /// How it stands.
    pub standing: Standing,
    /// The shards that it may act on.
    pub shards: Vec<ShardStatus>,
    /// Of how many.
    pub of: u32,
    /// All instances that live, as far as is known here.
    pub members: Vec<InstanceId>,
    /// Why the lease table does not answer; `None` if it does.
    pub trouble: Option<Arc<str>>,
}

/// A shard that an instance may act on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardStatus {
    /// Which one.
    pub shard: Shard,
    /// For how long it has been.
    pub held_for: Duration,
    /// It is about to be handed over.
    pub draining: bool,
}

// === impl Shares ===

impl Shares {
    pub(crate) fn new(instance: InstanceId, shards: u32, view: watch::Receiver<View>) -> Self {
        Self { instance, shards, view }
    }

    /// Into how many shards objects are divided.
    pub fn shards(&self) -> u32 {
        self.shards
    }

    /// The shard of an object.
    pub fn shard_of(&self, key: &ObjectKey) -> Shard {
        Shard::of(key, self.shards)
    }

    /// Whether this instance may act on a shard at this instant, and what its writes must carry.
    ///
    /// `None` as soon as the lease may have been given to somebody else, whether or not anything here has noticed yet:
    /// it depends on the clock alone. The clock may stand still while the machine is suspended, and the next instant may
    /// be too late; for both there is the guard, which the store checks.
    pub fn permit(&self, shard: Shard) -> Option<Permit> {
        let view = self.view.borrow();
        let seat = view.seats.get(shard.index())?.as_ref()?;
        let is_over = seat.until.is_some_and(|until| Instant::now().into_std() >= until);
        (!is_over).then(|| Permit::new(seat.guard.clone()))
    }

    /// How this instance stands with the others.
    pub fn status(&self) -> InstancesStatus {
        let (view, now) = (self.view.borrow().clone(), Instant::now().into_std());
        let mut shards = Vec::new();
        for (index, seat) in view.seats.iter().enumerate() {
            if let Some(seat) = seat
                && seat.until.is_none_or(|until| now < until)
            {
                let held_for = now.saturating_duration_since(seat.since);
                shards.push(ShardStatus { shard: Shard::at(index), held_for, draining: seat.draining });
            }
        }
        InstancesStatus {
            instance: self.instance.clone(),
            standing: view.standing,
            shards,
            of: self.shards,
            members: view.members,
            trouble: view.trouble,
        }
    }

    /// Waits until the others know this instance: it works, or stands by. At once, if there are no others.
    ///
    /// Also returns when it has stopped before that.
    pub async fn joined(&self) {
        let mut view = self.view.clone();
        // An error means that it has stopped.
        let _ = view.wait_for(|view| view.standing != Standing::Joining).await;
    }
}
