//! A first list that takes its time: what was read of it is reacted to, and nothing is taken for gone before its end.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ctkit::{
    Acquired, Action, CommitError, Context, Controller, Event, Failure, Guard, Held, Leases, Manager, Object, Reactor,
    Source, Spec as _, Store, WatchError,
};
use nimbus_core::{Kind, Position};
use nimbus_store::{Committed, Txn};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_stream::{Stream, StreamExt as _};

use crate::{
    kinds::{Policy, Rules},
    life::Life,
    log::Log,
    world::{delete, published, put, until},
};

/// Objects in one part of a list of a store.
const PART: usize = 1_024;

/// In three parts.
const MANY: usize = 2_500;

/// A store that is read by its watches only, and whose lists of policies come part by part, as they are let through.
#[derive(Clone)]
struct Slow {
    store: Store,
    /// How many parts may come; a watch breaks off when this is closed.
    parts: Arc<Mutex<Arc<Semaphore>>>,
}

/// Publishes the text of a policy, and notes that it did.
#[derive(Clone, Default)]
struct Noting {
    log: Log,
    remembers: bool,
}

impl Reactor<Policy> for Noting {
    async fn on_apply(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        self.log.note(policy.name());
        let rules = Rules { zone: policy.name().to_owned(), text: policy.spec.text.clone() };
        cx.publish(Object::derived(&policy, "a", rules)).await?;
        Ok(Action::done())
    }

    fn remembers(&self) -> bool {
        self.remembers
    }
}

// === impl Slow ===

impl Slow {
    /// With so many parts at once.
    fn new(store: &Store, parts: usize) -> Self {
        Self { store: store.clone(), parts: Arc::new(Mutex::new(Arc::new(Semaphore::new(parts)))) }
    }

    /// Lets all other parts through.
    fn go_on(&self) {
        self.parts.lock().add_permits(MANY);
    }

    /// Breaks watches off that wait for their next part. Those that follow do not wait.
    fn break_off(&self) {
        let new = Arc::new(Semaphore::new(MANY));
        std::mem::replace(&mut *self.parts.lock(), new).close();
    }
}

impl Source for Slow {
    fn watch(
        &self,
        kind: &Kind,
        from: Option<Position>,
    ) -> impl Stream<Item = Result<Event, WatchError>> + Send + 'static {
        let parts = (*kind == Policy::kind()).then(|| self.parts.lock().clone());
        let events = Source::watch(&self.store, kind, from).then(move |event| {
            let parts = parts.clone().filter(|_| matches!(event, Ok(Event::Listing(_))));
            async move {
                if let Some(parts) = parts {
                    parts.acquire().await.ok()?.forget();
                }
                Some(event)
            }
        });
        events.map_while(|event| event)
    }

    async fn commit(&self, txn: Txn) -> Result<Committed, CommitError> {
        Source::commit(&self.store, txn).await
    }
}

impl Leases for Slow {
    async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Acquired, CommitError> {
        self.store.acquire(name, holder, ttl).await
    }

    async fn renew(&self, held: &[Guard]) -> Result<Vec<Arc<str>>, CommitError> {
        self.store.renew(held).await
    }

    async fn release(&self, held: &[Guard]) -> Result<(), CommitError> {
        self.store.release(held).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Held>, CommitError> {
        Leases::list(&self.store, prefix).await
    }
}

fn name(number: usize) -> String {
    format!("p{number:05}")
}

fn start(source: &Slow, bus: &Store, reactor: &Noting) -> Life {
    let controller = Controller::new(reactor.clone()).named("policies").publishes::<Rules>();
    Life::start(Manager::between(source.clone(), bus.clone()).controller(controller).seed(7))
}

async fn many() -> Store {
    let store = Store::in_memory();
    for number in 0..MANY {
        put(&store, &name(number), &[], "one").await;
    }
    store
}

/// What is published for policies of these numbers.
fn of(numbers: impl IntoIterator<Item = usize>) -> BTreeMap<String, String> {
    numbers.into_iter().map(|number| (name(number), "one".to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_is_reacted_to_while_it_is_read_and_nothing_is_gone_before_its_end() {
    let (store, bus) = (many().await, Store::in_memory());
    let before = "p99999".to_owned();
    put(&store, &before, &[], "before").await;
    let life = start(&Slow::new(&store, MANY), &bus, &Noting::default());
    assert!(life.handle.readiness().ready().await);
    life.stop().await;
    delete(&store, &before).await;

    let (source, reactor) = (Slow::new(&store, 1), Noting::default());
    let life = start(&source, &bus, &reactor);
    until(|| reactor.log.len() >= PART).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(reactor.log.len(), PART, "the first part, and nothing else");
    assert!(published(&bus).contains_key(&before), "it may still be listed");
    assert!(!life.handle.readiness().missing().is_empty(), "it is not ready before everything was looked at");

    source.go_on();
    assert!(life.handle.readiness().ready().await);
    life.settled().await;
    assert_eq!(published(&bus), of(0..MANY), "what is not listed is withdrawn");
    let mut seen = reactor.log.take();
    seen.sort_unstable();
    assert_eq!(seen, (0..MANY).map(name).collect::<Vec<_>>(), "each was looked at once");
    life.stop().await;
}

/// What is remembered of an object does not mean that this bus has what was published for it.
#[tokio::test(start_paused = true)]
async fn objects_that_were_dealt_with_before_are_published_on_another_bus_while_they_are_listed() {
    let store = many().await;
    let reactor = Noting { remembers: true, ..Noting::default() };
    let life = start(&Slow::new(&store, MANY), &Store::in_memory(), &reactor);
    assert!(life.handle.readiness().ready().await);
    life.settled().await;
    life.stop().await;

    let (source, bus) = (Slow::new(&store, 1), Store::in_memory());
    let life = start(&source, &bus, &reactor);
    until(|| published(&bus).len() >= PART).await;
    source.go_on();
    assert!(life.handle.readiness().ready().await);
    life.settled().await;
    assert_eq!(published(&bus), of(0..MANY));
    life.stop().await;
}

/// The list is read again from its beginning; what was in its first part may have ended meanwhile, unheard.
#[tokio::test(start_paused = true)]
async fn what_only_a_broken_list_had_is_withdrawn() {
    let (store, bus) = (many().await, Store::in_memory());
    let (source, reactor) = (Slow::new(&store, 1), Noting::default());
    let life = start(&source, &bus, &reactor);
    until(|| published(&bus).len() >= PART).await;
    delete(&store, &name(3)).await;
    source.break_off();
    assert!(life.handle.readiness().ready().await);
    life.settled().await;
    assert_eq!(published(&bus), of((0..MANY).filter(|number| *number != 3)));
    let mut seen = reactor.log.take();
    seen.sort_unstable();
    assert_eq!(seen, (0..MANY).map(name).collect::<Vec<_>>(), "what is the same is not looked at again");
    life.stop().await;
}

/// What had come when a shard began was told of once more a moment later: what was being looked at just then was looked at
/// twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_several_threads_each_object_of_a_list_is_looked_at_once() {
    let store = many().await;
    for _ in 0..8 {
        let (bus, reactor) = (Store::in_memory(), Noting::default());
        let life = start(&Slow::new(&store, MANY), &bus, &reactor);
        assert!(life.handle.readiness().ready().await);
        life.settled().await;
        assert_eq!(published(&bus), of(0..MANY));
        let mut seen = reactor.log.take();
        seen.sort_unstable();
        assert_eq!(seen, (0..MANY).map(name).collect::<Vec<_>>());
        life.stop().await;
    }
}
