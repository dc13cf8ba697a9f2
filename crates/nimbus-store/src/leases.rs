//! Leases: who may act when only one may.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    ops::Bound,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use nimbus_core::{
    Invalid, check_name,
    planted::{self, Bug},
};
use nimbus_wire::v1;
use prost::{DecodeError, Message as _};

use crate::{durable::Lost, txn::Refused};

/// Shows that a writer holds a lease, or did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// The name of the lease.
    pub lease: Arc<str>,
    /// The token that its holder was given.
    pub token: u64,
}

/// A lease that somebody holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its name.
    pub name: Arc<str>,
    /// One instance of a program.
    pub holder: Arc<str>,
    /// Rises with every change of the holder.
    pub token: u64,
    /// Until it ends by itself.
    pub expires_in: Duration,
}

/// What came of an attempt to take a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acquired {
    /// Whether it was taken.
    pub granted: bool,
    /// Whether it was not the holder's own already, so that the token is a new one.
    pub changed: bool,
    /// The lease as it is, whoever holds it.
    pub lease: Held,
}

/// Why nobody can take a lease like this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// A name is not one.
    #[error(transparent)]
    Name(#[from] Invalid),
    /// It would last too short or too long.
    #[error("a lease lasts between {} ms and {} ms, not {} ms", MIN_TTL.as_millis(), MAX_TTL.as_millis(), .0.as_millis())]
    Ttl(Duration),
    /// The disk has failed: nobody can say whether the lease was given.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// So many leases are held already.
    #[error("leases are limited to {max}")]
    Full {
        /// How many may be held.
        max: usize,
    },
}

/// What must outlive the process: a record to be kept under a name, or to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The name of a lease; the record without a name is the highest token that was given.
    pub name: Arc<str>,
    /// The record; `None` if there is nothing to keep any more.
    pub record: Option<Bytes>,
}

/// Who may act when only one may. At every moment a lease has one holder at most, and a token is given once.
///
/// Knows no clock: time is what it was last told, and does not go back.
///
/// ```
/// # use std::time::{Duration, Instant};
/// # use nimbus_store::{Guard, Leases};
/// # let now = Instant::now();
/// let (mut leases, ttl) = (Leases::new(100, 0), Duration::from_secs(10));
/// let first = leases.acquire("leader", "a", ttl, now)?.lease;
/// let second = leases.acquire("leader", "b", ttl, now + ttl)?.lease;
/// assert!(second.token > first.token);
/// assert!(leases.check(&[Guard { lease: first.name, token: first.token }]).is_err());
/// # Ok::<(), nimbus_store::LeaseError>(())
/// ```
#[derive(Debug)]
pub struct Leases {
    max: usize,
    /// The highest token that was given for any name. That all of them count together lets names be forgotten.
    last: u64,
    now: Option<Instant>,
    /// Those that are held.
    held: BTreeMap<Arc<str>, Lease>,
    /// The same, in the order in which they end.
    ends: BTreeSet<(Instant, Arc<str>)>,
    unsaved: Vec<Saved>,
    /// How many have ended without being given back.
    expired: u64,
}

#[derive(Debug)]
struct Lease {
    holder: Arc<str>,
    token: u64,
    ttl: Duration,
    ends: Instant,
}

/// Shorter than a moment without the processor, a lease would be lost by those who live.
const MIN_TTL: Duration = Duration::from_millis(100);

/// Longer, and a crash would be noticed by people sooner than by those who wait for the lease.
const MAX_TTL: Duration = Duration::from_secs(60 * 60);

// === impl Leases ===

impl Leases {
    /// No leases; at most `max` can be held, and tokens are above `last`.
    pub fn new(max: usize, last: u64) -> Self {
        Self { max, last, now: None, held: BTreeMap::new(), ends: BTreeSet::new(), unsaved: Vec::new(), expired: 0 }
    }

    /// Takes back what a process before this one had saved. What was held counts as held for as long as it lasts without
    /// being renewed, from now on: its holder may live, and renew it.
    ///
    /// # Errors
    /// If a record was damaged; then none is taken.
    pub fn restore(&mut self, records: impl IntoIterator<Item = Bytes>, now: Instant) -> Result<(), DecodeError> {
        let records: Vec<v1::Lease> = records.into_iter().map(v1::Lease::decode).collect::<Result<_, _>>()?;
        let now = self.pass(now);
        for v1::Lease { name, holder, token, expires_in_ms } in records {
            self.last = self.last.max(token);
            if !name.is_empty() {
                let ttl = Duration::from_millis(expires_in_ms).clamp(MIN_TTL, MAX_TTL);
                self.put(name.into(), Lease { holder: holder.into(), token, ttl, ends: now + ttl });
            }
        }
        Ok(())
    }

    /// What has changed since the last time that must outlive the process, in the order in which it must be written.
    /// Renewals are not among it.
    pub fn take_unsaved(&mut self) -> Vec<Saved> {
        mem::take(&mut self.unsaved)
    }

    /// Time has passed: leases end.
    pub fn pass(&mut self, now: Instant) -> Instant {
        let now = *self.now.insert(self.now.map_or(now, |before| before.max(now)));
        while let Some((ends, name)) = self.ends.first()
            && *ends <= now
        {
            let name = name.clone();
            self.expired += 1;
            self.end(&name);
        }
        now
    }

    /// Takes a lease that is free, has ended, or is the holder's own already.
    ///
    /// # Errors
    /// If nobody could be given a lease like this.
    pub fn acquire(&mut self, name: &str, holder: &str, ttl: Duration, now: Instant) -> Result<Acquired, LeaseError> {
        check_name("lease", name)?;
        check_name("holder", holder)?;
        if !(MIN_TTL..=MAX_TTL).contains(&ttl) {
            return Err(LeaseError::Ttl(ttl));
        }
        let now = self.pass(now);
        let name: Arc<str> = name.into();
        let (changed, token, before) = match self.held.get(&name) {
            Some(lease) if *lease.holder != *holder => {
                return Ok(Acquired { granted: false, changed: false, lease: lease.show(&name, now) });
            }
            Some(lease) => (false, lease.token, Some(lease.ttl)),
            None if self.held.len() >= self.max => return Err(LeaseError::Full { max: self.max }),
            None => {
                self.last = self.last.checked_add(1).expect("there are more tokens than anybody can ask for");
                (true, self.last, None)
            }
        };
        let lease = Lease { holder: holder.into(), token, ttl, ends: now + ttl };
        if before != Some(ttl) {
            self.unsaved.push(lease.saved(&name));
        }
        let shown = lease.show(&name, now);
        self.put(name, lease);
        Ok(Acquired { granted: true, changed, lease: shown })
    }

    /// Holds on to leases for as long again, and names those that are lost.
    pub fn renew(&mut self, guards: &[Guard], now: Instant) -> Vec<Arc<str>> {
        let now = self.pass(now);
        let mut lost = Vec::new();
        for guard in guards {
            match self.held.get_mut(&guard.lease) {
                Some(lease) if lease.token == guard.token => {
                    self.ends.remove(&(lease.ends, guard.lease.clone()));
                    lease.ends = now + lease.ttl;
                    self.ends.insert((lease.ends, guard.lease.clone()));
                }
                _ => lost.push(guard.lease.clone()),
            }
        }
        lost
    }

    /// Gives leases back; those that somebody else was given since are left alone.
    pub fn release(&mut self, guards: &[Guard], now: Instant) {
        self.pass(now);
        for guard in guards {
            if self.holder(guard).is_some() {
                self.end(&guard.lease);
            }
        }
    }

    /// Leases that are held, and whose names begin like this, in the order of their names.
    pub fn list(&mut self, prefix: &str, now: Instant) -> Vec<Held> {
        let now = self.pass(now);
        let from = self.held.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        from.take_while(|(name, _)| name.starts_with(prefix))
            .map(|(name, lease)| lease.show(name, now))
            .collect()
    }

    /// How many are held.
    pub fn count(&mut self, now: Instant) -> usize {
        self.pass(now);
        self.held.len()
    }

    /// How many have ended without being given back.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// Who holds the lease with this token, if it is still good.
    pub fn holder(&self, guard: &Guard) -> Option<&Arc<str>> {
        let lease = self.held.get(&guard.lease).filter(|lease| lease.token == guard.token);
        lease.map(|lease| &lease.holder)
    }

    /// Lets a writer pass that holds all of these.
    ///
    /// # Errors
    /// If one of them is not held with exactly this token, or has ended.
    pub fn check(&self, guards: &[Guard]) -> Result<(), Refused> {
        if planted::is(Bug::IgnoreLease) {
            return Ok(());
        }
        let Some(lost) = guards.iter().find(|guard| self.holder(guard).is_none()) else { return Ok(()) };
        let current = self.held.get(&lost.lease).zip(self.now);
        let current = current.map(|(lease, now)| lease.show(&lost.lease, now));
        Err(Refused::LeaseLost { lease: lost.lease.clone(), token: lost.token, current })
    }

    fn put(&mut self, name: Arc<str>, lease: Lease) {
        self.ends.insert((lease.ends, name.clone()));
        if let Some(before) = self.held.insert(name.clone(), lease)
            && self.held[&name].ends != before.ends
        {
            self.ends.remove(&(before.ends, name));
        }
    }

    /// Its record may go, once the highest token does not depend on it any more.
    fn end(&mut self, name: &Arc<str>) {
        let Some(lease) = self.held.remove(name) else { return };
        self.ends.remove(&(lease.ends, name.clone()));
        let highest = v1::Lease { token: self.last, ..v1::Lease::default() };
        let record = Some(highest.encode_to_vec().into());
        self.unsaved
            .extend([Saved { name: Arc::default(), record }, Saved { name: name.clone(), record: None }]);
    }
}

// === impl Lease ===

impl Lease {
    fn show(&self, name: &Arc<str>, now: Instant) -> Held {
        let expires_in = self.ends.saturating_duration_since(now);
        Held { name: name.clone(), holder: self.holder.clone(), token: self.token, expires_in }
    }

    /// The record of it: as it travels, with as long to go as it may last.
    fn saved(&self, name: &Arc<str>) -> Saved {
        let record = v1::Lease {
            name: name.as_ref().to_owned(),
            holder: self.holder.as_ref().to_owned(),
            token: self.token,
            expires_in_ms: u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX),
        };
        Saved { name: name.clone(), record: Some(record.encode_to_vec().into()) }
    }
}
