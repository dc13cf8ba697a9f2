//! A controller of ours: what a user of ctkit would write.

mod source;
mod target;

use std::sync::Arc;

use anyhow::ensure;
use ctkit::{Action, Context, Controller, Failure, Manager, Object, Reactor, Store, functions};
use nimbus_core::Spec as _;
use parking_lot::Mutex;

use self::{
    source::Workloads,
    target::{Counted, Map},
};
use crate::{
    Arguments, Publish,
    controller::Finish,
    progress::Progress,
    resource::{PlacementSpec, WorkloadMessage},
    usage::Usage,
};

/// A reactor as a trait: it is told what was dealt with before a restart, so the kit writes that down.
struct Remembering;

/// Runs a controller until everything is written.
pub(crate) async fn run(arguments: &Arguments, progress: &Arc<Progress>) -> anyhow::Result<Finish> {
    let source = Workloads::new(arguments.objects, arguments.payload, progress.clone());
    let writes = source.writes();
    let controller = if arguments.remember {
        Controller::new::<WorkloadMessage>(Remembering)
    } else {
        let reactor = functions().on_apply(|cx, workload| async move { react(&cx, &workload).await });
        Controller::new::<WorkloadMessage>(reactor)
    };
    let controller = controller.named("bench").publishes::<PlacementSpec>();
    let controller = if arguments.status { controller } else { controller.without_ready_condition() };
    let (finish, children) = match arguments.publish {
        Publish::Map => {
            let map = Map::default();
            let manager = Manager::between(source, Counted::new(map.clone(), progress.clone()));
            (finish(manager.controller(controller).build()?, progress).await?, map.len())
        }
        Publish::Collection => {
            let store = Store::in_memory();
            let manager = Manager::between(source, Counted::new(store.clone(), progress.clone()));
            let finish = finish(manager.controller(controller).build()?, progress).await?;
            (finish, store.snapshot().list(&PlacementSpec::kind()).count())
        }
    };
    ensure!(children as u64 == arguments.objects, "{children} children were published, not {}", arguments.objects);
    let written = writes.load(std::sync::atomic::Ordering::Relaxed);
    let expected = arguments.objects * (u64::from(arguments.status) + u64::from(arguments.remember));
    ensure!(written == expected, "{written} writes reached the source, not {expected}");
    Ok(finish)
}

async fn finish(manager: Manager, progress: &Progress) -> anyhow::Result<Finish> {
    let handle = manager.handle();
    let finish = Mutex::new(None);
    manager
        .run_until(async {
            let at = progress.complete().await;
            *finish.lock() = Some(Usage::now().map(|usage| Finish { at, usage }));
            // What else there is to write is checked afterwards. An error means that it has stopped, and then everything
            // is settled.
            drop(handle.settled().await);
        })
        .await?;
    let Some(finish) = finish.into_inner() else { anyhow::bail!("the manager ended by itself") };
    finish
}

/// Publishes the child of an object.
async fn react(cx: &Context, workload: &Object<WorkloadMessage>) -> Result<Action, Failure> {
    if let Some(placement) = workload.spec.placement() {
        let zone = &workload.spec.zone;
        cx.publish(Object::derived(workload, "placement", placement).label("zone", zone)).await?;
    }
    Ok(Action::done())
}

impl Reactor<WorkloadMessage> for Remembering {
    async fn on_apply(&self, cx: &Context, workload: Arc<Object<WorkloadMessage>>) -> Result<Action, Failure> {
        react(cx, &workload).await
    }
}
