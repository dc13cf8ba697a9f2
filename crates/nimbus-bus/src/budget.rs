//! Memory that is shared by those who have begun something. When there is no more of it, somebody who began long ago gives way:
//! what is well meant ends soon. Among some who did, it is one of those who have most, or the few bytes of one would go for
//! the megabytes of another.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Waker},
};

use bytes::{Buf as _, Bytes};
use parking_lot::Mutex;

/// Bytes that are shared.
pub(crate) struct Budget {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    bytes: usize,
    begun: u64,
    /// Those who have some, in the order in which they began.
    shares: BTreeMap<u64, (usize, Arc<Mark>)>,
}

/// What a share is told by others.
#[derive(Default)]
struct Mark {
    revoked: AtomicBool,
    waker: Mutex<Option<Waker>>,
    /// What it keeps here goes at once when it is revoked, whether anybody looks or not.
    kept: Mutex<Bytes>,
}

/// One's part of a budget, given back in the end.
pub(crate) struct Share {
    budget: Arc<Budget>,
    mark: Arc<Mark>,
    /// Its place, while it has some.
    place: Option<u64>,
}

/// Among so many of those who began first, one who has most gives way.
const FIRST: usize = 64;

// === impl Budget ===

impl Budget {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::default() }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes that are taken.
    pub(crate) fn bytes(&self) -> usize {
        self.state.lock().bytes
    }
}

// === impl State ===

impl State {
    /// Who gives way for the one at `place`: of those who have as much within a factor of two, who began first.
    fn next_to_go(&self, place: u64) -> Option<u64> {
        let others = self.shares.iter().take(FIRST).filter(|(other, _)| **other != place);
        let most = others.rev().max_by_key(|(_, (bytes, _))| bytes.checked_ilog2());
        most.map(|(other, _)| *other).or_else(|| self.shares.keys().next().copied())
    }

    fn give_back(&mut self, place: u64) -> Option<Arc<Mark>> {
        let (bytes, mark) = self.shares.remove(&place)?;
        self.bytes -= bytes;
        Some(mark)
    }
}

// === impl Share ===

impl Share {
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self { budget, mark: Arc::default(), place: None }
    }

    /// Has so much from now on. Others give way, if there is not enough for all.
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes == 0 && self.place.is_none() {
            return;
        }
        let mut state = self.budget.state.lock();
        if bytes == 0 {
            if let Some(place) = self.place.take() {
                state.give_back(place);
            }
            return;
        }
        let place = *self.place.get_or_insert_with(|| {
            state.begun += 1;
            state.begun
        });
        let before = state.shares.insert(place, (bytes, self.mark.clone()));
        state.bytes = state.bytes + bytes - before.map_or(0, |(bytes, _)| bytes);
        let mut revoked = Vec::new();
        while state.bytes > self.budget.limit
            && let Some(next) = state.next_to_go(place)
        {
            revoked.extend(state.give_back(next));
        }
        drop(state);
        for mark in revoked {
            mark.revoked.store(true, Ordering::Release);
            drop(std::mem::take(&mut *mark.kept.lock()));
            // Whoever polls afterwards sees it; whoever has polled before is woken.
            let waker = mark.waker.lock().take();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// Keeps something, and has as much from now on.
    pub(crate) fn keep(&mut self, bytes: Bytes) {
        let length = bytes.len();
        *self.mark.kept.lock() = bytes;
        self.set(length);
    }

    /// Bytes that it keeps.
    pub(crate) fn kept(&self) -> usize {
        self.mark.kept.lock().len()
    }

    /// Takes a copy of at most so much out of what it keeps, from the beginning; empty if there is no more. Whoever holds on to
    /// the copy does not hold on to the rest.
    pub(crate) fn take(&mut self, most: usize) -> Bytes {
        let mut kept = self.mark.kept.lock();
        let taken = Bytes::copy_from_slice(&kept[..most.min(kept.len())]);
        kept.advance(taken.len());
        let left = kept.len();
        if left == 0 {
            *kept = Bytes::new();
        }
        drop(kept);
        if !taken.is_empty() {
            self.set(left);
        }
        taken
    }

    /// Whether it must give up what it has. If not, the task is woken when it must.
    pub(crate) fn poll_revoked(&self, cx: &mut Context<'_>) -> bool {
        if self.place.is_some() {
            let mut waker = self.mark.waker.lock();
            if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                *waker = Some(cx.waker().clone());
            }
        }
        self.mark.revoked.load(Ordering::Acquire)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}
