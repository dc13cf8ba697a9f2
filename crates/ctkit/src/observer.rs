//! What users write to find out how things really are.

use std::{future::Future, marker::PhantomData, pin::Pin, sync::Arc};

use nimbus_core::{Failure, Object, Spec};
use nimbus_store::Record;

use crate::{context::Context, typed::typed};

/// Looks how things really are, for objects of kind `K`.
///
/// It is called from time to time for each object, in the version that was last reacted to. Nothing waits for it: what it
/// saw is dropped if a reaction to the object has begun meanwhile, because it may have seen the half of it. It can say in
/// the status what it saw, and that things have drifted; it cannot change what should be.
pub trait Observer<K>: Send + Sync + 'static {
    /// Looks how things are.
    fn observe(
        &self,
        cx: &Context,
        object: Arc<Object<K>>,
    ) -> impl Future<Output = Result<Observation, Failure>> + Send;
}

/// What an observer saw.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Observation {
    /// Things are as the reactor left them.
    InSync,
    /// They are not, for this reason: the reactor is called again.
    Drifted(String),
}

/// An observer of whatever kind.
pub(crate) trait ErasedObserver: Send + Sync {
    fn observe(self: Arc<Self>, cx: Context, record: Arc<Record>) -> Look;
}

type Look = Pin<Box<dyn Future<Output = Result<Observation, Failure>> + Send>>;

/// An observer without the type of its specs.
pub(crate) struct Erased<K, O> {
    observer: O,
    kind: PhantomData<fn(K)>,
}

// === impl Erased ===

impl<K, O> Erased<K, O> {
    pub(crate) fn new(observer: O) -> Self {
        Self { observer, kind: PhantomData }
    }
}

impl<K: Spec, O: Observer<K>> ErasedObserver for Erased<K, O> {
    fn observe(self: Arc<Self>, cx: Context, record: Arc<Record>) -> Look {
        Box::pin(async move { self.observer.observe(&cx, Arc::new(typed(&record)?)).await })
    }
}
