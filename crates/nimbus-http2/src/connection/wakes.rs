//! What of a connection was woken, so that nothing else need be looked at.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Wake, Waker},
};

use parking_lot::Mutex;

/// Where a connection stands that may have more to do than one turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Standing {
    /// It has had no more to do than one turn.
    #[default]
    Free,
    /// It waits in line: whatever wakes it, it goes on when it is called.
    Waiting,
    /// It is one of the few who have their turns.
    Busy,
    /// The connection is no more.
    Gone,
}

/// What of a connection was woken. As a waker, it is that of the socket and of the clock.
#[derive(Debug, Default)]
pub(crate) struct Wakes(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The connection is being driven, and looks here before it rests.
    is_busy: bool,
    is_io: bool,
    order: Order,
    standing: Standing,
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

    /// Begins to drive the connection; `waker` wakes who does. `false`: it is not its turn.
    pub(crate) fn begin(&self, waker: &Waker) -> bool {
        let mut state = self.0.lock();
        if !state.task.as_ref().is_some_and(|task| task.will_wake(waker)) {
            state.task = Some(waker.clone());
        }
        state.is_busy = state.standing != Standing::Waiting;
        state.is_busy
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

    /// Whether it is one of the few who have much to do, and have their turns.
    pub(crate) fn is_busy_in_line(&self) -> bool {
        self.0.lock().standing == Standing::Busy
    }

    /// It waits in line from now on. Returns whether it leaves a place among the few.
    pub(crate) fn stand(&self) -> bool {
        let mut state = self.0.lock();
        let before = std::mem::replace(&mut state.standing, Standing::Waiting);
        state.is_busy = false;
        before == Standing::Busy
    }

    /// It is one of the few from now on, and it is its turn. `false`: the connection is no more.
    pub(crate) fn call(&self) -> bool {
        let mut state = self.0.lock();
        if state.standing == Standing::Gone {
            return false;
        }
        state.standing = Standing::Busy;
        drop(state);
        self.pause();
        true
    }

    /// It has no more to do for now, or is `gone`. Returns whether it leaves a place among the few.
    pub(crate) fn free(&self, gone: bool) -> bool {
        let mut state = self.0.lock();
        let after = if gone { Standing::Gone } else { Standing::Free };
        std::mem::replace(&mut state.standing, after) == Standing::Busy
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
        let rests = !state.is_busy && state.standing != Standing::Waiting;
        let task = if rests { state.task.take() } else { None };
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
