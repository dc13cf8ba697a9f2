//! A remote on a real bus, whose network is memory and can be cut and taken away. Time is paused.

#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

mod chaos;
mod commit;
mod leases;
mod reports;
mod scripted;
mod sync;
mod watch;
mod world;
