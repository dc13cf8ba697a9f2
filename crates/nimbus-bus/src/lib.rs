//! The gRPC bus: serves a collection to agents and takes what publishers want to exist.
//!
//! The bus takes connections and a shutdown future; it never binds a socket, reads the environment or makes up
//! randomness: epoch and seed are given to it, and time is tokio's, so that it also runs inside a simulated network.

mod admission;
mod budget;
mod calls;
mod config;
mod connections;
mod convert;
mod embedded;
mod fault;
mod fleet;
mod handmade;
mod identity;
mod incoming;
mod inner;
mod leasing;
mod lists;
mod metrics;
mod observing;
mod outgoing;
mod publishing;
mod readiness;
mod reading;
mod referring;
mod reflection;
mod schemas;
mod server;
mod session;
mod sessions;
mod subscribe;
mod writing;

pub use config::{Config, Limits};
pub use identity::{Identity, Proof};
pub use metrics::Metrics;
pub use readiness::Unready;
pub use schemas::{SchemaError, SchemaLimits, Schemas};
pub use server::{Bus, ServeError};
pub use writing::OpenSync;
