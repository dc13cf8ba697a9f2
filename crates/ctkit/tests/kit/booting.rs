//! The first look at everything, when there is more than is queued at once.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ctkit::{Action, Context, Controller, Failure, Manager, Object, Reactor, Store, Waiting};

use crate::{
    kinds::{Policy, Rules},
    life::{Life, alone},
    log::Log,
    net::Daemon,
    world::{delete, key, published, put, until},
};

/// Three times as many as are put into the queue at once.
const MANY: usize = 3_072;

/// Publishes a text under the name of the policy, and notes what it has seen.
#[derive(Clone, Default)]
struct Noting {
    log: Log,
    /// How long each call takes.
    takes: Duration,
}

impl Reactor<Policy> for Noting {
    async fn on_apply(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        if !self.takes.is_zero() {
            tokio::time::sleep(self.takes).await;
        }
        self.log.note(format!("{} {}", policy.name(), policy.spec.text));
        let rules = Rules { zone: policy.name().to_owned(), text: policy.spec.text.clone() };
        cx.publish(Object::derived(&policy, "a", rules)).await?;
        Ok(Action::done())
    }

    fn remembers(&self) -> bool {
        false
    }
}

// === impl Noting ===

impl Noting {
    fn controller(&self) -> Controller {
        Controller::new(self.clone()).named("policies").publishes::<Rules>()
    }

    /// What was seen, by name, in the order of names.
    fn seen(&self) -> Vec<String> {
        let mut seen = self.log.take();
        seen.sort_unstable();
        seen
    }
}

fn name(number: usize) -> String {
    format!("p{number:05}")
}

async fn put_many(store: &Store) {
    for number in 0..MANY {
        put(store, &name(number), &[], "one").await;
    }
}

/// What is seen, or published, if everything is at its first version.
fn all() -> Vec<String> {
    (0..MANY).map(|number| format!("{} one", name(number))).collect()
}

fn of(published: BTreeMap<String, String>) -> Vec<String> {
    published.into_iter().map(|(zone, text)| format!("{zone} {text}")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_long_list_is_looked_at_once_and_again_for_another_bus() {
    let (source, mut daemon, reactor) = (Store::in_memory(), Daemon::start(|_| {}), Noting::default());
    put_many(&source).await;
    let manager = Manager::between(source.clone(), daemon.remote()).controller(reactor.controller()).seed(7);
    let life = Life::ready(manager).await;
    assert_eq!(of(published(&daemon.store)), all(), "it is ready when everything is published");
    life.settled().await;
    assert_eq!(reactor.seen(), all());
    daemon.kill();
    daemon.begin();
    until(|| reactor.log.len() >= MANY).await;
    life.settled().await;
    assert_eq!(of(published(&daemon.store)), all());
    assert_eq!(reactor.seen(), all());
    life.stop().await;
}

/// What happens to an object before the list has come to it is not undone by the list, nor done twice.
#[tokio::test(start_paused = true)]
async fn edits_and_deletes_are_faster_than_a_long_list() {
    let store = Store::in_memory();
    put_many(&store).await;
    let reactor = Noting { takes: Duration::from_millis(10), ..Noting::default() };
    let life = Life::start(alone(&store).controller(reactor.controller().concurrency(1)));
    until(|| reactor.log.len() > 0).await;
    let (edited, deleted) = (name(MANY - 1), name(MANY - 2));
    put(&store, &edited, &[], "two").await;
    delete(&store, &deleted).await;
    put(&store, "new", &[], "one").await;
    until(|| reactor.log.len() >= 100).await;
    let soon = reactor.log.take();
    for expected in [format!("{edited} two"), "new one".to_owned()] {
        assert!(soon.contains(&expected), "{expected} does not wait for the list");
    }
    assert!(life.handle.readiness().ready().await);
    life.settled().await;
    let mut seen: Vec<_> = soon.into_iter().chain(reactor.log.take()).collect();
    seen.sort_unstable();
    let mut expected = all();
    expected.retain(|seen| !seen.starts_with(&edited) && !seen.starts_with(&deleted));
    expected.extend([format!("{edited} two"), "new one".to_owned()]);
    expected.sort_unstable();
    assert_eq!(seen, expected);
    assert_eq!(of(published(&store)), expected);
    life.stop().await;
}

/// The first look at an object takes no place in the queue, but what happens to the object meanwhile does.
#[tokio::test(start_paused = true)]
async fn what_happens_during_the_first_look_at_an_object_is_not_missed() {
    let store = Store::in_memory();
    for name in ["deleted", "edited", "kept"] {
        put(&store, name, &[], "one").await;
    }
    let reactor = Noting { takes: Duration::from_secs(10), ..Noting::default() };
    let life = Life::start(alone(&store).controller(reactor.controller()));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(reactor.log.len(), 0, "all of them are being looked at");
    put(&store, "edited", &[], "two").await;
    delete(&store, "deleted").await;
    let entry = life.entry(&key::<Policy>("kept")).await;
    assert_eq!(entry.map(|entry| entry.state), Some(Waiting::Running));
    assert!(life.handle.readiness().ready().await);
    life.settled().await;
    assert_eq!(reactor.seen(), ["deleted one", "edited one", "edited two", "kept one"]);
    assert_eq!(of(published(&store)), ["edited two", "kept one"]);
    life.stop().await;
}
