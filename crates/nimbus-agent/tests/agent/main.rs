//! Agents on a real bus, whose network is memory and can be cut, stalled and taken away. Time is paused.

#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

mod api;
mod chaos;
mod detached;
mod events;
mod fake;
mod faults;
mod fleet;
mod healing;
mod order;
mod recorder;
mod reports;
mod resume;
mod world;
mod wrong_bus;
