//! The test kit, used as its users do.

#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

mod agents;
mod controllers;
mod faults;
mod kinds;
mod time;
