//! Managers on a store that outlives them.

use ctkit::{Controller, Entry, Handle, Instances, Leases, Manager, ManagerBuilder, ObjectKey, Source, Store};
use tokio::{sync::oneshot, task::JoinHandle};

use crate::{process::Pause, world::quiet};

/// One life of a manager.
pub(crate) struct Life {
    pub(crate) handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// A manager of its own on a store.
pub(crate) fn alone(store: &Store) -> ManagerBuilder<Store> {
    Manager::builder(store.clone()).instances(Instances::alone()).seed(7)
}

// === impl Life ===

impl Life {
    /// One controller on a store, which has looked at everything.
    pub(crate) async fn new(store: &Store, controller: Controller) -> Self {
        let life = Self::ready(alone(store).controller(controller)).await;
        life.settled().await;
        life
    }

    /// Starts a manager.
    pub(crate) fn start<S: Source + Leases>(builder: ManagerBuilder<S>) -> Self {
        Self::paused_by(&Pause::default(), builder)
    }

    /// Starts a manager that can be stopped for a while.
    pub(crate) fn paused_by<S: Source + Leases>(pause: &Pause, builder: ManagerBuilder<S>) -> Self {
        let manager = builder.build().unwrap();
        let handle = manager.handle();
        let (stop, stopped) = oneshot::channel();
        let run = manager.run_until(async move { drop(stopped.await) });
        let task = tokio::spawn(pause.over(async move { run.await.unwrap() }));
        Self { handle, stop: Some(stop), task }
    }

    /// Starts a manager, and waits until it is ready.
    pub(crate) async fn ready<S: Source + Leases>(builder: ManagerBuilder<S>) -> Self {
        let life = Self::start(builder);
        assert!(life.handle.readiness().ready().await, "{:?}", life.handle.readiness().missing());
        life
    }

    /// Starts a manager, and waits until nothing is left to do for anybody.
    pub(crate) async fn begin<S: Source + Leases>(builder: ManagerBuilder<S>) -> Self {
        let life = Self::ready(builder).await;
        quiet().await;
        life
    }

    /// What is known of an object in the queue.
    pub(crate) async fn entry(&self, key: &ObjectKey) -> Option<Entry> {
        self.handle.entries().await.unwrap().into_iter().find(|entry| entry.object == *key)
    }

    /// Waits until it has nothing left to do.
    pub(crate) async fn settled(&self) {
        self.handle.settled().await.unwrap();
    }

    /// Ends as an operator would end it.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap();
    }

    /// Ends without a word.
    pub(crate) async fn crash(self) {
        self.task.abort();
        drop(self.task.await);
    }
}
