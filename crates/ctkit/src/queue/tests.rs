//! How the queue behaves.

mod apart;
mod debounce;
mod holding;
mod holes;
mod limits;
mod model;
mod precedence;
mod random;
mod scene;
mod turns;
