//! A watcher that has something to list and then nothing to say.

use std::iter;

use futures::{Stream, StreamExt as _, stream};
use kube_runtime::watcher::{self, Event};

use crate::resource::Workload;

/// What is listed.
pub(crate) fn workloads(objects: u64, payload: u32) -> Vec<Workload> {
    (0..objects).map(|number| Workload::new(number, payload)).collect()
}

/// The events of a list. Like a watch, the stream does not end.
pub(crate) fn events(workloads: Vec<Workload>) -> impl Stream<Item = watcher::Result<Event<Workload>>> + Send {
    let listed = workloads.into_iter().map(Event::InitApply);
    let events = iter::once(Event::Init).chain(listed).chain(iter::once(Event::InitDone));
    stream::iter(events.map(Ok)).chain(stream::pending())
}
