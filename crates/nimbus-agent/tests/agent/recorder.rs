//! A handler that remembers what it was asked to do, and does as it is told.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use nimbus_agent::{Context, Failure, Handler, Object, ObjectKey, Observation, Status};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

/// Objects of this kind may refer to others.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Alpha {
    #[prost(string, tag = "1")]
    pub(crate) value: String,
}

impl prost::Name for Alpha {
    const NAME: &'static str = "Alpha";
    const PACKAGE: &'static str = "t.v1";
}

/// Another kind.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Beta {
    #[prost(string, tag = "1")]
    pub(crate) value: String,
}

impl prost::Name for Beta {
    const NAME: &'static str = "Beta";
    const PACKAGE: &'static str = "t.v1";
}

/// A handler that remembers. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Inner>);

#[derive(Default)]
struct Inner {
    calls: watch::Sender<Vec<String>>,
    world: Mutex<BTreeMap<String, String>>,
    /// What each of them needs.
    needs: Mutex<BTreeMap<String, Vec<String>>>,
    /// Calls under way.
    under_way: Mutex<BTreeSet<String>>,
    /// What an agent must never do, and did.
    violations: Mutex<Vec<String>>,
    fate: Mutex<HashMap<String, Fate>>,
    gates: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// What happens when an object of that name is handled.
#[derive(Debug, Clone)]
pub(crate) enum Fate {
    Fail(Failure),
    Panic,
    Degrade,
    /// Only removals fail.
    Stick,
}

// === impl Recorder ===

impl Recorder {
    /// Decides what happens to objects of that name from now on.
    pub(crate) fn decide(&self, name: &str, fate: Option<Fate>) {
        let mut fates = self.0.fate.lock();
        match fate {
            None => drop(fates.remove(name)),
            Some(fate) => drop(fates.insert(name.to_owned(), fate)),
        }
    }

    /// From now on, calls for that name wait; each permit lets one through.
    pub(crate) fn gate(&self, name: &str) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        self.0.gates.lock().insert(name.to_owned(), gate.clone());
        gate
    }

    /// What was called, in order: `apply Alpha/a=1`, `remove Alpha/a`, …
    pub(crate) fn calls(&self) -> Vec<String> {
        self.0.calls.borrow().clone()
    }

    /// The calls since they were last taken.
    pub(crate) fn take_calls(&self) -> Vec<String> {
        let mut calls = Vec::new();
        self.0.calls.send_modify(|all| calls = std::mem::take(all));
        calls
    }

    /// Waits until the calls are as wanted.
    pub(crate) async fn until(&self, wanted: impl FnMut(&Vec<String>) -> bool) -> Vec<String> {
        self.0.calls.subscribe().wait_for(wanted).await.unwrap().clone()
    }

    /// What the handler has made true.
    pub(crate) fn world(&self) -> BTreeMap<String, String> {
        self.0.world.lock().clone()
    }

    /// Somebody else changes the machine.
    pub(crate) fn meddle(&self, name: &str, value: &str) {
        self.0.world.lock().insert(name.to_owned(), value.to_owned());
    }

    /// Fails if the agent has ever called a handler out of order, or twice at a time.
    pub(crate) fn check(&self) {
        let violations = self.0.violations.lock();
        assert!(violations.is_empty(), "{violations:#?}\n{:#?}", self.calls());
    }

    /// Forgets what is under way: the agent has died.
    pub(crate) fn bury(&self) {
        self.0.under_way.lock().clear();
    }

    async fn apply<K>(&self, cx: &Context, object: &Object<K>, value: &str) -> Result<Status, Failure> {
        let (id, name) = (id(object.key()), object.name());
        let needs: Vec<_> = object.meta.needs().map(self::id).collect();
        self.note(format!("apply {id}={value} {:?}", cx.reason()));
        let missing: Vec<_> = needs.iter().filter(|need| !self.0.world.lock().contains_key(*need)).cloned().collect();
        if !missing.is_empty() {
            self.accuse(format!("{id}={value} is applied before {missing:?}"));
        }
        let _call = self.enter(&id);
        self.pass(name).await;
        match self.fate(name) {
            Some(Fate::Fail(failure)) => return Err(failure),
            Some(Fate::Panic) => panic!("{name} is cursed"),
            _ => {}
        }
        self.0.world.lock().insert(id.clone(), value.to_owned());
        self.0.needs.lock().insert(id.clone(), needs);
        self.note(format!("applied {id}={value}"));
        if matches!(self.fate(name), Some(Fate::Degrade)) {
            return Ok(Status::degraded("SLOW", "as slow as can be"));
        }
        let detail = Alpha { value: format!("made {value}") };
        Ok(Status::applied().with_detail(&detail))
    }

    async fn remove<K>(&self, object: &Object<K>) -> Result<(), Failure> {
        let (id, name) = (id(object.key()), object.name());
        self.note(format!("remove {id}"));
        let needs = self.0.needs.lock().clone();
        let referrers: Vec<_> = needs.iter().filter(|(_, needs)| needs.contains(&id)).map(|(id, _)| id).collect();
        if !referrers.is_empty() {
            self.accuse(format!("{id} is removed before {referrers:?}"));
        }
        let _call = self.enter(&id);
        self.pass(name).await;
        if let Some(Fate::Stick) = self.fate(name) {
            return Err(Failure::new("it will not go"));
        }
        self.0.world.lock().remove(&id);
        self.0.needs.lock().remove(&id);
        self.note(format!("removed {id}"));
        Ok(())
    }

    fn enter(&self, id: &str) -> Call {
        if !self.0.under_way.lock().insert(id.to_owned()) {
            self.accuse(format!("two calls for {id} at a time"));
        }
        Call(self.clone(), id.to_owned())
    }

    fn accuse(&self, violation: String) {
        self.0.violations.lock().push(violation);
    }

    fn fate(&self, name: &str) -> Option<Fate> {
        self.0.fate.lock().get(name).cloned()
    }

    fn note(&self, call: String) {
        self.0.calls.send_modify(|calls| calls.push(call));
    }

    async fn pass(&self, name: &str) {
        let gate = self.0.gates.lock().get(name).cloned();
        if let Some(gate) = gate {
            gate.acquire().await.unwrap().forget();
        }
    }
}

impl Handler<Alpha> for Recorder {
    async fn apply(&self, cx: &Context, object: Arc<Object<Alpha>>) -> Result<Status, Failure> {
        self.apply(cx, &object, &object.spec.value).await
    }

    async fn remove(&self, _: &Context, object: Arc<Object<Alpha>>) -> Result<(), Failure> {
        self.remove(&object).await
    }

    async fn observe(&self, _: &Context, object: Arc<Object<Alpha>>) -> Result<Observation, Failure> {
        let found = self.0.world.lock().get(&id(object.key())).cloned();
        Ok(match found {
            Some(value) if value == object.spec.value => Observation::InSync,
            found => Observation::Drifted(format!("found {found:?}, left {:?}", object.spec.value)),
        })
    }
}

impl Handler<Beta> for Recorder {
    async fn apply(&self, cx: &Context, object: Arc<Object<Beta>>) -> Result<Status, Failure> {
        self.apply(cx, &object, &object.spec.value).await
    }

    async fn remove(&self, _: &Context, object: Arc<Object<Beta>>) -> Result<(), Failure> {
        self.remove(&object).await
    }
}

/// A call under way.
struct Call(Recorder, String);

impl Drop for Call {
    fn drop(&mut self) {
        self.0.0.under_way.lock().remove(&self.1);
    }
}

/// Such as `Alpha/a`.
pub(crate) fn id(key: &ObjectKey) -> String {
    format!("{}/{}", key.kind().as_str().trim_start_matches("t.v1."), key.name())
}
