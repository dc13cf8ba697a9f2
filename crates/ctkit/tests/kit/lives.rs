//! The kit across restarts, deletions and several instances, with buses and agents that come and go.

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
mod observer;
mod restart;
mod shares;
