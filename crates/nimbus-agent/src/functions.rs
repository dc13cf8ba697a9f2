//! Handlers made of closures.

use std::{fmt, future::Future, marker::PhantomData, sync::Arc};

use nimbus_core::{Failure, Object};

use crate::handler::{Context, Handler, Status};

/// A handler made of two closures; see [`functions`].
pub struct Functions<K, A, R> {
    apply: A,
    remove: R,
    kind: PhantomData<fn(K)>,
}

/// Makes a handler of two closures.
///
/// ```
/// # use nimbus_agent::{functions, Handler, Status};
/// # #[derive(Clone, PartialEq, prost::Message)]
/// # struct Port { #[prost(uint32, tag = "1")] number: u32 }
/// # impl prost::Name for Port { const NAME: &'static str = "Port"; const PACKAGE: &'static str = "demo.v1"; }
/// # fn check(_: impl Handler<Port>) {}
/// # check(
/// functions::<Port, _, _, _, _>(
///     |_, port| async move { println!("open {}", port.spec.number); Ok(Status::applied()) },
///     |_, port| async move { println!("close {}", port.spec.number); Ok(()) },
/// )
/// # );
/// ```
pub fn functions<K, A, AF, R, RF>(apply: A, remove: R) -> Functions<K, A, R>
where
    A: Fn(Context, Arc<Object<K>>) -> AF + Send + Sync + 'static,
    AF: Future<Output = Result<Status, Failure>> + Send,
    R: Fn(Context, Arc<Object<K>>) -> RF + Send + Sync + 'static,
    RF: Future<Output = Result<(), Failure>> + Send,
{
    Functions { apply, remove, kind: PhantomData }
}

// === impl Functions ===

impl<K, A, AF, R, RF> Handler<K> for Functions<K, A, R>
where
    K: Send + Sync + 'static,
    A: Fn(Context, Arc<Object<K>>) -> AF + Send + Sync + 'static,
    AF: Future<Output = Result<Status, Failure>> + Send,
    R: Fn(Context, Arc<Object<K>>) -> RF + Send + Sync + 'static,
    RF: Future<Output = Result<(), Failure>> + Send,
{
    fn apply(&self, cx: &Context, object: Arc<Object<K>>) -> impl Future<Output = Result<Status, Failure>> + Send {
        (self.apply)(cx.clone(), object)
    }

    fn remove(&self, cx: &Context, object: Arc<Object<K>>) -> impl Future<Output = Result<(), Failure>> + Send {
        (self.remove)(cx.clone(), object)
    }
}

impl<K, A, R> fmt::Debug for Functions<K, A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Functions").finish_non_exhaustive()
    }
}
