//! The end of a sync, which says that everything is there.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use ctkit::{Action, Context, Controller, Failure, Manager, Object, Reactor, Spec as _, Store};
use tokio::sync::watch;

use crate::{
    kinds::{Policy, Rules},
    life::Life,
    net::Daemon,
    obstructed::{Obstructed, Open},
    world::{published, put, texts, until},
};

/// Publishes a text under the name of the policy, if there is one; of `db`, only when it has failed often enough.
#[derive(Clone, Default)]
struct Failing {
    failures: Arc<AtomicUsize>,
}

impl Reactor<Policy> for Failing {
    async fn on_apply(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        let fewer = |left: usize| left.checked_sub(1);
        if policy.name() == "db" && self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_ok() {
            return Err(Failure::new("out of luck"));
        }
        if policy.spec.text.is_empty() {
            return Ok(Action::done());
        }
        let rules = Rules { zone: policy.name().to_owned(), text: policy.spec.text.clone() };
        cx.publish(Object::derived(&policy, "a", rules)).await?;
        Ok(Action::done())
    }
}

fn is_complete(store: &Store) -> bool {
    store.bus().store().state().is_complete(&Rules::kind())
}

/// A controller that had to fill a new bus called it complete although one of its reactions had just failed, and agents
/// removed what that object had led to, until it was tried again.
#[tokio::test(start_paused = true)]
async fn a_new_bus_is_not_complete_without_what_an_object_had_published_that_fails_now() {
    let (source, mut daemon, reactor) = (Store::in_memory(), Daemon::start(|_| {}), Failing::default());
    put(&source, "web", &[], "one").await;
    put(&source, "db", &[], "one").await;
    let controller = Controller::new(reactor.clone()).named("policies").publishes::<Rules>();
    let life = Life::ready(Manager::between(source.clone(), daemon.remote()).controller(controller).seed(7)).await;
    life.settled().await;
    daemon.kill();
    reactor.failures.store(3, Ordering::SeqCst);
    daemon.begin();
    let is_done = || {
        let is_complete = is_complete(&daemon.store);
        assert!(!is_complete || published(&daemon.store).contains_key("db"), "db is missing");
        is_complete
    };
    until(is_done).await;
    assert_eq!(reactor.failures.load(Ordering::SeqCst), 0);
    assert_eq!(published(&daemon.store), texts(&[("db", "one"), ("web", "one")]));
    life.stop().await;
}

/// An object that never succeeds keeps nobody waiting for ever, and one that never has published anything keeps nobody
/// waiting at all.
#[tokio::test(start_paused = true)]
async fn a_new_bus_is_complete_without_objects_that_never_succeed() {
    let (source, mut daemon, reactor) = (Store::in_memory(), Daemon::start(|_| {}), Failing::default());
    reactor.failures.store(usize::MAX, Ordering::SeqCst);
    put(&source, "db", &[], "one").await;
    let controller = Controller::new(reactor.clone()).named("policies").publishes::<Rules>();
    let life = Life::ready(Manager::between(source.clone(), daemon.remote()).controller(controller).seed(7)).await;
    assert!(is_complete(&daemon.store) && published(&daemon.store).is_empty());

    reactor.failures.store(0, Ordering::SeqCst);
    until(|| published(&daemon.store).contains_key("db")).await;
    life.settled().await;
    daemon.kill();
    reactor.failures.store(usize::MAX, Ordering::SeqCst);
    daemon.begin();
    until(|| is_complete(&daemon.store)).await;
    assert!(published(&daemon.store).is_empty());
    life.stop().await;
}

/// The calls of a controller got through to a bus, and it told it everything, but it had not heard of the bus yet, which takes
/// a connection of its own. Then there was another bus: it was the first that was heard of, was taken for the one that had
/// been told everything, and was never told anything.
#[tokio::test(start_paused = true)]
async fn the_first_bus_that_is_heard_of_need_not_be_the_one_that_was_told_everything() {
    let (source, mut daemon, reactor) = (Store::in_memory(), Daemon::start(|_| {}), Failing::default());
    put(&source, "web", &[], "one").await;
    let open = watch::Sender::new(Open { reports: false, ends: true });
    let target = Obstructed::new(daemon.remote(), &open);
    let controller = Controller::new(reactor).named("policies").publishes::<Rules>();
    let life = Life::ready(Manager::between(source.clone(), target).controller(controller).seed(7)).await;
    assert_eq!(published(&daemon.store), texts(&[("web", "one")]));
    daemon.kill();
    daemon.begin();
    assert!(!is_complete(&daemon.store));
    open.send_modify(|open| open.reports = true);
    until(|| is_complete(&daemon.store)).await;
    assert_eq!(published(&daemon.store), texts(&[("web", "one")]));
    life.stop().await;
}

/// A controller that began kept what it had published for an object that failed, by sending it again as it had found it.
/// The object had been tried again meanwhile: what had been withdrawn then came back, and nobody noticed.
#[tokio::test(start_paused = true)]
async fn what_is_kept_for_an_object_that_failed_does_not_bring_back_what_was_withdrawn_since() {
    let (source, daemon, reactor) = (Store::in_memory(), Daemon::start(|_| {}), Failing::default());
    put(&source, "db", &[], "one").await;
    let open = watch::Sender::new(Open { reports: true, ends: true });
    let builder = || {
        let controller = Controller::new(reactor.clone()).named("policies").publishes::<Rules>();
        let target = Obstructed::new(daemon.remote(), &open);
        Manager::between(source.clone(), target).controller(controller).seed(7)
    };
    Life::ready(builder()).await.stop().await;
    assert_eq!(published(&daemon.store), texts(&[("db", "one")]));

    put(&source, "db", &[], "").await;
    reactor.failures.store(1, Ordering::SeqCst);
    open.send_modify(|open| open.ends = false);
    let life = Life::start(builder());
    until(|| published(&daemon.store).is_empty()).await;
    assert!(!life.handle.readiness().missing().is_empty(), "the sync has not ended");
    open.send_modify(|open| open.ends = true);
    assert!(life.handle.readiness().ready().await);
    life.settled().await;
    assert!(published(&daemon.store).is_empty());
    life.stop().await;
}
