//! A reactor that notes every call, and does as it is told.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use ctkit::{Action, Context, Controller, Failure, Object, Reactor};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::kinds::{Policy, Rules};

/// A reactor that notes every call, and publishes the text of a policy to each of its zones. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Diary(Arc<Inner>);

#[derive(Default)]
struct Inner {
    lines: Mutex<Vec<String>>,
    /// Calls that ended well.
    good: Mutex<Vec<String>>,
    /// Objects that fail.
    failing: Mutex<BTreeSet<String>>,
    /// Objects whose deletion fails.
    stuck: Mutex<BTreeSet<String>>,
    gates: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// Calls under way, by object.
    under_way: Mutex<BTreeMap<String, u32>>,
    overlaps: Mutex<Vec<String>>,
}

/// The same with other habits.
pub(crate) struct Habits {
    pub(crate) diary: Diary,
    pub(crate) remembers: bool,
    /// What the roles of children begin with.
    pub(crate) prefix: &'static str,
}

/// A call that is over when this is dropped.
struct Call<'a>(&'a Diary, String);

// === impl Diary ===

impl Diary {
    /// A controller that keeps this diary.
    pub(crate) fn controller(&self) -> Controller {
        self.with(true, "")
    }

    /// One with other habits.
    pub(crate) fn with(&self, remembers: bool, prefix: &'static str) -> Controller {
        let habits = Habits { diary: self.clone(), remembers, prefix };
        Controller::new(habits).named("policies").publishes::<Rules>()
    }

    /// The calls since they were last taken, sorted.
    pub(crate) fn take(&self) -> Vec<String> {
        self.0.good.lock().clear();
        let mut lines = std::mem::take(&mut *self.0.lines.lock());
        lines.sort_unstable();
        lines
    }

    /// The calls that ended well since they were last taken, in order.
    pub(crate) fn take_good(&self) -> Vec<String> {
        self.0.lines.lock().clear();
        std::mem::take(&mut *self.0.good.lock())
    }

    /// From now on, this object fails, or does not.
    pub(crate) fn fail(&self, name: &str, fails: bool) {
        set(&mut self.0.failing.lock(), name, fails);
    }

    /// From now on, the deletion of this object fails, or does not.
    pub(crate) fn stick(&self, name: &str, sticks: bool) {
        set(&mut self.0.stuck.lock(), name, sticks);
    }

    /// From now on, calls for this object wait; each permit lets one through.
    pub(crate) fn gate(&self, name: &str) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        self.0.gates.lock().insert(name.to_owned(), gate.clone());
        gate
    }

    /// Calls for one object that were under way at the same time.
    pub(crate) fn overlaps(&self) -> Vec<String> {
        self.0.overlaps.lock().clone()
    }

    fn enter(&self, name: &str, line: &str) -> Call<'_> {
        self.0.lines.lock().push(line.to_owned());
        let mut under_way = self.0.under_way.lock();
        let count = under_way.entry(name.to_owned()).or_default();
        *count += 1;
        if *count > 1 {
            self.0.overlaps.lock().push(line.to_owned());
        }
        Call(self, name.to_owned())
    }

    async fn pass(&self, name: &str) {
        let gate = self.0.gates.lock().get(name).cloned();
        if let Some(gate) = gate {
            gate.acquire().await.unwrap().forget();
        }
    }

    fn good(&self, line: String) -> Action {
        self.0.good.lock().push(line);
        Action::done()
    }
}

// === impl Habits ===

impl Habits {
    async fn publish(&self, cx: &Context, line: String, policy: &Object<Policy>) -> Result<Action, Failure> {
        let _call = self.diary.enter(policy.name(), &line);
        self.diary.pass(policy.name()).await;
        if self.diary.0.failing.lock().contains(policy.name()) {
            return Err(Failure::new("told to fail"));
        }
        for zone in &policy.spec.zones {
            let role = format!("{}{zone}", self.prefix);
            cx.publish(Object::derived(policy, &role, Rules::of(policy, zone))).await?;
        }
        Ok(self.diary.good(line))
    }
}

impl Reactor<Policy> for Habits {
    async fn on_create(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        let line = format!("create {}={}", policy.name(), policy.spec.text);
        self.publish(cx, line, &policy).await
    }

    async fn on_update(
        &self,
        cx: &Context,
        old: Arc<Object<Policy>>,
        new: Arc<Object<Policy>>,
    ) -> Result<Action, Failure> {
        let line = format!("update {}={}>{}", new.name(), old.spec.text, new.spec.text);
        self.publish(cx, line, &new).await
    }

    async fn on_delete(&self, _: &Context, last: Arc<Object<Policy>>) -> Result<Action, Failure> {
        let line = format!("delete {}={}", last.name(), last.spec.text);
        let _call = self.diary.enter(last.name(), &line);
        self.diary.pass(last.name()).await;
        if self.diary.0.stuck.lock().contains(last.name()) {
            return Err(Failure::new("told to stick"));
        }
        Ok(self.diary.good(line))
    }

    fn remembers(&self) -> bool {
        self.remembers
    }
}

// === impl Call ===

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if let Some(count) = self.0.0.under_way.lock().get_mut(&self.1) {
            *count -= 1;
        }
    }
}

fn set(names: &mut BTreeSet<String>, name: &str, is_in: bool) {
    if is_in {
        names.insert(name.to_owned());
    } else {
        names.remove(name);
    }
}
