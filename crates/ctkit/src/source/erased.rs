//! A source without its type.

use std::pin::Pin;

use nimbus_core::{Kind, Position};
use tokio_stream::Stream;

use crate::{
    snapshot::Snapshot,
    source::{Event, Source, WatchError},
};

/// A watch under way.
pub(crate) type Watch = Pin<Box<dyn Stream<Item = Result<Event, WatchError>> + Send>>;

/// A source that is read, without its type.
pub(crate) trait DynSource: Send + Sync + 'static {
    fn watch(&self, kind: &Kind, from: Option<Position>) -> Watch;

    fn state(&self) -> Option<Snapshot>;
}

impl<S: Source> DynSource for S {
    fn watch(&self, kind: &Kind, from: Option<Position>) -> Watch {
        Box::pin(Source::watch(self, kind, from))
    }

    fn state(&self) -> Option<Snapshot> {
        Source::state(self)
    }
}
