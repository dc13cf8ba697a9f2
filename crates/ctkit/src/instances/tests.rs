//! How instances divide their work.

mod divide;
mod doubt;
mod faults;
mod golden;
mod hand_over;
mod lease_table;
mod link;
mod pausable;
mod roles;
mod simulation;
mod world;
