//! Random histories: whatever happens, the agent ends with exactly what the bus has for it, and never does anything out
//! of order on the way (invariants 1, 4, 6, 7, 8, 10).

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use nimbus_agent::{AgentBuilder, Backoff, Failure, Link};
use nimbus_core::{Labels, Spec};
use nimbus_wire::v1;
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};

use crate::{
    recorder::{Alpha, Beta, Fate, Recorder, id},
    world::{Draft, Running, World, alpha, alpha_key, beta, beta_key, delete, put},
};

/// What the publisher wants to exist: a number of names, of which each refers to lower ones only.
#[derive(Default)]
struct Desired(BTreeMap<usize, Draft>);

struct History {
    rng: SmallRng,
    world: World,
    desired: Desired,
    recorder: Recorder,
    agent: Option<Running>,
    zone: &'static str,
    cache: Option<PathBuf>,
    lives: u64,
}

const NAMES: usize = 12;
const ZONES: [&str; 3] = ["a", "b", "c"];

impl History {
    fn new(seed: u64, cache: Option<PathBuf>) -> Self {
        let mut history = Self {
            rng: SmallRng::seed_from_u64(seed),
            world: World::start(),
            desired: Desired::default(),
            recorder: Recorder::default(),
            agent: None,
            zone: "a",
            cache,
            lives: 0,
        };
        history.be_born();
        history
    }

    fn be_born(&mut self) {
        self.lives += 1;
        let fast = Backoff { base: Duration::from_millis(20), max: Duration::from_millis(200) };
        let mut builder: AgentBuilder = self
            .world
            .builder("agent", &self.recorder)
            .label("zone", self.zone)
            .seed(self.rng.random())
            .concurrency(self.rng.random_range(1..=4))
            .retry(fast)
            .quarantine(fast)
            .reconnect(fast)
            .detached_after(Duration::from_millis(50));
        if let Some(cache) = &self.cache {
            builder = builder.cache(cache);
            if self.rng.random_bool(0.5) {
                builder = builder.trust_applied();
            }
        }
        self.agent = Some(self.world.run(builder));
    }

    fn draft(&mut self, name: usize) -> Draft {
        let value = self.rng.random_range(0..1_000).to_string();
        let text = format!("n{name:02}");
        let mut draft = if name.is_multiple_of(2) { alpha(&text, &value) } else { beta(&text, &value) };
        for other in 0..name {
            if self.rng.random_bool(0.2) {
                draft = draft.needs(&key(other));
            }
        }
        if self.rng.random_bool(0.3) {
            let zone = ZONES[self.rng.random_range(0..ZONES.len())];
            draft = draft.only(&format!("zone in ({zone},c)"));
        }
        draft
    }

    async fn step(&mut self) {
        match self.rng.random_range(0..100) {
            0..50 => {
                let mut ops = BTreeMap::new();
                for _ in 0..self.rng.random_range(1..=4) {
                    let name = self.rng.random_range(0..NAMES);
                    if self.rng.random_bool(0.6) {
                        let draft = self.draft(name);
                        self.desired.0.insert(name, draft.clone());
                        ops.insert(name, put(draft));
                    } else {
                        self.desired.0.remove(&name);
                        ops.insert(name, delete(&key(name)));
                    }
                }
                self.world.apply(ops.into_values().collect()).await;
            }
            50..60 => {
                let name = format!("n{:02}", self.rng.random_range(0..NAMES));
                let fate = match self.rng.random_range(0..5) {
                    0 => Some(Fate::Fail(Failure::new("not now"))),
                    1 => Some(Fate::Fail(Failure::new("never").permanent())),
                    2 => Some(Fate::Panic),
                    3 => Some(Fate::Stick),
                    _ => None,
                };
                self.recorder.decide(&name, fate);
            }
            60..68 => self.world.net.cut(),
            68..70 => self.world.net.freeze(),
            70..75 => {
                self.zone = ZONES[self.rng.random_range(0..ZONES.len())];
                let labels = Labels::new(&[("zone".to_owned(), self.zone.to_owned())].into()).unwrap();
                self.agent.as_ref().unwrap().handle.set_labels(labels).await.unwrap();
            }
            75..80 => {
                self.world.kill();
                self.pause().await;
                self.world.begin();
                // Some of it is there before the publisher syncs.
                let early: Vec<_> = self.desired.0.values().take(3).cloned().map(put).collect();
                self.world.apply(early).await;
                self.pause().await;
                self.world.sync(self.desired.0.values().cloned().collect()).await;
            }
            80..84 if self.cache.is_some() => {
                self.agent.take().unwrap().crash().await;
                self.recorder.bury();
                self.be_born();
            }
            84..86 if self.cache.is_some() => {
                self.agent.take().unwrap().stop().await;
                self.be_born();
            }
            _ => self.pause().await,
        }
    }

    async fn pause(&mut self) {
        tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..100))).await;
    }

    /// What should be on the machine in the end.
    async fn expected(&self) -> BTreeMap<String, String> {
        let mut client = self.world.bus_client().await;
        let request = v1::ListRequest {
            agent: "agent".into(),
            agent_labels: [("zone".to_owned(), self.zone.to_owned())].into(),
            ..Default::default()
        };
        let objects = client.list(request).await.unwrap().into_inner().objects;
        let value = |object: &v1::Object| {
            let spec = object.spec.clone().unwrap();
            let spec = <Alpha as prost::Message>::decode(&*spec.value).unwrap();
            let key =
                if object.kind == Beta::kind().as_str() { beta_key(&object.name) } else { alpha_key(&object.name) };
            (id(&key), spec.value)
        };
        objects.iter().map(value).collect()
    }

    async fn finish(mut self, seed: u64) {
        for name in 0..NAMES {
            self.recorder.decide(&format!("n{name:02}"), None);
            // What failed for good needs another generation.
            if let Some(draft) = self.desired.0.get_mut(&name) {
                draft.0.labels.insert("round".to_owned(), "last".to_owned());
            }
        }
        // What others need is there, or they would wait for ever; but only for those who may see it.
        for name in 0..NAMES {
            let mut draft = self.desired.0.remove(&name).unwrap_or_else(|| alpha_or_beta(name));
            draft.0.audience = None;
            self.desired.0.insert(name, draft);
        }
        self.world.sync(self.desired.0.values().cloned().collect()).await;
        let head = self.world.bus.store().state().head();
        let mut agent = self.agent.take().unwrap();
        let there = |status: &nimbus_agent::AgentStatus| {
            status.link == Link::InSync
                && status.unfinished == 0
                && status.position.is_some_and(|at| at.revision >= head)
        };
        let done = tokio::time::timeout(Duration::from_secs(120), agent.until(there)).await;
        let status = agent.handle.status();
        assert!(done.is_ok(), "seed {seed}: {status:?}\n{:#?}", self.recorder.calls());
        self.recorder.check();
        assert_eq!(self.recorder.world(), self.expected().await, "seed {seed}");
        assert_eq!(status.mismatches, 0, "seed {seed}");
        agent.stop().await;
    }
}

fn key(name: usize) -> nimbus_core::ObjectKey {
    let text = format!("n{name:02}");
    if name.is_multiple_of(2) { alpha_key(&text) } else { beta_key(&text) }
}

fn alpha_or_beta(name: usize) -> Draft {
    let text = format!("n{name:02}");
    if name.is_multiple_of(2) { alpha(&text, "last") } else { beta(&text, "last") }
}

async fn run(seed: u64, steps: usize, cache: Option<PathBuf>) {
    let mut history = History::new(seed, cache);
    history.world.sync(Vec::new()).await;
    for _ in 0..steps {
        history.step().await;
    }
    history.finish(seed).await;
}

/// How many, from `NIMBUS_CASES`, and from which on, from `NIMBUS_SEED`.
fn seeds(default: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().map(|text: String| text.parse().unwrap());
    let first = number("NIMBUS_SEED").unwrap_or_else(|| rand::random::<u32>().into());
    first..first + number("NIMBUS_CASES").unwrap_or(default)
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_an_agent_ends_with_what_is_for_it_and_does_nothing_out_of_order() {
    for seed in seeds(40) {
        run(seed, 80, None).await;
    }
}

/// The same with a memory on disk, deaths and restarts.
#[tokio::test]
async fn whatever_happens_an_agent_that_dies_ends_with_what_is_for_it_too() {
    for seed in seeds(8) {
        let folder = tempfile::tempdir().unwrap();
        run(seed, 60, Some(folder.path().join("cache.redb"))).await;
    }
}
