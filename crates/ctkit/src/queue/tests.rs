//! How the queue behaves.

mod debounce;
mod holding;
mod holes;
mod limits;
mod model;
mod precedence;
mod random;
mod scene;
mod turns;
