//! The kinds that an agent handles, and the handlers behind one type.

use std::{collections::BTreeMap, future::Future, marker::PhantomData, pin::Pin, sync::Arc};

use nimbus_client::Item;
use nimbus_core::{Failure, Kind, Object, ObjectError, Permanent as _, Spec};
use prost_types::Any;

use crate::handler::{Context, Handler, Observation, Status};

/// A handler of some kind. Each call owns what it needs, so that it can run anywhere.
pub(crate) trait Erased: Send + Sync {
    /// Whether the handler can be called for it.
    fn check(&self, item: &Item) -> Result<(), Failure>;
    fn apply(self: Arc<Self>, cx: Context, item: Arc<Item>) -> BoxFuture<Result<Status, Failure>>;
    fn remove(self: Arc<Self>, cx: Context, item: Arc<Item>) -> BoxFuture<Result<(), Failure>>;
    fn observe(self: Arc<Self>, cx: Context, item: Arc<Item>) -> BoxFuture<Result<Observation, Failure>>;
}

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The kinds that an agent handles.
pub(crate) type Kinds = BTreeMap<Kind, Arc<dyn Erased>>;

/// A handler and how its objects are read.
struct Typed<K, H> {
    handler: H,
    read: Read<K>,
    kind: PhantomData<fn(K)>,
}

/// Reads an object.
type Read<K> = fn(&nimbus_wire::v1::Object) -> Result<Object<K>, ObjectError>;

/// Of an object that is not of the kind that it says to be.
const UNREADABLE: &str = "UNREADABLE";

/// Puts a handler of a known kind behind one type.
pub(crate) fn typed<K: Spec, H: Handler<K>>(handler: H) -> Arc<dyn Erased> {
    Arc::new(Typed { handler, read: Object::<K>::from_wire, kind: PhantomData })
}

/// The same for objects whose specs stay packed.
pub(crate) fn packed<H: Handler<Any>>(handler: H) -> Arc<dyn Erased> {
    Arc::new(Typed { handler, read: Object::packed, kind: PhantomData })
}

// === impl Typed ===

impl<K, H> Typed<K, H> {
    /// What cannot be read will not be readable before it changes.
    fn read(&self, item: &Item) -> Result<Arc<Object<K>>, Failure> {
        (self.read)(&item.object)
            .map(Arc::new)
            .permanent()
            .map_err(|failure| failure.with_code(UNREADABLE))
    }
}

impl<K: Send + Sync + 'static, H: Handler<K>> Erased for Typed<K, H> {
    fn check(&self, item: &Item) -> Result<(), Failure> {
        self.read(item).map(drop)
    }

    fn apply(self: Arc<Self>, cx: Context, item: Arc<Item>) -> BoxFuture<Result<Status, Failure>> {
        Box::pin(async move { self.handler.apply(&cx, self.read(&item)?).await })
    }

    fn remove(self: Arc<Self>, cx: Context, item: Arc<Item>) -> BoxFuture<Result<(), Failure>> {
        Box::pin(async move { self.handler.remove(&cx, self.read(&item)?).await })
    }

    fn observe(self: Arc<Self>, cx: Context, item: Arc<Item>) -> BoxFuture<Result<Observation, Failure>> {
        Box::pin(async move { self.handler.observe(&cx, self.read(&item)?).await })
    }
}
