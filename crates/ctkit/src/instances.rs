//! Several instances of one controller, of which each object has one that may act on it.

mod assignment;
mod call;
mod calls;
mod config;
mod events;
mod instance_id;
mod keeper;
mod lease_names;
mod no_leases;
mod permit;
mod plan;
mod post;
mod shard;
mod shares;
mod solo;
#[cfg(test)]
mod tests;
mod view;

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

pub use self::{
    config::{InstancesConfig, InstancesError},
    events::{ShardEvent, ShardEvents},
    instance_id::InstanceId,
    keeper::ShardKeeper,
    no_leases::NoLeases,
    permit::Permit,
    shard::Shard,
    shares::{InstancesStatus, ShardStatus, Shares},
    view::Standing,
};
use self::{events::Finished, view::View};
use crate::leases::Leases;

/// Several instances of one controller, of which each object has one that may act on it.
///
/// Objects are divided into shards, and each shard has a lease; a leader is the holder of the only shard. Instances find
/// each other in the lease table, divide the shards evenly, and move no more of them than that takes. One that stops
/// hands its shards over; one that dies is replaced when its leases end; one that cannot reach the table stops to act
/// before others may begin.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use ctkit::{Instances, InstancesError, Leases, ShardEvent};
/// # async fn run(leases: Arc<impl Leases>, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), InstancesError> {
/// let (shares, mut events, keeper) = Instances::sharded("policies").build(leases)?;
/// tokio::spawn(keeper.run_until(stop));
/// while let Some(event) = events.next().await {
///     match event {
///         ShardEvent::Gained(shard, _) => println!("may write: {:?}", shares.permit(shard)),
///         ShardEvent::Drain(shard) => events.drained(shard),
///         other => println!("{other:?}"),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Instances {
    config: InstancesConfig,
    alone: bool,
    seed: Option<u64>,
}

// === impl Instances ===

impl Instances {
    /// One instance acts, and the others stand by.
    pub fn leader(name: &str) -> Self {
        Self::new(InstancesConfig { shards: 1, ..InstancesConfig::new(name) })
    }

    /// All instances act, each on its part of the objects.
    pub fn sharded(name: &str) -> Self {
        Self::new(InstancesConfig::new(name))
    }

    /// There is one instance only: everything is its own at once, and no lease is asked for.
    ///
    /// It is built with any lease table, or with [`NoLeases`].
    pub fn alone() -> Self {
        let config = InstancesConfig { shards: 1, ..InstancesConfig::new("alone") };
        Self { alone: true, ..Self::new(config) }
    }

    /// As the configuration says.
    pub fn new(config: InstancesConfig) -> Self {
        Self { config, alone: false, seed: None }
    }

    /// What this instance is called; a random name if it is not said.
    pub fn instance(mut self, instance: InstanceId) -> Self {
        self.config.instance = Some(instance);
        self
    }

    /// Into how many shards objects are divided. All instances must say the same.
    pub fn shards(mut self, shards: u32) -> Self {
        self.config.shards = shards;
        self
    }

    /// For how long a lease lasts without being renewed.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.config.ttl = ttl;
        self
    }

    /// How long before its lease ends an instance stops to act.
    pub fn margin(mut self, margin: Duration) -> Self {
        self.config.margin = Some(margin);
        self
    }

    /// How long this instance takes at most to hand over when it stops.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.config.grace = grace;
        self
    }

    /// Where its randomness comes from, so that simulations can be repeated.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// What to ask, what to listen to, and what to run.
    ///
    /// # Errors
    /// If a name cannot be that of a lease, or a number makes no sense.
    pub fn build<L: Leases>(self, leases: Arc<L>) -> Result<(Shares, ShardEvents, ShardKeeper<L>), InstancesError> {
        let seed = self.seed.unwrap_or_else(rand::random);
        let settings = Arc::new(self.config.check(seed)?);
        let finished = Arc::new(Finished::default());
        let (view, shown) = watch::channel(View::empty(settings.shards));
        let shares = Shares::new(settings.instance.clone(), settings.shards, shown.clone());
        let events = ShardEvents::new(shown, finished.clone());
        Ok((shares, events, ShardKeeper::new(leases, settings, self.alone, seed, finished, view)))
    }
}
