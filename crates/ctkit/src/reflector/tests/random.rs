//! Random writes, slow subscribers, short memories, broken watches and restarted sources: everybody ends with the truth.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use nimbus_core::{Kind, ObjectKey, Position, Revision};
use nimbus_store::{Committed, Op, Txn};
use parking_lot::Mutex;
use proptest::{collection::vec, prelude::*};
use tokio::time::timeout;
use tokio_stream::Stream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::{
    CommitError, Event, Reflector, ReflectorConfig, Snapshot, Source, Store, Subscription, WatchError,
    fixtures::{commit, key, kind, put, store},
    source::DynSource,
};

const NAMES: usize = 6;

/// Remembers two ends: whoever looks away for a moment must list again.
const TOMBSTONES: usize = 2;

#[derive(Debug, Clone)]
enum Step {
    Put(usize, u8),
    Delete(usize),
    Trim,
    /// The watch breaks off.
    Break,
    /// The source begins another epoch, with only these objects.
    Restart(Vec<usize>),
    Subscribe,
    /// A subscriber looks, if there is something to see.
    Look(usize),
    /// Time passes.
    Wait(u64),
}

/// A store that can be exchanged for another, and whose watches can be broken off.
#[derive(Clone)]
struct Unsteady(Arc<Mutex<Now>>);

struct Now {
    store: Store,
    lives: u8,
    direct: bool,
    watches: CancellationToken,
}

struct UntilBroken {
    watch: Pin<Box<dyn Stream<Item = Result<Event, WatchError>> + Send>>,
    broken: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// A subscriber, and the objects as it has seen them.
struct Looker {
    subscription: Subscription,
    /// It is told of the first list as it is read.
    early: bool,
    view: BTreeMap<ObjectKey, Bytes>,
    /// What was seen of each last: the life of the source, then the revision. They only rise.
    newest: BTreeMap<ObjectKey, (u8, Revision)>,
}

fn name(at: usize) -> ObjectKey {
    key(&format!("n{at}"))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..NAMES, any::<u8>()).prop_map(|(at, value)| Step::Put(at, value)),
        5 => (0..NAMES).prop_map(Step::Delete),
        1 => Just(Step::Trim),
        2 => Just(Step::Break),
        1 => vec(0..NAMES, 0..NAMES).prop_map(Step::Restart),
        1 => Just(Step::Subscribe),
        6 => (0..4_usize).prop_map(Step::Look),
        3 => (0..2_000_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_subscriber_ends_with_the_truth(direct: bool, steps in vec(step(), 1..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(direct, steps));
    }
}

async fn play(direct: bool, steps: Vec<Step>) {
    let source = Unsteady::new(direct);
    let config = ReflectorConfig { seed: 1, ..ReflectorConfig::default() };
    let reflector = Reflector::start(source.clone(), &kind(), config);
    let mut lookers = vec![Looker::new(&reflector, false), Looker::new(&reflector, true)];
    for step in steps {
        match step {
            Step::Put(at, value) => source.put(at, value),
            Step::Delete(at) => drop(commit(&source.store(), [Op::Delete(name(at))])),
            Step::Trim => {
                let store = source.store();
                store.bus().store().trim(store.snapshot().revision());
            }
            Step::Break => source.break_off(),
            Step::Restart(names) => source.restart(names),
            Step::Subscribe if lookers.len() < 4 => lookers.push(Looker::new(&reflector, lookers.len() == 3)),
            Step::Subscribe => {}
            Step::Look(at) => {
                let at = at % lookers.len();
                lookers[at].look(Duration::ZERO).await;
            }
            Step::Wait(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
        }
    }
    // The last word on one object is its end; nobody may see it again.
    source.put(0, 255);
    commit(&source.store(), [Op::Delete(name(0))]);
    let state = source.store().snapshot();
    let truth: BTreeMap<_, _> = state.list(&kind()).map(|record| (record.key().clone(), record.spec())).collect();
    assert!(!truth.contains_key(&name(0)));
    for looker in &mut lookers {
        while looker.look(Duration::from_secs(600)).await {}
        assert_eq!(looker.view, truth);
    }
    let copy = reflector.snapshot();
    assert_eq!(copy.list(&kind()).count(), truth.len());
}

// === impl Unsteady ===

impl Unsteady {
    fn new(direct: bool) -> Self {
        let now = Now { store: store(1, TOMBSTONES), lives: 1, direct, watches: CancellationToken::new() };
        Self(Arc::new(Mutex::new(now)))
    }

    fn store(&self) -> Store {
        self.0.lock().store.clone()
    }

    fn put(&self, at: usize, value: u8) {
        let lives = self.0.lock().lives;
        commit(&self.store(), [put(&name(at), &[lives, value])]);
    }

    fn break_off(&self) {
        std::mem::take(&mut self.0.lock().watches).cancel();
    }

    fn restart(&self, names: Vec<usize>) {
        {
            let mut now = self.0.lock();
            now.lives += 1;
            now.store = store(now.lives.into(), TOMBSTONES);
        }
        names.into_iter().for_each(|at| self.put(at, 0));
        self.break_off();
    }
}

impl Source for Unsteady {
    fn watch(
        &self,
        kind: &Kind,
        from: Option<Position>,
    ) -> impl Stream<Item = Result<Event, WatchError>> + Send + 'static {
        let now = self.0.lock();
        let watch = DynSource::watch(&now.store, kind, from);
        UntilBroken { watch, broken: Box::pin(now.watches.clone().cancelled_owned()) }
    }

    async fn commit(&self, txn: Txn) -> Result<Committed, CommitError> {
        let store = self.store();
        Source::commit(&store, txn).await
    }

    fn state(&self) -> Option<Snapshot> {
        let now = self.0.lock();
        now.direct.then(|| now.store.snapshot())
    }
}

impl Stream for UntilBroken {
    type Item = Result<Event, WatchError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.broken.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        self.watch.as_mut().poll_next(cx)
    }
}

// === impl Looker ===

impl Looker {
    fn new(reflector: &Reflector, early: bool) -> Self {
        let subscription = if early { reflector.subscribe_early() } else { reflector.subscribe() };
        Self { subscription, early, view: BTreeMap::new(), newest: BTreeMap::new() }
    }

    /// Looks at what it is told of within that time; says whether there was anything.
    async fn look(&mut self, patience: Duration) -> bool {
        let Ok(batch) = timeout(patience, self.subscription.next()).await else { return false };
        let reflector = self.subscription.reflector();
        let snapshot = if self.early { reflector.early_snapshot() } else { reflector.snapshot() };
        for woken in batch.keys {
            let Some(record) = snapshot.get(&woken.key) else {
                self.view.remove(&woken.key);
                continue;
            };
            let seen = (record.spec()[0], record.revision());
            let before = self.newest.insert(woken.key.clone(), seen);
            let alive = self.view.insert(woken.key.clone(), record.spec()).is_some();
            let risen = before.is_none_or(|before| if alive { before <= seen } else { before < seen });
            assert!(risen, "{} went from {before:?} to {seen:?}", woken.key);
        }
        true
    }
}
