//! The kit across restarts, deletions and several instances: real stores, real buses and real agents, paused time, no
//! sockets.

#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

mod agents;
mod anywhere;
mod crash;
mod diary;
mod finalizers;
mod flaky;
mod fleet;
mod leader;
mod log;
mod machines;
mod net;
mod observer;
mod process;
mod restart;
mod shares;
mod world;
