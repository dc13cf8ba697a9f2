//! The controllers of a world, each a manager of its own.

use std::time::Duration;

use ctkit::{Controller, Entry, Handle, Manager, ManagerBuilder, Planned, Remote, Store};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use crate::{agent::BUS, faulty::Faulty, world::World};

/// A controller, and how to make it again.
pub(crate) struct Running {
    make: Box<dyn Fn() -> Controller + Send + Sync>,
    run: Option<Run>,
}

struct Run {
    handle: Handle,
    stop: oneshot::Sender<()>,
    task: AbortOnDropHandle<()>,
}

/// When this has passed, everything that could be answered at once is.
const A_MOMENT: Duration = Duration::from_millis(1);

// === impl World ===

impl World {
    /// Runs a controller from now on. It is made again after every restart, as the process that it stands for would.
    ///
    /// # Panics
    /// If it cannot be run like this; the message says why.
    pub fn controller(&mut self, make: impl Fn() -> Controller + Send + Sync + 'static) {
        let run = Some(self.run(make()));
        self.controllers.push(Running { make: Box::new(make), run });
    }

    /// Stops controllers as an operator would, so that each ends what it has begun, and starts them again.
    pub async fn restart_controllers(&mut self) {
        for run in self.controllers.iter_mut().filter_map(|controller| controller.run.take()) {
            // Either fails only if it has ended by itself.
            let _ = run.stop.send(());
            drop(run.task.await);
        }
        self.start_controllers();
    }

    /// Ends controllers without a word, in the midst of what they do, and starts them again.
    pub async fn crash_controllers(&mut self) {
        self.kill_controllers().await;
        self.start_controllers();
    }

    /// Ends controllers without a word.
    pub async fn kill_controllers(&mut self) {
        for run in self.controllers.iter_mut().filter_map(|controller| controller.run.take()) {
            run.task.abort();
            drop(run.task.await);
        }
    }

    /// Starts those controllers that do not run.
    pub fn start_controllers(&mut self) {
        for index in 0..self.controllers.len() {
            if self.controllers[index].run.is_none() {
                let controller = (self.controllers[index].make)();
                self.controllers[index].run = Some(self.run(controller));
            }
        }
    }

    /// What controllers have not simply done: what waits, why, until when, and how often it was tried.
    pub async fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for run in self.runs() {
            // One that has stopped has nothing to do.
            entries.extend(run.handle.entries().await.unwrap_or_default());
        }
        entries
    }

    /// What a controller would do with the objects that there are. Nothing is published, and nothing is written.
    ///
    /// # Panics
    /// If it cannot be run like this.
    pub async fn plan(&self, controller: Controller) -> Vec<Planned> {
        let manager = self.manager().controller(controller).dry_run().build();
        manager.unwrap_or_else(|error| panic!("{error}")).plan().await
    }

    /// What a controller lacks that has not begun yet, has not found the bus again, or is still filling it.
    pub(crate) fn missing(&self) -> Option<String> {
        if self.runs().count() > self.link.live() {
            return Some("a controller is not connected".to_owned());
        }
        let missing = self.runs().flat_map(|run| run.handle.readiness().missing()).next()?;
        Some(format!("a controller is not ready: {missing}"))
    }

    /// Whether every controller has written what it has to say.
    pub(crate) async fn has_written(&self) -> bool {
        for run in self.runs() {
            if tokio::time::timeout(A_MOMENT, run.handle.settled()).await.is_err() {
                return false;
            }
        }
        true
    }

    fn runs(&self) -> impl Iterator<Item = &Run> {
        self.controllers.iter().filter_map(|controller| controller.run.as_ref())
    }

    fn manager(&self) -> ManagerBuilder<Faulty<Store>> {
        let remote = Remote::builder(BUS).connector(self.link.clone()).seed(self.fork()).build();
        let remote = remote.expect("the address of the bus is one");
        Manager::between(Faulty::new(self.api.clone(), &self.source), Faulty::new(remote, &self.target))
            .seed(self.fork())
    }

    fn run(&self, controller: Controller) -> Run {
        let manager = self.manager().controller(controller).build().unwrap_or_else(|error| panic!("{error}"));
        let handle = manager.handle();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let ended = manager.run_until(async { drop(stopped.await) }).await;
            ended.unwrap_or_else(|error| panic!("a manager: {error}"));
        });
        Run { handle, stop, task: AbortOnDropHandle::new(task) }
    }
}
