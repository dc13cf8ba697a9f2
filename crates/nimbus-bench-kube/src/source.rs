//! A watcher that has something to list and then nothing to say.

use std::iter;

use futures::{Stream, StreamExt as _, stream};
use kube_runtime::watcher::{self, Event};

use crate::resource::Workload;

/// The events of a list, each made when it is asked for. Like a watch, the stream does not end.
pub(crate) fn events(objects: u64, payload: u32) -> impl Stream<Item = watcher::Result<Event<Workload>>> + Send {
    let listed = (0..objects).map(move |number| Event::InitApply(Workload::new(number, payload)));
    let events = iter::once(Event::Init).chain(listed).chain(iter::once(Event::InitDone));
    stream::iter(events.map(Ok)).chain(stream::pending())
}
