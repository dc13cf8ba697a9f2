//! The line of connections that have more to do than one turn: few of them at a time, so that whoever has little to do waits
//! for few, however many have much.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;

use crate::connection::Wakes;

/// The line of connections that have more to do than one turn.
#[derive(Debug, Default)]
pub(crate) struct Line(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How many are not in line, but have a turn, or wait for the runtime to give them one.
    busy: usize,
    waiting: VecDeque<Weak<Wakes>>,
}

/// Enough to have more copied than a network carries. Whoever has little to do waits for as many turns at most.
const BUSY: usize = 4;

// === impl Line ===

impl Line {
    /// A connection has had its turn, and has more to do. It is woken when it is its turn again, and not before.
    pub(crate) fn again(&self, wakes: &Arc<Wakes>) {
        let mut state = self.0.lock();
        if wakes.is_busy_in_line() {
            if state.waiting.is_empty() {
                drop(state);
                return wakes.pause();
            }
        } else if state.busy < BUSY {
            state.busy += 1;
            drop(state);
            wakes.call();
            return;
        }
        let passes = wakes.stand();
        state.waiting.push_back(Arc::downgrade(wakes));
        drop(state);
        if passes {
            self.pass();
        }
    }

    /// Somebody who was busy is not any more: the next one is.
    pub(crate) fn pass(&self) {
        loop {
            let mut state = self.0.lock();
            let Some(next) = state.waiting.pop_front() else {
                state.busy -= 1;
                return;
            };
            drop(state);
            // Who has gone meanwhile has no turn.
            if next.upgrade().is_some_and(|next| next.call()) {
                return;
            }
        }
    }
}
