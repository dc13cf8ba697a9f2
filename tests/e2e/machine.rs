//! Agents in this process that write down everything that they do.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use nimbus_agent::{Agent, Backoff, Context, Failure, Handle, Handler, Kind, Link, Object, Status};
use parking_lot::Mutex;
use prost_types::Any;
use tokio::task::JoinHandle;

use crate::{user::User, wait};

/// An agent that writes down everything that it does, and goes with this value.
pub(crate) struct Machine {
    pub(crate) handle: Handle,
    notes: Notes,
    running: JoinHandle<()>,
}

/// What an agent has done. Clones are the same.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// Specs of what is here, by name.
    held: BTreeMap<String, Vec<u8>>,
    /// All that was applied, in order.
    applied: Vec<(String, Vec<u8>)>,
    /// How often objects were removed.
    removed: BTreeMap<String, usize>,
    /// What was applied although it was here already, the very same.
    doubles: Vec<String>,
}

/// A bus that is gone is back in a moment.
const RECONNECT: Backoff = Backoff { base: Duration::from_millis(20), max: Duration::from_millis(200) };

// === impl Machine ===

impl Machine {
    pub(crate) fn start(id: &str, url: &str, kind: &str) -> Self {
        let notes = Notes::default();
        let kind = Kind::new(kind).unwrap();
        let agent = Agent::builder(id, url)
            .reconnect(RECONNECT)
            .handle_packed(kind, notes.clone())
            .build()
            .unwrap();
        let handle = agent.handle();
        let running = tokio::spawn(async move { agent.run_until(std::future::pending()).await.unwrap() });
        Self { handle, notes, running }
    }

    /// Waits until it has everything that the bus has for it, and has applied that.
    pub(crate) async fn in_sync(&mut self) {
        let settled = self.handle.wait_until(|status| status.link == Link::InSync && status.unfinished == 0);
        wait::for_long("an agent in sync", settled).await.unwrap();
    }

    /// Waits until it knows that it has lost the bus.
    pub(crate) async fn is_alone(&mut self) {
        let alone = self.handle.wait_until(|status| status.link != Link::InSync);
        wait::for_long("an agent that has lost the bus", alone).await.unwrap();
    }

    /// Waits until it has exactly what a user wants, and has never removed what somebody wanted, nor applied anything twice.
    pub(crate) async fn comes_to(&mut self, user: &User) {
        let wanted = user.wanted();
        let poll = async {
            while self.notes.0.lock().held != wanted {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let arrived = tokio::time::timeout(wait::LONG, poll).await;
        {
            let notes = self.notes.0.lock();
            let missing: Vec<_> = wanted
                .iter()
                .filter(|(name, spec)| notes.held.get(*name) != Some(*spec))
                .map(|(name, _)| name)
                .collect();
            let extra: Vec<_> = notes.held.keys().filter(|name| !wanted.contains_key(*name)).collect();
            assert!(arrived.is_ok(), "missing or old: {missing:?}\ntoo many: {extra:?}\n{:?}", self.handle.status());
            let wrong: Vec<_> = notes.removed.iter().filter(|(name, times)| **times > user.deleted(name)).collect();
            assert!(wrong.is_empty(), "removed more often than anybody deleted them: {wrong:?}");
            assert!(notes.doubles.is_empty(), "applied twice: {:?}", notes.doubles);
        }
        self.in_sync().await;
        assert_eq!(self.handle.status().mismatches, 0, "the bus held something else");
    }

    /// How often it has applied anything.
    pub(crate) fn applied(&self) -> usize {
        self.notes.0.lock().applied.len()
    }

    /// Everything that an object has been here, one after the other.
    pub(crate) fn history(&self, name: &str) -> Vec<Vec<u8>> {
        let notes = self.notes.0.lock();
        notes
            .applied
            .iter()
            .filter(|(other, _)| other == name)
            .map(|(_, spec)| spec.clone())
            .collect()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Handler<Any> for Notes {
    async fn apply(&self, _: &Context, object: Arc<Object<Any>>) -> Result<Status, Failure> {
        let (name, spec) = (object.name().to_owned(), object.spec.value.clone());
        let mut notes = self.0.lock();
        notes.applied.push((name.clone(), spec.clone()));
        if notes.held.insert(name.clone(), spec.clone()) == Some(spec) {
            notes.doubles.push(name);
        }
        Ok(Status::applied())
    }

    async fn remove(&self, _: &Context, object: Arc<Object<Any>>) -> Result<(), Failure> {
        let mut notes = self.0.lock();
        notes.held.remove(object.name());
        *notes.removed.entry(object.name().to_owned()).or_default() += 1;
        Ok(())
    }
}
