//! Agents in this process, and what they were asked to do.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use nimbus_agent::{Agent, Context, Failure, Handler, Object, Status};
use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, oneshot},
    task::JoinHandle,
};

use crate::{kinds::Rules, net::Net};

/// What the agents were asked to do. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Machines(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// What each machine has: the text, by zone.
    have: Mutex<BTreeMap<String, BTreeMap<String, String>>>,
    calls: Mutex<Vec<String>>,
    /// Machines that do not get on with a removal until they may.
    held: Mutex<BTreeSet<String>>,
    gate: Semaphore0,
}

/// A semaphore without permits.
struct Semaphore0(Semaphore);

/// An agent that runs.
pub(crate) struct Machine {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

// === impl Machines ===

impl Machines {
    /// One more agent, in a zone.
    pub(crate) fn run(&self, net: &Net, id: &str, zone: &str) -> Machine {
        let seed = id.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31) + u64::from(byte));
        let agent = Agent::builder(id, "http://bus:7400")
            .connector(net.clone())
            .label("zone", zone)
            .handle::<Rules, _>(self.clone())
            .seed(seed)
            .build()
            .unwrap();
        let (stop, stopped) = oneshot::channel();
        let run = agent.run_until(async { drop(stopped.await) });
        Machine { stop: Some(stop), task: tokio::spawn(async move { run.await.unwrap() }) }
    }

    /// What was called since this was last asked, sorted.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut calls = std::mem::take(&mut *self.0.calls.lock());
        calls.sort_unstable();
        calls
    }

    /// What a machine has.
    pub(crate) fn has(&self, id: &str) -> BTreeMap<String, String> {
        self.0.have.lock().get(id).cloned().unwrap_or_default()
    }

    /// From now on, this machine does not get on with a removal.
    pub(crate) fn hold(&self, id: &str) {
        self.0.held.lock().insert(id.to_owned());
    }

    /// Lets everybody get on.
    pub(crate) fn let_go(&self) {
        self.0.held.lock().clear();
        self.0.gate.0.add_permits(1000);
    }
}

impl Handler<Rules> for Machines {
    async fn apply(&self, cx: &Context, rules: Arc<Object<Rules>>) -> Result<Status, Failure> {
        let (id, Rules { zone, text }) = (cx.agent().to_string(), rules.spec.clone());
        self.0.calls.lock().push(format!("{id}: apply {zone}={text}"));
        self.0.have.lock().entry(id).or_default().insert(zone, text);
        Ok(Status::applied())
    }

    async fn remove(&self, cx: &Context, rules: Arc<Object<Rules>>) -> Result<(), Failure> {
        let (id, zone) = (cx.agent().to_string(), rules.spec.zone.clone());
        if self.0.held.lock().contains(&id) {
            self.0.gate.0.acquire().await.unwrap().forget();
        }
        self.0.calls.lock().push(format!("{id}: remove {zone}"));
        self.0.have.lock().entry(id).or_default().remove(&zone);
        Ok(())
    }
}

// === impl Semaphore0 ===

impl Default for Semaphore0 {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

// === impl Machine ===

impl Machine {
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
