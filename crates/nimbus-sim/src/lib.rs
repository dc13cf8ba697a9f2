//! A deterministic simulation of everything: one seed decides what happens, a model says what may be seen.

mod faults;
mod hosts;
mod machine;
mod model;
mod net;
mod once;
mod outcome;
mod run;
mod setup;
mod world;

pub use once::once;
pub use outcome::Outcome;
