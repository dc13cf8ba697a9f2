//! The controller and the agent of the example about network policies, in one process.

#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

#[path = "../../../ctkit/examples/policies/kinds.rs"]
mod kinds;
#[path = "../../../ctkit/examples/policies/reactor.rs"]
mod reactor;
#[path = "../../../ctkit/examples/policies/rules.rs"]
mod rules;
mod story;
#[path = "../../../../agents/zone-agent/src/zone.rs"]
mod zone;
