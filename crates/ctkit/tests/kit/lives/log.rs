//! Who reacted to what, and when: a reactor for several instances that share their work.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ctkit::{
    Action, Context, Controller, Failure, InstanceId, Instances, Manager, ManagerBuilder, Object, Reactor, Source,
    Store,
};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::kinds::{Policy, Rules};

/// Who reacted to what, and when. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Entry>>>);

/// One reaction.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) instance: String,
    pub(crate) name: String,
    pub(crate) begin: Instant,
    /// None while it runs.
    pub(crate) end: Option<Instant>,
    pub(crate) old: Option<String>,
    /// None if it was deleted.
    pub(crate) new: Option<String>,
    pub(crate) good: bool,
}

/// One instance, which takes its time.
struct Worker {
    log: Log,
    instance: String,
    takes: Duration,
}

/// A reaction under way.
struct UnderWay<'a>(&'a Log, usize);

// === impl Log ===

impl Log {
    /// One more instance that notes here what it does.
    pub(crate) fn instance(&self, store: &Store, name: &str, instances: Instances) -> ManagerBuilder<Store> {
        self.slow(store, name, instances, Duration::from_millis(20))
    }

    /// One whose reactions take so long.
    pub(crate) fn slow(
        &self,
        store: &Store,
        name: &str,
        instances: Instances,
        takes: Duration,
    ) -> ManagerBuilder<Store> {
        let worker = Worker { log: self.clone(), instance: name.to_owned(), takes };
        let seed = name.bytes().map(u64::from).sum();
        Manager::builder(store.clone())
            .instances(instances.instance(InstanceId::new(name)))
            .controller(Controller::new(worker).named("policies").publishes::<Rules>())
            .seed(seed)
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.0.lock().clone()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Reactions to one object that ran at the same time.
    pub(crate) fn doubles(&self) -> Vec<(Entry, Entry)> {
        let overlap = |pair: &[Entry]| pair[0].end.is_none_or(|end| pair[1].begin < end);
        let by_name = self.by_name();
        let pairs = by_name.values().flat_map(|entries| entries.windows(2));
        pairs
            .filter(|pair| overlap(pair))
            .map(|pair| (pair[0].clone(), pair[1].clone()))
            .collect()
    }

    /// For each object its reactions, in the order in which they began.
    pub(crate) fn by_name(&self) -> BTreeMap<String, Vec<Entry>> {
        let mut by_name: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
        for entry in self.entries() {
            by_name.entry(entry.name.clone()).or_default().push(entry);
        }
        by_name
    }

    /// Fails unless `old` always was what somebody had returned `Ok` for last.
    pub(crate) fn check_old(&self) {
        for entries in self.by_name().values() {
            let mut last = None;
            for entry in entries {
                assert_eq!(entry.old, last, "{entries:#?}");
                if entry.good {
                    last.clone_from(&entry.new);
                }
            }
        }
    }

    /// Who reacted last to each object, and how many objects that makes for each.
    pub(crate) fn shares(&self) -> BTreeMap<String, usize> {
        let mut shares = BTreeMap::new();
        for entries in self.by_name().values() {
            let last = entries.last().expect("there is one for each name");
            *shares.entry(last.instance.clone()).or_default() += 1;
        }
        shares
    }

    fn begin(&self, instance: &str, name: &str, old: Option<&str>, new: Option<&str>) -> UnderWay<'_> {
        let mut entries = self.0.lock();
        entries.push(Entry {
            instance: instance.to_owned(),
            name: name.to_owned(),
            begin: Instant::now(),
            end: None,
            old: old.map(ToOwned::to_owned),
            new: new.map(ToOwned::to_owned),
            good: false,
        });
        UnderWay(self, entries.len() - 1)
    }
}

// === impl Worker ===

impl Worker {
    async fn work(
        &self,
        cx: &Context,
        old: Option<&Object<Policy>>,
        policy: &Object<Policy>,
    ) -> Result<Action, Failure> {
        let (old, new) = (old.map(|old| &*old.spec.text), &*policy.spec.text);
        let under_way = self.log.begin(&self.instance, policy.name(), old, Some(new));
        tokio::time::sleep(self.takes).await;
        for zone in &policy.spec.zones {
            cx.publish(Object::derived(policy, zone, Rules::of(policy, zone))).await?;
        }
        Ok(under_way.good())
    }
}

impl Reactor<Policy> for Worker {
    async fn on_create(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        self.work(cx, None, &policy).await
    }

    async fn on_update(
        &self,
        cx: &Context,
        old: Arc<Object<Policy>>,
        new: Arc<Object<Policy>>,
    ) -> Result<Action, Failure> {
        self.work(cx, Some(&old), &new).await
    }

    async fn on_delete(&self, _: &Context, last: Arc<Object<Policy>>) -> Result<Action, Failure> {
        let under_way = self.log.begin(&self.instance, last.name(), Some(&last.spec.text), None);
        tokio::time::sleep(self.takes).await;
        Ok(under_way.good())
    }
}

// === impl UnderWay ===

impl UnderWay<'_> {
    fn good(self) -> Action {
        self.0.0.lock()[self.1].good = true;
        Action::done()
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        // A log that was cleared meanwhile has another entry there, or none.
        if let Some(entry) = self.0.0.lock().get_mut(self.1) {
            entry.end.get_or_insert(Instant::now());
        }
    }
}

/// Writes so many policies, of which each has a zone of its own.
pub(crate) async fn fill(source: &impl Source, count: usize, text: &str) {
    for n in 0..count {
        let name = format!("p{n}");
        crate::world::put(source, &name, &[&name], text).await;
    }
}
