//! The kit as a whole: real stores, real reactors, paused time, no sockets.

#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

mod agents;
mod booting;
mod editing;
mod faulty;
mod following;
mod kinds;
mod life;
mod listing;
mod lives;
mod log;
mod net;
mod obstructed;
mod ordering;
mod panicking;
mod parts;
mod process;
mod publishing;
mod references;
mod retrying;
mod stages;
mod status;
mod steering;
mod stopping;
mod syncing;
mod world;
