//! The agent's memory on disk: what it was told, what it applied, and what it began.
//!
//! A [`Keeper`] holds the whole memory in RAM as an [`image`] and writes what changes to one [redb] file. Because the
//! image is whole, the file can be made anew at any time: after damage, after a failure, or because it is mostly empty.
//!
//! The file has two tables. `objects` has a row for every object, which holds each version of it once, however many
//! uses the version has. `header` has one record: format, agent, position, and the number and digest of all rows. Every
//! row and the header carry a checksum of their own, so that what is read is what one commit wrote, or is refused.
//!
//! **Invariant:** reading changes nothing. A file is read through an [overlay](nimbus_disk::Overlay), which keeps redb's repairs in RAM, so
//! that a file that is refused is set aside as it was found, and a full disk does not make an agent forget.

mod aside;
pub(crate) mod boot;
mod error;
mod flaw;
mod health;
mod image;
mod keeper;
mod ledger;
pub(crate) mod load;
mod lock;
mod memory;
mod pending;
pub(crate) mod record;
mod shared;
mod store;
mod worker;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use aside::Aside;
pub use error::CacheError;
pub(crate) use health::Health;
pub(crate) use keeper::{Keeper, Settings};
pub(crate) use memory::{Delta, Memory};
