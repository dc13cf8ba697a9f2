//! What users write: what follows from objects of a kind.

mod erased;

use std::{future::Future, sync::Arc};

use nimbus_core::{Failure, Object};

pub(crate) use self::erased::{Call, Caller, Erased, ErasedReactor, Reaction};
use crate::{action::Action, context::Context, report::AgentReport};

/// Decides what follows from objects of kind `K`.
///
/// Calls for one object never overlap, whatever they are about; calls for different objects run concurrently. A call may
/// be repeated: after an error, after a restart, when something that the object refers to has changed. So each must lead
/// to the same result however often it runs.
///
/// What a call publishes is owned by the object: it appears when the call has returned `Ok`, all of it at once, and what
/// an earlier call published and this one did not is withdrawn. After an error, what was there before stays.
///
/// Implementations write `async fn`, and only those that they need:
///
/// ```
/// # use std::sync::Arc;
/// # use ctkit::{Action, Context, Failure, Object, Permanent as _, Reactor};
/// # #[derive(Clone, PartialEq, prost::Message)]
/// # struct Policy { #[prost(string, repeated, tag = "1")] zones: Vec<String> }
/// # impl prost::Name for Policy { const NAME: &'static str = "Policy"; const PACKAGE: &'static str = "demo.v1"; }
/// # #[derive(Clone, PartialEq, prost::Message)]
/// # struct Rules { #[prost(string, tag = "1")] text: String }
/// # impl prost::Name for Rules { const NAME: &'static str = "Rules"; const PACKAGE: &'static str = "demo.v1"; }
/// # fn compile(_: &Policy) -> Result<Rules, std::fmt::Error> { Ok(Rules::default()) }
/// struct Policies;
///
/// impl Reactor<Policy> for Policies {
///     async fn on_apply(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
///         let rules = compile(&policy.spec).permanent()?; // only an edit can cure it
///         for zone in &policy.spec.zones {
///             cx.publish(Object::derived(&policy, zone, rules.clone()).for_label("zone", zone)).await?;
///         }
///         Ok(Action::done()) // zones that are not published any more are withdrawn
///     }
/// }
/// ```
pub trait Reactor<K>: Send + Sync + 'static {
    /// The object should be like this. Called for whatever the more special calls do not take.
    fn on_apply(&self, cx: &Context, object: Arc<Object<K>>) -> impl Future<Output = Result<Action, Failure>> + Send {
        let _ = (cx, object);
        async { Ok(Action::ignored()) }
    }

    /// No version of the object has been dealt with yet.
    fn on_create(&self, cx: &Context, object: Arc<Object<K>>) -> impl Future<Output = Result<Action, Failure>> + Send {
        self.on_apply(cx, object)
    }

    /// `old` is the version that this reactor last returned `Ok` for.
    fn on_update(
        &self,
        cx: &Context,
        old: Arc<Object<K>>,
        new: Arc<Object<K>>,
    ) -> impl Future<Output = Result<Action, Failure>> + Send {
        let _ = old;
        self.on_apply(cx, new)
    }

    /// The object is gone; `last` is the version that this reactor last returned `Ok` for. What it published is withdrawn
    /// when this returns `Ok`.
    ///
    /// Not called for an object that was never dealt with.
    fn on_delete(&self, cx: &Context, last: Arc<Object<K>>) -> impl Future<Output = Result<Action, Failure>> + Send {
        let _ = (cx, last);
        async { Ok(Action::done()) }
    }

    /// Agents have said something about what was published for an object, or were lost. Nothing can be published here.
    fn on_agent_status(
        &self,
        cx: &Context,
        report: AgentReport<K>,
    ) -> impl Future<Output = Result<Action, Failure>> + Send {
        let _ = (cx, report);
        async { Ok(Action::ignored()) }
    }

    /// Whether `old` and `last` must be known after a restart as well, which costs a write for each reaction.
    ///
    /// A reactor that has only `on_apply` can say no: what it published for objects that were deleted while it was down is
    /// withdrawn in any case. But when it fills a new bus, nobody knows what an object that fails had published before, and
    /// agents remove that until it succeeds.
    fn remembers(&self) -> bool {
        true
    }
}

impl<K, R: Reactor<K>> Reactor<K> for Arc<R>
where
    K: Send + Sync + 'static,
{
    fn on_apply(&self, cx: &Context, object: Arc<Object<K>>) -> impl Future<Output = Result<Action, Failure>> + Send {
        R::on_apply(self, cx, object)
    }

    fn on_create(&self, cx: &Context, object: Arc<Object<K>>) -> impl Future<Output = Result<Action, Failure>> + Send {
        R::on_create(self, cx, object)
    }

    fn on_update(
        &self,
        cx: &Context,
        old: Arc<Object<K>>,
        new: Arc<Object<K>>,
    ) -> impl Future<Output = Result<Action, Failure>> + Send {
        R::on_update(self, cx, old, new)
    }

    fn on_delete(&self, cx: &Context, last: Arc<Object<K>>) -> impl Future<Output = Result<Action, Failure>> + Send {
        R::on_delete(self, cx, last)
    }

    fn on_agent_status(
        &self,
        cx: &Context,
        report: AgentReport<K>,
    ) -> impl Future<Output = Result<Action, Failure>> + Send {
        R::on_agent_status(self, cx, report)
    }

    fn remembers(&self) -> bool {
        R::remembers(self)
    }
}
