//! The commands that talk to a bus, one file each.

pub(crate) mod apply;
pub(crate) mod completion;
pub(crate) mod delete;
pub(crate) mod diff;
pub(crate) mod edit;
pub(crate) mod get;
pub(crate) mod kinds;
pub(crate) mod list;
pub(crate) mod version;
