//! The commands, one file each, but for `serve`.

pub(crate) mod agents;
pub(crate) mod apply;
pub(crate) mod completion;
pub(crate) mod delete;
pub(crate) mod describe;
pub(crate) mod diff;
pub(crate) mod edit;
pub(crate) mod explain;
pub(crate) mod get;
pub(crate) mod kinds;
pub(crate) mod list;
pub(crate) mod new;
pub(crate) mod propagation;
pub(crate) mod register;
pub(crate) mod top;
pub(crate) mod version;
pub(crate) mod wait;
pub(crate) mod watch;
