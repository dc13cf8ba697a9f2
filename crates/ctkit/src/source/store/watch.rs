//! A watch of one kind in a collection in this process.

use std::{
    collections::BTreeSet,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use nimbus_core::{Kind, ObjectKey, Position, Revision, ScopeHash};
use nimbus_store::{Changed, Collection, Listener, Scope, Signal, State, Viewer};
use tokio_stream::Stream;

use crate::source::{Change, Event, WatchError};

/// Lists a kind and then follows it. It never ends.
///
/// It is a position and nothing else: while nobody asks it, changes are conflated where they are.
#[derive(Debug)]
pub(crate) struct StoreWatch {
    store: Collection,
    kind: Kind,
    scope: ScopeHash,
    signal: Signal,
    stage: Stage,
    /// It has said where it is.
    has_told: bool,
    _listener: Listener,
}

#[derive(Debug)]
enum Stage {
    /// A list of this state, told up to a name.
    Listing(Arc<State>, Option<ObjectKey>),
    /// Everything up to here was told.
    Live(Revision),
}

/// A part of a list is told without a pause: long enough to be cheap, short enough to leave room for others.
const CHUNK: usize = 1024;

// === impl StoreWatch ===

impl StoreWatch {
    pub(crate) fn new(store: Collection, kind: &Kind, from: Option<Position>) -> Self {
        let kinds = BTreeSet::from([kind.clone()]);
        let signal = Signal::default();
        // First listen, then look.
        let listener = store.listen(kinds.clone(), &signal);
        let scope = Scope { kinds: Some(Arc::new(kinds)), filter: None, viewer: Viewer::Observer }.hash();
        let state = store.state();
        let known =
            |from: &Position| from.epoch == state.epoch() && from.scope == scope && state.reaches(from.revision);
        let stage = match from.filter(known) {
            Some(from) => Stage::Live(from.revision),
            None => Stage::Listing(state, None),
        };
        Self { store, kind: kind.clone(), scope, signal, stage, has_told: false, _listener: listener }
    }

    fn position(&self, state: &State) -> Position {
        Position { epoch: state.epoch(), revision: state.head(), scope: self.scope }
    }

    /// The next part of the list, or its end.
    fn list(&mut self, state: &Arc<State>, told: Option<&ObjectKey>) -> Event {
        let records = state.kind(&self.kind).into_iter().flat_map(|kind| kind.all().iter(told));
        let chunk: Vec<_> = records.take(CHUNK).cloned().collect();
        match chunk.last() {
            Some(last) => {
                self.stage = Stage::Listing(state.clone(), Some(last.key().clone()));
                Event::Listing(chunk)
            }
            None => {
                (self.stage, self.has_told) = (Stage::Live(state.head()), true);
                Event::Listed(self.position(state))
            }
        }
    }

    /// What has changed since; nothing at all if it is of other kinds, or began and ended unseen. A watch that goes on from
    /// a position says at once where it is.
    fn follow(&mut self, state: &State, since: Revision) -> Option<Event> {
        if std::mem::replace(&mut self.has_told, true) && state.head() == since {
            return None;
        }
        self.stage = Stage::Live(state.head());
        let changes = state.changes(&self.kind, since).map(Change::from).collect();
        Some(Event::Changes(changes, self.position(state)))
    }
}

impl Stream for StoreWatch {
    type Item = Result<Event, WatchError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = match &self.stage {
            Stage::Listing(state, told) => {
                let (state, told) = (state.clone(), told.clone());
                Some(self.list(&state, told.as_ref()))
            }
            Stage::Live(since) => {
                let since = *since;
                // Raised or not, the state says it all; only the waker must be there before it is read.
                self.signal.poll(cx.waker());
                let state = self.store.state();
                if state.reaches(since) { self.follow(&state, since) } else { Some(self.list(&state, None)) }
            }
        };
        event.map_or(Poll::Pending, |event| Poll::Ready(Some(Ok(event))))
    }
}

// === impl Change ===

impl From<Changed<'_>> for Change {
    fn from(changed: Changed<'_>) -> Self {
        match changed {
            Changed::Put(record) => Self::Put(record.clone()),
            Changed::Gone { key, slot, .. } => Self::Removed(key.clone(), slot.revision),
        }
    }
}
