//! The agent runtime: makes true what the bus says, and reports how it went.
//!
//! An agent subscribes at a bus as a name with labels. What is for it arrives as objects, and a [`Handler`] for their kind
//! makes each of them true on this machine:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use nimbus_agent::{Agent, AgentError, Context, Failure, Handler, Object, Status};
//! # #[derive(Clone, PartialEq, prost::Message)]
//! # struct Port { #[prost(uint32, tag = "1")] number: u32 }
//! # impl prost::Name for Port { const NAME: &'static str = "Port"; const PACKAGE: &'static str = "demo.v1"; }
//! # struct Firewall;
//! # impl Handler<Port> for Firewall {
//! #     async fn apply(&self, _: &Context, _: Arc<Object<Port>>) -> Result<Status, Failure> { Ok(Status::applied()) }
//! #     async fn remove(&self, _: &Context, _: Arc<Object<Port>>) -> Result<(), Failure> { Ok(()) }
//! # }
//! # async fn run(stop: impl Future<Output = ()> + Send) -> Result<(), AgentError> {
//! Agent::builder("switch-1", "http://127.0.0.1:7400")
//!     .label("zone", "a")
//!     .cache("/var/lib/firewall/cache.redb")
//!     .handle(Firewall)
//!     .run_until(stop)
//!     .await
//! # }
//! ```
//!
//! What an agent promises:
//! - A handler never sees a referrer before its strong referents are applied here, nor the removal of a referent before
//!   its referrers are gone. A failed object holds back those that need it, and nobody else.
//! - Calls for one object never overlap. A failure is tried again until it succeeds, the object changes, or it is
//!   permanent; a panic is a failure of that object alone.
//! - Only what the bus gave is ever removed, and only when the bus has said that it is gone.
//! - A restart is sent the difference only, and needs no bus: the last good state is on disk.
//! - What it holds is compared with what the bus holds, again and again; a difference is healed, and counted.

mod agent;
mod board;
mod cache;
mod functions;
#[doc(hidden)]
pub mod fuzzing;
mod handle;
mod handler;
mod journal;
mod kinds;
mod metrics;
mod report;
mod settings;
mod subscription;
mod worker;

pub use agent::{Agent, AgentBuilder, AgentError, BuildError};
pub use board::Replace;
pub use cache::CacheError;
pub use functions::{Functions, functions};
pub use handle::{AgentStatus, Explanation, Handle, Link, Stopped};
pub use handler::{Context, Handler, Observation, Reason, Status};
pub use metrics::Metrics;
pub use nimbus_client::{Connector, Io, Tcp};
pub use nimbus_core::{
    AgentId, Backoff, Failure, Generation, Kind, Labels, Meta, Object, ObjectKey, Permanent, Reference, Revision, Spec,
    Uid,
};
pub use subscription::{Event, Subscription};
