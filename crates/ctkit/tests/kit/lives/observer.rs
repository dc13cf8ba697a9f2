//! An observer that looks all the time, while work is under way (scenario 9).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ctkit::{Action, Context, Controller, Failure, Object, Observation, Observer, Reactor, Store};
use parking_lot::Mutex;

use crate::{
    kinds::{Policy, Rules},
    life::{Life, alone},
    world::{find, put},
};

/// The real world, in which nothing happens at once. Clones are the same one.
#[derive(Clone, Default)]
struct Reality(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// The steps that were made true, by object.
    steps: BTreeMap<String, Vec<String>>,
    applies: Vec<String>,
    /// How often an observer saw something else than what should be.
    surprises: usize,
    looks: usize,
}

struct Builder(Reality);

struct Inspector {
    reality: Reality,
    takes: Duration,
}

/// Steps of one apply, and how long each of them takes.
const STEPS: usize = 5;
const STEP: Duration = Duration::from_millis(7);

fn wanted(policy: &Object<Policy>) -> Vec<String> {
    (0..STEPS).map(|step| format!("{}.{step}", policy.spec.text)).collect()
}

impl Reactor<Policy> for Builder {
    async fn on_apply(&self, _: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        let name = policy.name();
        let fails = policy.spec.text.ends_with("fails");
        {
            let mut reality = self.0.0.lock();
            reality.applies.push(format!("{name}={}", policy.spec.text));
            reality.steps.insert(name.to_owned(), Vec::new());
        }
        for step in wanted(&policy) {
            tokio::time::sleep(STEP).await;
            self.0.0.lock().steps.get_mut(name).unwrap().push(step);
            if fails {
                return Err(Failure::new("told to fail"));
            }
        }
        Ok(Action::done())
    }
}

impl Observer<Policy> for Inspector {
    async fn observe(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Observation, Failure> {
        let seen = self.reality.0.lock().steps.get(policy.name()).cloned();
        // What it saw is older than what it says.
        tokio::time::sleep(self.takes).await;
        let mut reality = self.reality.0.lock();
        reality.looks += 1;
        let what = seen.unwrap_or_default();
        cx.update_status(|rules: &mut Rules| rules.text = "looked".to_owned());
        if what == wanted(&policy) {
            return Ok(Observation::InSync);
        }
        reality.surprises += 1;
        Ok(Observation::Drifted(format!("{what:?}")))
    }
}

fn observed(reality: &Reality, takes: Duration) -> Controller {
    let inspector = Inspector { reality: reality.clone(), takes };
    Controller::new(Builder(reality.clone()))
        .named("policies")
        .observe(inspector, Duration::from_millis(1))
}

/// The observer saw work half done, reported it as drift, and the worker undid and redid it: for ever. Some wrote what they
/// had seen into what should be (H05, F47).
#[tokio::test(start_paused = true)]
async fn an_observer_that_looks_all_the_time_neither_writes_specs_nor_makes_work() {
    for takes in [0, 1, 3, 10, 50] {
        let (store, reality) = (Store::in_memory(), Reality::default());
        put(&store, "web", &[], "0").await;
        let life = Life::start(alone(&store).controller(observed(&reality, Duration::from_millis(takes))));
        for edit in 1..=20 {
            tokio::time::sleep(Duration::from_millis(edit * 13 % 120)).await;
            put(&store, "web", &[], &edit.to_string()).await;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        let record = find(&store, "web").unwrap();
        assert_eq!(record.generation().0, 21, "only the user writes specs");
        let mut applies = std::mem::take(&mut reality.0.lock().applies);
        assert_eq!(applies.last().unwrap(), "web=20");
        let count = applies.len();
        applies.dedup();
        assert_eq!(applies.len(), count, "nothing was repaired: {applies:?} at {takes} ms");
        let looks = reality.0.lock().looks;
        assert!(looks > 50, "it looked {looks} times");
        life.stop().await;
    }
}

/// Drift was repaired as often as it had been seen before the repair was done (H05).
#[tokio::test(start_paused = true)]
async fn a_drift_leads_to_exactly_one_repair() {
    for takes in [0, 1, 3, 10, 50] {
        let (store, reality) = (Store::in_memory(), Reality::default());
        put(&store, "web", &[], "0").await;
        put(&store, "db", &[], "0").await;
        let life = Life::start(alone(&store).controller(observed(&reality, Duration::from_millis(takes))));
        tokio::time::sleep(Duration::from_secs(2)).await;
        reality.0.lock().applies.clear();
        for _ in 0..5 {
            reality.0.lock().steps.insert("web".to_owned(), vec!["meddled".to_owned()]);
            tokio::time::sleep(Duration::from_secs(2)).await;
            assert_eq!(std::mem::take(&mut reality.0.lock().applies), ["web=0"], "{takes} ms");
        }
        assert_eq!(find(&store, "web").unwrap().generation().0, 1);
        life.stop().await;
    }
}

/// What was observed before an apply, and arrived after it, was taken for the present (H05).
#[tokio::test(start_paused = true)]
async fn an_observation_from_before_an_apply_is_discarded() {
    let (store, reality) = (Store::in_memory(), Reality::default());
    put(&store, "web", &[], "0").await;
    // Every look takes so long that edits come in the middle of it.
    let life = Life::start(alone(&store).controller(observed(&reality, Duration::from_millis(500))));
    for edit in 1..=50 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        put(&store, "web", &[], &edit.to_string()).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut applies = std::mem::take(&mut reality.0.lock().applies);
    let count = applies.len();
    applies.dedup();
    assert_eq!(applies.len(), count, "{applies:?}");
    life.stop().await;
}

/// An apply that had failed half-way was seen as drift, and tried again at the pace of the observer (H05, H07).
#[tokio::test(start_paused = true)]
async fn an_apply_that_fails_is_tried_again_at_its_own_pace() {
    let (store, reality) = (Store::in_memory(), Reality::default());
    put(&store, "web", &[], "good").await;
    let life = Life::start(alone(&store).controller(observed(&reality, Duration::from_millis(1))));
    tokio::time::sleep(Duration::from_secs(2)).await;
    reality.0.lock().applies.clear();
    put(&store, "web", &[], "fails").await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let applies = std::mem::take(&mut reality.0.lock().applies);
    assert!((3..20).contains(&applies.len()), "{} attempts in twenty seconds", applies.len());
    put(&store, "web", &[], "better").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(reality.0.lock().applies, ["web=better"]);
    life.stop().await;
}
