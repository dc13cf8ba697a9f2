//! The words that every part of nimbus shares: kinds, keys, revisions, labels, selectors, digests.
//!
//! Everything here is a plain value: no I/O, no clock, no runtime. A value that exists is valid; what comes from outside
//! goes through a `new` or `parse` that says what it expected.

mod annotations;
mod audience;
mod backoff;
mod digest;
mod draft;
mod failure;
mod finalizers;
mod id;
mod key;
mod labels;
mod nearest;
mod object;
mod owner;
mod panic;
pub mod planted;
mod revision;
mod selector;

pub use annotations::Annotations;
pub use audience::Audience;
pub use backoff::Backoff;
pub use digest::{BucketSet, Buckets, Digest, LeafHasher};
pub use draft::{Draft, DraftParts, InvalidDraft};
pub use failure::{Failure, Permanent};
pub use finalizers::Finalizers;
pub use id::{AgentId, Invalid, PublisherId, Uid, check_name, is_name};
pub use key::{KeyHash, KeyHashes, KeyMap, KeySet, Kind, ObjectKey, Reference};
pub use labels::Labels;
pub use nearest::nearest;
pub use object::{Meta, Object, ObjectError, Spec};
pub use owner::Owner;
pub use panic::panic_message;
pub use revision::{Epoch, Generation, Position, Revision, ScopeHash};
pub use selector::{Requirement, Selector, Term};
