//! Many writers at once: what comes out is what went in last, and nobody sees anything out of order.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use ctkit::{
    Action, Context, Controller, Failure, Generation, Object, ObjectKey, Reactor, Revision, Spec as _, Store, Uid,
};
use parking_lot::Mutex;
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};

use crate::{
    kinds::{Policy, Rules},
    life::Life,
    world::{delete, published, put, until},
};

/// Publishes a policy under its own name, fails at times, and checks everything that it is told.
struct Checking {
    seen: Mutex<Seen>,
    /// Waits in paused time, which costs none; else it only lets others go first.
    paused: bool,
}

struct Seen {
    rng: SmallRng,
    objects: HashMap<ObjectKey, Track>,
    creates: u32,
    updates: u32,
    deletes: u32,
}

#[derive(Default)]
struct Track {
    /// A call is under way.
    busy: bool,
    /// What was last returned `Ok` for.
    acked: Option<(Uid, Generation)>,
    newest: Revision,
    /// The last call went well.
    is_settled: bool,
}

const TASKS: u64 = 16;
const WRITES: u32 = 625;
const KEYS: u32 = 100;

// === impl Checking ===

impl Checking {
    fn new(seed: u64, paused: bool) -> Arc<Self> {
        let rng = SmallRng::seed_from_u64(seed);
        let seen = Seen { rng, objects: HashMap::new(), creates: 0, updates: 0, deletes: 0 };
        Arc::new(Self { seen: Mutex::new(seen), paused })
    }

    /// A call begins: nothing else is under way, and nothing as new was seen before, unless it has to be tried again.
    fn enter(&self, object: &Object<Policy>, old: Option<&Object<Policy>>) -> (Duration, bool) {
        let mut seen = self.seen.lock();
        let track = seen.objects.entry(object.key().clone()).or_default();
        assert!(!track.busy, "two calls for {} at once", object.key());
        track.busy = true;
        assert!(object.meta.revision > track.newest || (object.meta.revision == track.newest && !track.is_settled));
        (track.newest, track.is_settled) = (object.meta.revision, false);
        assert_eq!(old.map(|old| (old.meta.uid.clone(), old.meta.generation)), track.acked);
        *(if old.is_some() { &mut seen.updates } else { &mut seen.creates }) += 1;
        (Duration::from_millis(seen.rng.random_range(0..20)), seen.rng.random_range(0..10) == 0)
    }

    fn leave(&self, object: &Object<Policy>, fails: bool) -> Result<Action, Failure> {
        let mut seen = self.seen.lock();
        let track = seen.objects.entry(object.key().clone()).or_default();
        track.busy = false;
        if fails {
            return Err(Failure::new("unlucky").retry_after(Duration::from_millis(1)));
        }
        (track.acked, track.is_settled) = (Some((object.meta.uid.clone(), object.meta.generation)), true);
        Ok(Action::done())
    }

    /// In the end, what was last returned `Ok` for is what there is.
    fn check(&self, store: &Store) {
        let seen = self.seen.lock();
        for (key, track) in &seen.objects {
            let record = store.snapshot().get(key);
            let there = record.map(|record| (record.to_uid(), record.generation()));
            assert_eq!(track.acked, there, "{key} is created, or deleted, last");
        }
        assert!(seen.creates > 100 && seen.updates > 100 && seen.deletes > 100);
    }

    async fn wait(&self, delay: Duration) {
        if self.paused { tokio::time::sleep(delay).await } else { tokio::task::yield_now().await }
    }

    async fn react(
        &self,
        cx: &Context,
        old: Option<Arc<Object<Policy>>>,
        new: Arc<Object<Policy>>,
    ) -> Result<Action, Failure> {
        let (delay, fails) = self.enter(&new, old.as_deref());
        self.wait(delay).await;
        let rules = Rules::of(&new, new.name());
        cx.publish(Object::derived(&new, "a", rules)).await?;
        self.leave(&new, fails)
    }
}

impl Reactor<Policy> for Checking {
    async fn on_create(&self, cx: &Context, object: Arc<Object<Policy>>) -> Result<Action, Failure> {
        self.react(cx, None, object).await
    }

    async fn on_update(
        &self,
        cx: &Context,
        old: Arc<Object<Policy>>,
        new: Arc<Object<Policy>>,
    ) -> Result<Action, Failure> {
        self.react(cx, Some(old), new).await
    }

    async fn on_delete(&self, _: &Context, last: Arc<Object<Policy>>) -> Result<Action, Failure> {
        let delay = {
            let mut seen = self.seen.lock();
            let track = seen.objects.entry(last.key().clone()).or_default();
            assert!(!track.busy, "two calls for {} at once", last.key());
            track.busy = true;
            assert_eq!(track.acked, Some((last.meta.uid.clone(), last.meta.generation)));
            Duration::from_millis(seen.rng.random_range(0..20))
        };
        self.wait(delay).await;
        let mut seen = self.seen.lock();
        seen.deletes += 1;
        let track = seen.objects.entry(last.key().clone()).or_default();
        (track.busy, track.acked) = (false, None);
        Ok(Action::done())
    }
}

/// Writes at random from many tasks, and compares what is published with what the objects say.
async fn storm(seed: u64, paused: bool) {
    let (store, reactor) = (Store::in_memory(), Checking::new(seed, paused));
    let controller = Controller::new(reactor.clone()).named("policies").publishes::<Rules>();
    let life = Life::new(&store, controller).await;
    let writers = (0..TASKS).map(|task| {
        let (store, mut rng) = (store.clone(), SmallRng::seed_from_u64(seed ^ task));
        tokio::spawn(async move {
            for write in 0..WRITES {
                let name = format!("p{}", rng.random_range(0..KEYS));
                if rng.random_range(0..3) == 0 {
                    delete(&store, &name).await;
                } else {
                    put(&store, &name, &[], &format!("{task}-{write}")).await;
                }
                match paused {
                    true => tokio::time::sleep(Duration::from_millis(rng.random_range(0..30))).await,
                    false => tokio::task::yield_now().await,
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let expected = || -> BTreeMap<String, String> {
        let (snapshot, kind) = (store.snapshot(), Policy::kind());
        let policies = snapshot.list(&kind).map(|record| Object::<Policy>::from_wire(&record.to_wire()).unwrap());
        policies.map(|policy| (policy.name().to_owned(), policy.spec.text)).collect()
    };
    // Those that were unlucky are tried again.
    until(|| published(&store) == expected()).await;
    life.settled().await;
    assert_eq!(published(&store), expected());
    reactor.check(&store);
    assert_eq!(life.handle.entries().await.unwrap(), []);
    life.stop().await;
}

/// H02, H08: deletes overtook adds, and delays that differed made an older version the last. Scenario 2.
#[tokio::test(start_paused = true)]
async fn ten_thousand_random_writes_end_in_what_was_written_last() {
    storm(1, true).await;
}

/// H02, H08: the same where things really happen at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_random_writes_on_several_threads_end_in_what_was_written_last() {
    storm(3, false).await;
}
