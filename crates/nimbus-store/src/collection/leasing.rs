//! Leases of a collection: under the writer's lock, so that no write with an old token comes after the new one was given.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use prost::DecodeError;

use crate::{
    collection::Collection,
    leases::{Acquired, Guard, Held, LeaseError, Leases, Saved},
    ticket::Ticket,
};

/// Leases are kept beside the objects, under names that begin like this.
const PREFIX: &str = "lease/";

impl Collection {
    /// Says what time it is. The collection looks at no clock: whether a lease has ended is judged by the latest time that
    /// it was told, here or with a call about leases.
    pub fn tell_time(&self, now: Instant) {
        self.0.core.lock().leases.pass(now);
    }

    /// Takes a lease that is free, has ended, or is the holder's own already. From then on, writes with earlier tokens of
    /// it are refused. Blocks until that is durable.
    ///
    /// # Errors
    /// If nobody could be given a lease like this, or the disk has failed.
    pub fn acquire(&self, name: &str, holder: &str, ttl: Duration, now: Instant) -> Result<Acquired, LeaseError> {
        Ok(self.submit_acquire(name, holder, ttl, now)?.wait()?)
    }

    /// As [`Collection::acquire`], without blocking. It must not be told to anybody before it is durable: a token that
    /// was forgotten would be given again.
    ///
    /// # Errors
    /// As [`Collection::acquire`].
    pub fn submit_acquire(
        &self,
        name: &str,
        holder: &str,
        ttl: Duration,
        now: Instant,
    ) -> Result<Ticket<Acquired>, LeaseError> {
        let mut acquired = None;
        let ticket = self.with_leases(|leases| acquired = Some(leases.acquire(name, holder, ttl, now)));
        let acquired = acquired.expect("it was tried")?;
        Ok(ticket.with(acquired))
    }

    /// Holds on to leases for as long again, and names those that are lost. A restart gives them all the time again, so
    /// that nothing has to be durable.
    pub fn renew(&self, guards: &[Guard], now: Instant) -> Vec<Arc<str>> {
        self.0.core.lock().leases.renew(guards, now)
    }

    /// Gives leases back; those that somebody else was given since are left alone. If that is forgotten, they end by
    /// themselves.
    pub fn release(&self, guards: &[Guard], now: Instant) {
        drop(self.with_leases(|leases| leases.release(guards, now)));
    }

    /// Leases that are held, and whose names begin like this, in the order of their names. The ticket is settled when they
    /// are durable: a token that was shown and forgotten would be given to somebody else.
    pub fn leases(&self, prefix: &str, now: Instant) -> Ticket<Vec<Held>> {
        let mut held = Vec::new();
        let ticket = self.with_leases(|leases| held = leases.list(prefix, now));
        ticket.with(held)
    }

    /// How many leases are held.
    pub fn count_leases(&self, now: Instant) -> usize {
        self.0.core.lock().leases.count(now)
    }

    /// Who holds the lease with this token, if it is still good.
    pub fn lease_holder(&self, guard: &Guard) -> Option<Arc<str>> {
        self.0.core.lock().leases.holder(guard).cloned()
    }

    /// Takes back the leases that a process before this one had. They last for as long again from now on: their holders
    /// may live, and renew them.
    ///
    /// # Errors
    /// If a record was damaged; then none is taken.
    pub fn restore_leases(&self, now: Instant) -> Result<(), DecodeError> {
        let records: Vec<Bytes> = self.extras(PREFIX).into_iter().map(|(_, record)| record).collect();
        self.0.core.lock().leases.restore(records, now)
    }

    /// What must outlive the process goes where the objects go, before the lock is let go.
    fn with_leases(&self, act: impl FnOnce(&mut Leases)) -> Ticket<()> {
        let mut writer = self.0.core.lock();
        act(&mut writer.leases);
        let unsaved = writer.leases.take_unsaved();
        if writer.queue.is_none() {
            // Nothing outlives a collection in memory.
            return Ticket::ready(());
        }
        let named = |saved: Saved| (format!("{PREFIX}{}", saved.name), saved.record);
        self.set_extras(writer, unsaved.into_iter().map(named))
    }
}
