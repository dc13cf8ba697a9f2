//! Where objects come from, and where their statuses go.

mod erased;
mod refused;
mod remote;
mod store;

use std::{future::Future, sync::Arc};

use nimbus_core::{Kind, ObjectKey, Position, Revision};
use nimbus_store::{Committed, Record, Txn};
use tokio_stream::Stream;

pub(crate) use self::erased::DynSource;
pub use self::{
    remote::{Remote, RemoteBuilder, RemoteError, RemoteSync},
    store::{Store, StoreSync},
};
use crate::snapshot::Snapshot;

/// Where objects come from, and where their statuses go: an API.
///
/// Two calls are all that the kit needs of it. Everything above them, such as caches, queues and retries, is the same for
/// every source.
pub trait Source: Send + Sync + 'static {
    /// All objects of a kind and then their changes, in order and without a gap; from a position on, if the source still
    /// knows it, else from the beginning.
    ///
    /// The first [`Event::Listed`] or [`Event::Changes`] says everything that had happened when the watch began, be it
    /// nothing: by this, an instance that takes over from another one knows that it sees what that one saw.
    ///
    /// The stream reconnects by itself. It ends only with an error that no patience can cure.
    fn watch(
        &self,
        kind: &Kind,
        from: Option<Position>,
    ) -> impl Stream<Item = Result<Event, WatchError>> + Send + 'static;

    /// Makes all changes of a transaction, or none.
    fn commit(&self, txn: Txn) -> impl Future<Output = Result<Committed, CommitError>> + Send;

    /// The objects as they are now, if the source can be read directly; then nobody keeps a copy of them, and a watch
    /// only says when to look. What it has said must be in there.
    fn state(&self) -> Option<Snapshot> {
        None
    }
}

/// What a watch says.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// Objects of a list; what is in no part of it is gone when [`Event::Listed`] comes.
    Listing(Vec<Arc<Record>>),
    /// The list is whole, and this is where it was taken.
    Listed(Position),
    /// What has changed since, up to this position; whole transactions only.
    Changes(Vec<Change>, Position),
}

/// A change of one object.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Change {
    /// It is new or different.
    Put(Arc<Record>),
    /// It is gone.
    Removed(ObjectKey, Revision),
}

/// Why a watch cannot go on.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The source refuses it, and will go on to do so.
    #[error("cannot watch {kind}: {message}")]
    Refused {
        /// What was to be watched.
        kind: Kind,
        /// What the source says.
        message: String,
    },
}

/// Why a transaction did not happen; one variant for each thing that the kit does about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// A precondition does not hold: read again and decide again.
    #[error("{key}: {message}")]
    Conflict {
        /// The object.
        key: ObjectKey,
        /// What was expected, and what there is.
        message: String,
    },
    /// The object is gone.
    #[error("{0} does not exist")]
    NotFound(ObjectKey),
    /// Somebody else owns the object.
    #[error("{key}: {message}")]
    Foreign {
        /// The object.
        key: ObjectKey,
        /// Whose it is.
        message: String,
    },
    /// A lease was lost, or a newer instance of the publisher has written: stop.
    #[error("fenced: {0}")]
    Fenced(String),
    /// The transaction is wrong in itself; trying it again is of no use. Names the object, if it is about one.
    #[error("{message}")]
    Invalid {
        /// The object, if it is about one.
        key: Option<ObjectKey>,
        /// What is wrong.
        message: String,
    },
    /// Not now: a limit, a connection, a bus that restarts. Try again.
    #[error("{0}")]
    Unavailable(String),
}

impl<S: Source> Source for Arc<S> {
    fn watch(
        &self,
        kind: &Kind,
        from: Option<Position>,
    ) -> impl Stream<Item = Result<Event, WatchError>> + Send + 'static {
        S::watch(self, kind, from)
    }

    fn commit(&self, txn: Txn) -> impl Future<Output = Result<Committed, CommitError>> + Send {
        S::commit(self, txn)
    }

    fn state(&self) -> Option<Snapshot> {
        S::state(self)
    }
}

// === impl Change ===

impl Change {
    /// The name of the object.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Put(record) => record.key(),
            Self::Removed(key, _) => key,
        }
    }

    /// When it changed, or ended.
    pub fn revision(&self) -> Revision {
        match self {
            Self::Put(record) => record.revision(),
            Self::Removed(_, revision) => *revision,
        }
    }
}
