//! What the program can do.

pub(crate) mod once;
pub(crate) mod planted;
pub(crate) mod repeat;
pub(crate) mod seeds;
pub(crate) mod soak;
