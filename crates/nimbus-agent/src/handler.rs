//! What users write: how objects of a kind are made true on this machine.

use std::{future::Future, sync::Arc};

use nimbus_client::Item;
use nimbus_core::{AgentId, Failure, Object, ObjectKey, Spec};
use prost_types::Any;

/// Makes objects of kind `K` true on this machine.
///
/// Calls for one object never overlap; calls for different objects run concurrently. A call may be repeated: after an
/// error, after a restart, when the machine has drifted. So each must lead to the same result however often it runs.
///
/// Implementations write `async fn`:
///
/// ```
/// # use std::sync::Arc;
/// # use nimbus_agent::{Context, Failure, Handler, Object, Status};
/// # #[derive(Clone, PartialEq, prost::Message)]
/// # struct Port { #[prost(uint32, tag = "1")] number: u32 }
/// # impl prost::Name for Port { const NAME: &'static str = "Port"; const PACKAGE: &'static str = "demo.v1"; }
/// struct Firewall;
///
/// impl Handler<Port> for Firewall {
///     async fn apply(&self, _: &Context, port: Arc<Object<Port>>) -> Result<Status, Failure> {
///         open(port.spec.number).await?;
///         Ok(Status::applied())
///     }
///
///     async fn remove(&self, _: &Context, port: Arc<Object<Port>>) -> Result<(), Failure> {
///         close(port.spec.number).await?;
///         Ok(())
///     }
/// }
/// # async fn open(_: u32) -> std::io::Result<()> { Ok(()) }
/// # async fn close(_: u32) -> std::io::Result<()> { Ok(()) }
/// ```
pub trait Handler<K>: Send + Sync + 'static {
    /// Makes the object true. `Ok` is the acknowledgement; after an error the last good version still counts as applied,
    /// and the object is tried again.
    fn apply(&self, cx: &Context, object: Arc<Object<K>>) -> impl Future<Output = Result<Status, Failure>> + Send;

    /// Takes back what `apply` did, of an object in the version that was last applied, or begun. Nothing there is success.
    fn remove(&self, cx: &Context, object: Arc<Object<K>>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Looks whether the machine still is as the object was last applied. What has drifted is applied again.
    fn observe(
        &self,
        cx: &Context,
        object: Arc<Object<K>>,
    ) -> impl Future<Output = Result<Observation, Failure>> + Send {
        let _ = (cx, object);
        async { Ok(Observation::Unknown) }
    }
}

/// What a handler says of an object that it applied.
#[derive(Debug, Clone, PartialEq, Default)]
#[must_use]
pub struct Status {
    pub(crate) degraded: Option<Failure>,
    pub(crate) detail: Option<Any>,
}

/// What `observe` found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Observation {
    /// Nobody looked.
    Unknown,
    /// As it was applied.
    InSync,
    /// Otherwise, for this reason.
    Drifted(String),
}

/// Why a handler is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The object is new, or has changed.
    Changed,
    /// The agent has started, and cannot know whether its work outlived it.
    Started,
    /// The last attempt failed.
    Retry,
    /// The machine no longer is as it should be.
    Drift,
}

/// The circumstances of a call.
#[derive(Debug, Clone)]
pub struct Context {
    pub(crate) agent: AgentId,
    pub(crate) reason: Reason,
    pub(crate) attempt: u32,
    pub(crate) previous: Option<Arc<Item>>,
}

// === impl Status ===

impl Status {
    /// All is well.
    pub fn applied() -> Self {
        Self::default()
    }

    /// Applied, but not as well as it should be. It counts as applied, and operators see why it is worth a look.
    pub fn degraded(code: &'static str, message: impl Into<String>) -> Self {
        Self { degraded: Some(Failure::new(message).with_code(code)), detail: None }
    }

    /// With a message for controllers, of a kind of its own.
    pub fn with_detail<M: Spec>(self, detail: &M) -> Self {
        Self { detail: Some(detail.pack()), ..self }
    }
}

// === impl Context ===

impl Context {
    /// The agent.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// Why the handler is called.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// How often this version was tried before.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The version that was last applied here, if there is one, also from before a restart.
    pub fn previous<K: Spec>(&self) -> Option<Object<K>> {
        Object::from_wire(&self.previous.as_ref()?.object).ok()
    }

    /// Its key and nothing more, for handlers of many kinds.
    pub fn previous_key(&self) -> Option<&ObjectKey> {
        self.previous.as_deref().map(Item::key)
    }
}

impl<K, H: Handler<K>> Handler<K> for Arc<H>
where
    K: Send + Sync + 'static,
{
    fn apply(&self, cx: &Context, object: Arc<Object<K>>) -> impl Future<Output = Result<Status, Failure>> + Send {
        H::apply(self, cx, object)
    }

    fn remove(&self, cx: &Context, object: Arc<Object<K>>) -> impl Future<Output = Result<(), Failure>> + Send {
        H::remove(self, cx, object)
    }

    fn observe(
        &self,
        cx: &Context,
        object: Arc<Object<K>>,
    ) -> impl Future<Output = Result<Observation, Failure>> + Send {
        H::observe(self, cx, object)
    }
}
