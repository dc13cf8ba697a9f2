//! What of a connection was woken, so that nothing else need be looked at.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Wake, Waker},
};

use parking_lot::Mutex;

/// What of a connection was woken. As a waker, it is that of the socket and of the clock.
#[derive(Debug, Default)]
pub(crate) struct Wakes(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The connection is being driven, and looks here before it rests.
    is_busy: bool,
    is_io: bool,
    order: Order,
    /// Each at most once: streams remember that they are here.
    streams: Vec<u32>,
    /// The task that drives the connection, until it is woken.
    task: Option<Waker>,
}

/// What a connection is told to do. A later one goes before an earlier one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    #[default]
    Serve,
    Drain,
    Close,
}

/// What was woken beside streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Woken {
    /// The socket, the clock, or whoever gives orders.
    pub(crate) is_io: bool,
    pub(crate) order: Order,
}

// === impl Wakes ===

impl Wakes {
    /// Tells the connection to do something.
    pub(crate) fn order(&self, order: Order) {
        self.wake_with(|state| {
            state.order = state.order.max(order);
            state.is_io = true;
        });
    }

    pub(crate) fn wake_stream(&self, stream: u32) {
        self.wake_with(|state| state.streams.push(stream));
    }

    /// Begins to drive the connection; `waker` wakes who does.
    pub(crate) fn begin(&self, waker: &Waker) {
        let mut state = self.0.lock();
        state.is_busy = true;
        if !state.task.as_ref().is_some_and(|task| task.will_wake(waker)) {
            state.task = Some(waker.clone());
        }
    }

    /// Takes what was woken; streams go to the end of `ready`.
    pub(crate) fn take(&self, ready: &mut VecDeque<u32>) -> Woken {
        let mut state = self.0.lock();
        ready.extend(state.streams.drain(..));
        Woken { is_io: std::mem::take(&mut state.is_io), order: state.order }
    }

    /// Rests, unless something was woken meanwhile.
    pub(crate) fn rest(&self) -> bool {
        let mut state = self.0.lock();
        let may_rest = !state.is_io && state.streams.is_empty();
        state.is_busy = !may_rest;
        may_rest
    }

    /// Lets others go first, and goes on when it is its turn again.
    pub(crate) fn pause(&self) {
        let mut state = self.0.lock();
        state.is_busy = false;
        let task = state.task.take();
        drop(state);
        task.into_iter().for_each(Waker::wake);
    }

    fn wake_with(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.0.lock();
        change(&mut state);
        let task = if state.is_busy { None } else { state.task.take() };
        drop(state);
        task.into_iter().for_each(Waker::wake);
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_with(|state| state.is_io = true);
    }
}
