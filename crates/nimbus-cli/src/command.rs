//! The commands, one file each, but for `serve`.

pub(crate) mod completion;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod kinds;
pub(crate) mod list;
pub(crate) mod new;
pub(crate) mod version;
