//! All connections of a server, which take turns, and are ended together.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    connection::{Order, Wakes},
    line::Lines,
};

/// All connections of a server, which take turns, and are ended together. Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub struct Drain(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    empty: Notify,
    lines: Arc<Lines>,
}

#[derive(Default)]
struct State {
    order: Order,
    next: u64,
    connections: BTreeMap<u64, Weak<Wakes>>,
}

/// A connection's place among them.
pub(crate) struct Place {
    drain: Drain,
    number: u64,
    wakes: Arc<Wakes>,
}

// === impl Drain ===

impl Drain {
    /// Asks all clients, and those to come, to open no more streams. What they have begun is still answered; then their
    /// connections end.
    pub fn drain(&self) {
        self.order(Order::Drain);
    }

    /// Ends all connections at once.
    pub fn close(&self) {
        self.order(Order::Close);
    }

    /// Waits until there are no connections.
    pub async fn ended(&self) {
        loop {
            let empty = self.0.empty.notified();
            if self.0.state.lock().connections.is_empty() {
                return;
            }
            empty.await;
        }
    }

    pub(crate) fn join(&self) -> Place {
        let wakes = Wakes::new(self.0.lines.clone());
        let mut state = self.0.state.lock();
        let number = state.next;
        state.next += 1;
        state.connections.insert(number, Arc::downgrade(&wakes));
        let order = state.order;
        drop(state);
        wakes.order(order);
        Place { drain: self.clone(), number, wakes }
    }

    fn order(&self, order: Order) {
        let mut state = self.0.state.lock();
        state.order = state.order.max(order);
        let connections: Vec<_> = state.connections.values().filter_map(Weak::upgrade).collect();
        drop(state);
        for connection in connections {
            connection.order(order);
        }
    }
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain")
            .field("connections", &self.0.state.lock().connections.len())
            .finish()
    }
}

// === impl Place ===

impl Place {
    pub(crate) fn wakes(&self) -> &Arc<Wakes> {
        &self.wakes
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.wakes.end();
        let mut state = self.drain.0.state.lock();
        state.connections.remove(&self.number);
        let is_empty = state.connections.is_empty();
        drop(state);
        if is_empty {
            self.drain.0.empty.notify_waiters();
        }
    }
}
