//! What of a connection was woken, so that nothing else need be looked at.

use std::{
    collections::VecDeque,
    future::Future as _,
    pin::pin,
    sync::Arc,
    task::{Context, Wake, Waker},
};

use parking_lot::Mutex;

use crate::line::{Errand, Lines};

/// Where a connection stands that may have to wait for its turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Standing {
    /// It is in no line: whatever wakes it, it goes on.
    #[default]
    Free,
    /// It waits in line: whatever wakes it, it goes on when it is called.
    Waiting,
    /// It is one of the few who have their turns.
    Busy(Errand),
    /// The connection is no more.
    Gone,
}

/// What of a connection was woken. As a waker, it is that of the socket and of the clock.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    lines: Arc<Lines>,
    state: Mutex<State>,
}

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
    /// Those of a connection that stands in these lines.
    pub(crate) fn new(lines: Arc<Lines>) -> Arc<Self> {
        Arc::new(Self { lines, state: Mutex::default() })
    }

    pub(crate) fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Tells the connection to do something.
    pub(crate) fn order(&self, order: Order) {
        self.wake_with(|state| {
            state.order = state.order.max(order);
            state.is_io = true;
        });
    }

    /// Wakes whatever answers on a stream.
    pub(crate) fn wake_stream(&self, stream: u32) {
        self.wake_with(|state| state.streams.push(stream));
    }

    /// The same if there is news for an answer that goes on and on: if the connection rests, it stands in line for its turn.
    pub(crate) fn wake_in_line(self: &Arc<Self>, stream: u32, errand: Errand) {
        let mut state = self.state.lock();
        state.streams.push(stream);
        // Without its task it has been woken already, by something that does not wait in line.
        let stands = !state.is_busy && state.standing == Standing::Free && state.task.is_some();
        if stands {
            state.standing = Standing::Waiting;
        }
        let task = if stands { None } else { state.task_to_wake() };
        drop(state);
        if stands {
            self.lines.enter(self, errand);
        }
        task.into_iter().for_each(Waker::wake);
    }

    /// Begins to drive the connection; `waker` wakes who does. `false`: it is not its turn.
    pub(crate) fn begin(&self, waker: &Waker) -> bool {
        let mut state = self.state.lock();
        if !state.task.as_ref().is_some_and(|task| task.will_wake(waker)) {
            state.task = Some(waker.clone());
        }
        state.is_busy = state.standing != Standing::Waiting;
        state.is_busy
    }

    /// Takes what was woken; streams go to the end of `ready`.
    pub(crate) fn take(&self, ready: &mut VecDeque<u32>) -> Woken {
        let mut state = self.state.lock();
        ready.extend(state.streams.drain(..));
        Woken { is_io: std::mem::take(&mut state.is_io), order: state.order }
    }

    /// Rests, unless something was woken meanwhile.
    pub(crate) fn rest(&self) -> bool {
        let mut state = self.state.lock();
        let may_rest = !state.is_io && state.streams.is_empty();
        state.is_busy = !may_rest;
        may_rest
    }

    /// What it is one of the few for who have their turns.
    pub(crate) fn errand(&self) -> Option<Errand> {
        self.state.lock().standing.errand()
    }

    /// It waits in line from now on.
    pub(crate) fn stand(&self) {
        let mut state = self.state.lock();
        state.standing = Standing::Waiting;
        state.is_busy = false;
    }

    /// It is one of the few from now on, and it is its turn. `false`: the connection is no more.
    pub(crate) fn call(&self, errand: Errand) -> bool {
        let mut state = self.state.lock();
        if state.standing == Standing::Gone {
            return false;
        }
        state.standing = Standing::Busy(errand);
        state.is_busy = false;
        let task = state.task.take();
        drop(state);
        task.into_iter().for_each(match errand {
            Errand::Much => wake_after_sockets,
            Errand::News => Waker::wake,
        });
        true
    }

    /// It has no more to do for now. Whoever is next in its line has a turn.
    pub(crate) fn free(&self) {
        self.leave(Standing::Free);
    }

    /// The connection is no more.
    pub(crate) fn end(&self) {
        self.leave(Standing::Gone);
    }

    fn leave(&self, after: Standing) {
        let before = std::mem::replace(&mut self.state.lock().standing, after);
        if let Some(errand) = before.errand() {
            self.lines.pass(errand);
        }
    }

    /// Lets others go first, and goes on when it is its turn again.
    pub(crate) fn pause(&self) {
        let mut state = self.state.lock();
        state.is_busy = false;
        let task = state.task.take();
        drop(state);
        task.into_iter().for_each(wake_after_sockets);
    }

    fn wake_with(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        let task = state.task_to_wake();
        drop(state);
        task.into_iter().for_each(Waker::wake);
    }
}

/// Wakes a task when the runtime has looked at its sockets, which it does after so and so many turns otherwise: when these take
/// milliseconds each, whoever asks for something is not even heard for a quarter of a second.
#[allow(clippy::needless_pass_by_value, reason = "it stands where Waker::wake does")]
fn wake_after_sockets(task: Waker) {
    let yielding = pin!(tokio::task::yield_now());
    // Whoever polls it is woken then.
    if yielding.poll(&mut Context::from_waker(&task)).is_ready() {
        task.wake_by_ref();
    }
}

// === impl State ===

impl State {
    /// The task, if it rests, and is not to wait in line.
    fn task_to_wake(&mut self) -> Option<Waker> {
        let rests = !self.is_busy && self.standing != Standing::Waiting;
        if rests { self.task.take() } else { None }
    }
}

// === impl Standing ===

impl Standing {
    fn errand(self) -> Option<Errand> {
        match self {
            Self::Busy(errand) => Some(errand),
            Self::Free | Self::Waiting | Self::Gone => None,
        }
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
