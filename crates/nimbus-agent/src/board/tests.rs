//! How the board behaves.

mod audit;
mod cycles;
mod drift;
mod failures;
mod floors;
mod groups;
mod large;
mod machine;
mod model;
mod order;
mod restarts;
mod world;
