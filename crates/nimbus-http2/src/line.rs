//! The lines in which connections wait for their turns, so that whoever asks for something waits for few of them.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;

use crate::connection::Wakes;

/// The lines in which connections of a server wait for their turns.
///
/// Only the first few of each line are woken, and each of them wakes the next one when it has had its turn. Whoever is in no
/// line waits for as many turns at most, however long the lines are; and in a line, everybody has a turn before anybody has
/// another.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    much: Line,
    news: Line,
}

/// What a connection stands in line for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errand {
    /// It has more to do than one turn, or much at once.
    Much,
    /// There is news for an answer that goes on and on.
    News,
}

#[derive(Debug, Default)]
struct Line(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How many are not in line, but have a turn, or wait for the runtime to give them one.
    busy: usize,
    waiting: VecDeque<Arc<Wakes>>,
}

// === impl Lines ===

impl Lines {
    /// A connection has had its turn, and has more to do. It is woken when it is its turn again, and not before.
    pub(crate) fn again(&self, wakes: &Arc<Wakes>) {
        match wakes.errand() {
            Some(Errand::Much) => self.much.again(wakes),
            Some(Errand::News) => {
                wakes.stand();
                self.enter(wakes, Errand::Much);
                self.pass(Errand::News);
            }
            None => {
                wakes.stand();
                self.enter(wakes, Errand::Much);
            }
        }
    }

    /// A connection that stands comes to the end of a line.
    pub(crate) fn enter(&self, wakes: &Arc<Wakes>, errand: Errand) {
        let mut state = self.of(errand).0.lock();
        if state.busy < errand.at_once() {
            state.busy += 1;
            drop(state);
            if !wakes.call(errand) {
                self.pass(errand);
            }
        } else {
            state.waiting.push_back(wakes.clone());
        }
    }

    /// Somebody who was busy is not any more: the next one is.
    pub(crate) fn pass(&self, errand: Errand) {
        self.of(errand).pass(errand);
    }

    fn of(&self, errand: Errand) -> &Line {
        match errand {
            Errand::Much => &self.much,
            Errand::News => &self.news,
        }
    }
}

// === impl Errand ===

impl Errand {
    /// How many are woken at a time.
    const fn at_once(self) -> usize {
        match self {
            // Enough to have more copied than a network carries. Their turns take up to a millisecond.
            Self::Much => 4,
            // Enough for as many processors, and together still less than one turn of those who have much to do.
            Self::News => 32,
        }
    }
}

// === impl Line ===

impl Line {
    /// Somebody who was busy goes to the end, unless nobody else is there.
    fn again(&self, wakes: &Arc<Wakes>) {
        let mut state = self.0.lock();
        if state.waiting.is_empty() {
            drop(state);
            return wakes.pause();
        }
        wakes.stand();
        state.waiting.push_back(wakes.clone());
        drop(state);
        self.pass(Errand::Much);
    }

    fn pass(&self, errand: Errand) {
        loop {
            let mut state = self.0.lock();
            let Some(next) = state.waiting.pop_front() else {
                state.busy -= 1;
                return;
            };
            drop(state);
            // Who has gone meanwhile has no turn.
            if next.call(errand) {
                return;
            }
        }
    }
}
