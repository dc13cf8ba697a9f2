//! The end of a sync, which says that everything is there.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use ctkit::{Action, Context, Controller, Failure, Manager, Object, Reactor, Spec as _, Store};

use crate::{
    kinds::{Policy, Rules},
    life::Life,
    net::Daemon,
    world::{published, put, texts, until},
};

/// Publishes a text under the name of the policy; of `db`, only when it has failed often enough.
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
