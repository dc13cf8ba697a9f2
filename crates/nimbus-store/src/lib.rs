//! The versioned collection: objects, feeds, cursors, digests, tombstones.
//!
//! A collection keeps each object at the revision that last changed it, and the end of an object leaves a tombstone at
//! its revision. A [`Cursor`] is a position in that order. Reading everything after a position is at once the snapshot,
//! the resume, the live tail and the cure for a slow reader: what it has not read yet is conflated by itself.
//!
//! Nothing here does I/O, looks at a clock or needs a runtime.

mod collection;
mod cursor;
mod feed;
mod filter;
pub mod frame;
mod group;
mod interest;
mod lane;
mod limits;
mod plan;
mod publishers;
mod reach;
mod record;
mod refs;
mod scope;
mod selectors;
mod state;
mod txn;
mod view;
mod writer;

pub use collection::{Collection, Config};
pub use cursor::{Cursor, Mark, Piece};
pub use filter::{Fields, Filter, NoFields};
pub use interest::Signal;
pub use limits::{Limits, MAX_OBJECT_BYTES};
pub use publishers::{SyncId, SyncSummary};
pub use reach::{Reach, Trace};
pub use record::{Content, Record, Slot};
pub use scope::{Origin, Scope, Viewer};
pub use state::{KindState, State};
pub use txn::{Committed, Draft, Effect, Op, Outcome, Precondition, Reason, Refused, StatusDraft, Step, Txn};
pub use view::View;
