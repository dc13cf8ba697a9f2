//! The versioned collection: objects, feeds, cursors, digests, tombstones.
//!
//! A collection keeps each object at the revision that last changed it, and the end of an object leaves a tombstone at
//! its revision. A [`Cursor`] is a position in that order. Reading everything after a position is at once the snapshot,
//! the resume, the live tail and the cure for a slow reader: what it has not read yet is conflated by itself.
//!
//! The collection itself does no I/O, looks at no clock and needs no runtime. What gives it durability does the I/O: a
//! [`Collection`] that is opened from a file shows and acknowledges a write when it is on disk.

mod changes;
mod collection;
mod core;
mod cursor;
mod disk_watch;
mod durable;
mod feed;
mod filter;
mod filter_lease;
pub mod frame;
#[doc(hidden)]
pub mod fuzzing;
mod group;
mod interest;
#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
mod lane;
mod leases;
mod limits;
mod named;
mod plan;
mod publishers;
mod queue;
mod reach;
mod record;
mod records;
mod refs;
mod scope;
mod selectors;
mod state;
mod sync;
mod syncing;
mod ticket;
mod tree;
mod txn;
mod unsaved;
mod usage;
mod view;
mod writer;

pub use changes::{Changed, Listener};
pub use collection::{Collection, Config};
pub use cursor::{Cursor, Mark, Piece, Traffic};
pub use disk_watch::{DiskWatch, NoDiskWatch};
#[cfg(feature = "sim")]
pub use durable::DrivenDisk;
pub use durable::{Lost, OpenError};
pub use filter::{Fields, Filter, NoFields};
pub use interest::Signal;
pub use leases::{Acquired, Guard, Held, LeaseError, Leases, Saved};
pub use limits::{Limits, MAX_OBJECT_BYTES};
pub use publishers::{SyncId, SyncSummary};
pub use reach::{Reach, Trace};
pub use record::{Content, Record, Slot};
pub use records::Records;
pub use scope::{Origin, Scope, Viewer};
pub use state::{KindState, State};
pub use ticket::Ticket;
pub use txn::{
    Committed, Draft, Effect, FinalizersDraft, Op, Outcome, Precondition, Reason, Refused, StatusDraft, Step, Txn,
};
pub use usage::Usage;
pub use view::View;
