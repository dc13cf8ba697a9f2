//! A controller of ours: what a user of ctkit would write.

mod source;
mod target;

use std::sync::Arc;

use anyhow::ensure;
use ctkit::{Action, Context, Controller, Failure, Manager, Object, Reactor, Record, Store};
use nimbus_core::Spec as _;
use parking_lot::Mutex;

use self::{
    source::{Workloads, pages},
    target::{Counted, Map},
};
use crate::{
    Arguments, Publish,
    controller::Finish,
    progress::Progress,
    resource::{PlacementSpec, WorkloadMessage},
    usage::Usage,
};

/// What follows from a workload.
struct Placements {
    /// Wants to be told what was dealt with before a restart, so that the kit writes it down.
    remembers: bool,
}

/// What there is before a controller runs.
pub(crate) struct Setting {
    pages: Vec<Vec<Arc<Record>>>,
    store: Option<Store>,
}

impl Setting {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        let store = matches!(arguments.publish, Publish::Collection).then(Store::in_memory);
        Self { pages: pages(arguments.objects, arguments.payload), store }
    }
}

/// Runs a controller until everything is written.
pub(crate) async fn run(
    arguments: &Arguments,
    Setting { pages, store }: Setting,
    progress: &Arc<Progress>,
) -> anyhow::Result<Finish> {
    let source = Workloads::new(arguments.objects, pages, progress.clone());
    let writes = source.writes();
    let controller = Controller::new::<WorkloadMessage>(Placements { remembers: arguments.remember });
    let controller = controller.named("bench").publishes::<PlacementSpec>();
    let controller = if arguments.status { controller } else { controller.without_ready_condition() };
    let (finish, children) = match store {
        None => {
            let map = Map::new(arguments.objects as usize);
            let manager = Manager::between(source, Counted::new(map.clone(), progress.clone()));
            (finish(manager.controller(controller).build()?, progress).await?, map.len())
        }
        Some(store) => {
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

impl Reactor<WorkloadMessage> for Placements {
    /// Publishes the child of an object.
    async fn on_apply(&self, cx: &Context, workload: Arc<Object<WorkloadMessage>>) -> Result<Action, Failure> {
        if let Some(placement) = workload.spec.placement() {
            let zone = &workload.spec.zone;
            cx.publish(Object::derived(&workload, "placement", placement).label("zone", zone)).await?;
        }
        Ok(Action::done())
    }

    fn remembers(&self) -> bool {
        self.remembers
    }
}
