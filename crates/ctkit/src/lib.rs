//! The controller kit: watches objects, calls reactors, publishes what they decide.

mod action;
mod context;
mod controller;
mod editor;
mod engine;
mod erased;
mod few;
#[cfg(test)]
mod fixtures;
mod functions;
mod handle;
mod instances;
mod leases;
mod manager;
mod observer;
mod plan;
mod publications;
pub mod queue;
mod reactor;
mod ready;
mod references;
mod reflector;
mod report;
mod snapshot;
mod source;
mod stage;
mod standing;
mod target;
mod typed;

pub use action::Action;
pub use context::Context;
pub use controller::{Controller, ControllerError, Deletion};
pub use editor::Editor;
pub use functions::{Functions, functions};
pub use handle::{Dangling, Entry, Explanation, Handle, HandleError, Waiting};
pub use instances::{
    InstanceId, Instances, InstancesConfig, InstancesError, InstancesStatus, NoLeases, Permit, Shard, ShardEvent,
    ShardEvents, ShardKeeper, ShardStatus, Shares, Standing,
};
pub use leases::{Acquired, Held, Leases};
pub use manager::{Manager, ManagerBuilder, ManagerError};
pub use nimbus_client::{Connector, Io, Tcp};
pub use nimbus_core::{
    AgentId, Backoff, Draft, Failure, Generation, InvalidDraft, Kind, Labels, Meta, Object, ObjectKey, Permanent,
    Revision, Spec, Uid,
};
pub use nimbus_store::{Committed, Effect, Guard, Op, OpenError, Outcome, Record, Txn};
pub use observer::{Observation, Observer};
pub use plan::{Planned, PlannedChange};
pub use queue::{Cause, Causes, Debounce};
pub use reactor::Reactor;
pub use ready::Readiness;
pub use references::Ref;
pub use reflector::{
    Batch, Reflector, ReflectorConfig, Reflectors, Subscription, WatchEpoch, WatchPhase, WatchStatus, Woken,
};
pub use report::{AgentFailure, AgentNews, AgentReport, Presence, Propagation};
pub use snapshot::Snapshot;
pub use source::{
    Change, CommitError, Event, Remote, RemoteBuilder, RemoteError, RemoteSync, Source, Store, StoreSync, WatchError,
};
pub use stage::Stage;
pub use target::{OpenSync, SyncEnded, Target, TargetEvent};
