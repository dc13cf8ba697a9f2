//! How subscriptions are answered, against a model: without a network, and on a clock that stands still.

mod model;
mod reader;
