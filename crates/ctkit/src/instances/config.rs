//! How the instances of a controller divide its work.

use std::{sync::Arc, time::Duration};

use nimbus_core::is_name;

use crate::instances::{instance_id::InstanceId, lease_names::LeaseNames, shard::Shard};

/// How the instances of a controller divide its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstancesConfig {
    /// What the controller is called in the lease table; the same for all instances of it.
    pub name: String,
    /// What this instance is called; `None` takes a random name.
    pub instance: Option<InstanceId>,
    /// Into how many shards objects are divided; 1 makes one instance the leader of all.
    ///
    /// All instances must say the same. It can be changed only while none of them runs, because the shard of an object
    /// depends on it.
    pub shards: u32,
    /// For how long a lease lasts without being renewed: a killed instance is missed for so long.
    pub ttl: Duration,
    /// How long before its lease ends an instance stops to act; `None` is a fifth of `ttl`.
    ///
    /// It covers clocks that do not run equally fast and writes that are already on their way.
    pub margin: Option<Duration>,
    /// How long this instance takes at most to hand over its shards when it stops.
    pub grace: Duration,
}

/// Why instances cannot be set up like this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstancesError {
    /// The lease table would not take it.
    #[error("no lease can be called {0:?}")]
    Name(String),
    /// The number of shards is not a useful one.
    #[error("{0} shards, where 1 to {MAX_SHARDS} are possible")]
    Shards(u32),
    /// The times leave no room for a renewal that is late.
    #[error("a lease of {ttl:?} that is not trusted in its last {margin:?} would be lost between two renewals")]
    Times {
        /// How long it lasts.
        ttl: Duration,
        /// For how long it is not trusted.
        margin: Duration,
    },
}

/// How an instance is set up, checked.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) names: LeaseNames,
    pub(crate) instance: InstanceId,
    pub(crate) shards: u32,
    pub(crate) ttl: Duration,
    pub(crate) margin: Duration,
    pub(crate) grace: Duration,
}

/// Every shard is a lease that is renewed and listed; with this many, a list is still below 100 kilobytes.
const MAX_SHARDS: u32 = 1024;

/// Enough for a few dozen instances to have equal parts, and few enough to list every second.
const DEFAULT_SHARDS: u32 = 32;

/// Longer than a restart of the bus; short enough that a crash is noticed before people do.
const DEFAULT_TTL: Duration = Duration::from_secs(15);

/// Well within the half minute that schedulers of containers usually allow.
const DEFAULT_GRACE: Duration = Duration::from_secs(10);

/// Timers have the resolution of a millisecond, and the shortest interval is a sixtieth of this.
const MIN_TTL: Duration = Duration::from_millis(300);

// === impl InstancesConfig ===

impl InstancesConfig {
    /// The defaults: 32 shards, leases of 15 seconds, 10 seconds to stop.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            instance: None,
            shards: DEFAULT_SHARDS,
            ttl: DEFAULT_TTL,
            margin: None,
            grace: DEFAULT_GRACE,
        }
    }

    /// Checks it; an instance without a name is named after `seed`.
    pub(crate) fn check(&self, seed: u64) -> Result<Settings, InstancesError> {
        let (names, ttl) = (LeaseNames::new(&self.name), self.ttl);
        let margin = self.margin.unwrap_or(ttl / 5);
        if !(1..=MAX_SHARDS).contains(&self.shards) {
            return Err(InstancesError::Shards(self.shards));
        }
        if ttl < MIN_TTL || margin > ttl / 2 {
            return Err(InstancesError::Times { ttl, margin });
        }
        let instance = self.instance.clone().unwrap_or_else(|| InstanceId::from_seed(seed));
        let longest = [names.member(&instance), names.shard(Shard::new(self.shards))];
        if let Some(bad) = longest.iter().find(|name| !is_name(name)) {
            return Err(InstancesError::Name(bad.to_string()));
        }
        Ok(Settings { names, instance, shards: self.shards, ttl, margin, grace: self.grace })
    }
}

// === impl Settings ===

impl Settings {
    /// A lease survives two renewals in a row that fail.
    pub(crate) fn renew_every(&self) -> Duration {
        self.ttl / 3
    }

    /// How soon others see that somebody came or went.
    pub(crate) fn look_every(&self) -> Duration {
        self.ttl / 15
    }

    /// How soon a shard that is given back is taken up, by those who wait for it.
    pub(crate) fn look_eagerly(&self) -> Duration {
        self.ttl / 60
    }

    /// How soon after a failure to try again.
    pub(crate) fn retry_after(&self) -> Duration {
        self.ttl / 15
    }

    /// An answer that takes longer counts as lost, so that there is time for another attempt.
    pub(crate) fn call_timeout(&self) -> Duration {
        self.ttl / 6
    }

    /// How long a leaving instance goes on to serve, so that others have noticed when it gives its shards back.
    pub(crate) fn notice(&self) -> Duration {
        (self.ttl / 12).min(self.grace / 4)
    }

    pub(crate) fn lease_of(&self, shard: Shard) -> Arc<str> {
        self.names.shard(shard)
    }
}
