//! What must hold for the project as a whole: its contract, its layers, its table of features, its words.

#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

mod features;
mod golden;
mod layering;
mod samples;
mod sources;
mod tree;
mod words;
