//! The controller: what a user of kube-runtime would write.

use std::{collections::HashMap, convert::Infallible, error::Error, future, pin::pin, sync::Arc};

use futures::{Stream, StreamExt as _, TryStreamExt as _};
use kube_runtime::{
    Config, Controller, WatchStreamExt as _, applier,
    controller::{Action, trigger_self},
    reflector::{self, ReflectHandle, Store, reflector},
    watcher::{self, Event},
};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    Arguments, Run, Stream as How,
    publish::{PublishError, Publisher},
    resource::Workload,
    source::events,
    usage::Usage,
};

/// The moment at which every object has its child.
#[derive(Debug)]
pub(crate) struct Finish {
    pub(crate) at: Instant,
    /// Taken before anything is dropped.
    pub(crate) usage: Usage,
}

/// Runs a controller until every object has its child.
pub(crate) async fn run(
    arguments: &Arguments,
    workloads: Vec<Workload>,
    publisher: &Arc<Publisher>,
) -> anyhow::Result<Finish> {
    let config = Config::default().concurrency(arguments.concurrency);
    let events = events(workloads);
    let context = publisher.clone();
    match (arguments.stream, arguments.run) {
        (How::Own, Run::Spawned) => {
            let (reader, writer) = reflector::store();
            let controller = Controller::for_stream(events.reflect(writer).applied_objects(), reader);
            drive(controller.with_config(config).run(reconcile, never_again, context), publisher).await
        }
        (How::Own, Run::Inline) => {
            let (reader, writer) = reflector::store();
            let queue = trigger_self(events.reflect(writer).applied_objects(), ());
            drive(applier(boxed, never_again, context, reader, queue, config), publisher).await
        }
        (How::Shared, Run::Spawned) => {
            let (reader, objects, _task) = share(arguments.buffer, events);
            let controller = Controller::for_shared_stream(objects, reader);
            drive(controller.with_config(config).run(reconcile, never_again, context), publisher).await
        }
        (How::Shared, Run::Inline) => {
            let (reader, objects, _task) = share(arguments.buffer, events);
            let queue = trigger_self(objects.map(Ok::<_, Infallible>), ());
            drive(applier(boxed, never_again, context, reader, queue, config), publisher).await
        }
        (_, Run::Direct) => direct(events, publisher).await,
    }
}

/// Runs the reflector as a task, which ends when the set is dropped.
fn share(
    buffer: u32,
    events: impl Stream<Item = watcher::Result<Event<Workload>>> + Send + 'static,
) -> (Store<Workload>, ReflectHandle<Workload>, JoinSet<()>) {
    let (reader, writer) = reflector::store_shared(buffer as usize);
    let objects = writer.subscribe().expect("a shared store can be subscribed to");
    let mut task = JoinSet::new();
    task.spawn(reflector(writer, events).for_each(|_| future::ready(())));
    (reader, objects, task)
}

/// Keeps each object by its name, and reconciles all of them when the list is complete.
async fn direct(
    events: impl Stream<Item = watcher::Result<Event<Workload>>>,
    publisher: &Arc<Publisher>,
) -> anyhow::Result<Finish> {
    let mut events = pin!(events);
    let mut held: HashMap<Option<String>, Arc<Workload>> = HashMap::new();
    while let Some(event) = events.try_next().await? {
        match event {
            Event::InitApply(workload) => _ = held.insert(workload.metadata.name.clone(), Arc::new(workload)),
            Event::InitDone => break,
            _ => {}
        }
    }
    for workload in held.values() {
        reconcile(workload.clone(), publisher.clone()).await?;
    }
    Ok(Finish { at: publisher.complete().await, usage: Usage::now()? })
}

/// Polls a controller until every child is published, or the first error.
async fn drive<T, E>(results: impl Stream<Item = Result<T, E>>, publisher: &Publisher) -> anyhow::Result<Finish>
where
    E: Error + Send + Sync + 'static,
{
    let results = pin!(results.try_for_each(|_| future::ready(Ok(()))));
    tokio::select! {
        result = results => {
            result?;
            anyhow::bail!("the controller ended by itself")
        }
        at = publisher.complete() => Ok(Finish { at, usage: Usage::now()? }),
    }
}

/// Publishes the child of an object.
async fn reconcile(workload: Arc<Workload>, publisher: Arc<Publisher>) -> Result<Action, PublishError> {
    if let Some(placement) = workload.placement() {
        publisher.publish(placement).await?;
    }
    publisher.report(workload.metadata.generation)?;
    Ok(Action::await_change())
}

fn boxed(
    workload: Arc<Workload>,
    publisher: Arc<Publisher>,
) -> impl Future<Output = Result<Action, PublishError>> + Send + Unpin {
    Box::pin(reconcile(workload, publisher))
}

/// The first error ends the measurement anyway.
fn never_again(_: Arc<Workload>, _: &PublishError, _: Arc<Publisher>) -> Action {
    Action::await_change()
}
