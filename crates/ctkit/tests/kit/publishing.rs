//! What reactors publish, and what becomes of it.

use std::sync::Arc;

use ctkit::{Action, Context, Controller, Draft, Failure, Object, Reactor, Store, Waiting};
use nimbus_store::Op;

use crate::{
    kinds::{Policy, PolicyStatus, Rules, Zone},
    life::Life,
    world::{delete, head, key, published, put, ready, rules, texts, until, write_as},
};

/// Publishes the text of a policy to each of its zones.
struct Policies;

impl Reactor<Policy> for Policies {
    async fn on_apply(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        for zone in &policy.spec.zones {
            let rules = Rules::of(&policy, zone);
            cx.publish(Object::derived(&policy, zone, rules).for_label("zone", zone)).await?;
        }
        let zones = policy.spec.zones.len() as u32;
        cx.update_status(move |status: &mut PolicyStatus| status.zones = zones);
        Ok(Action::done())
    }
}

fn policies() -> Controller {
    Controller::new(Policies).named("policies").publishes::<Rules>()
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_published_is_withdrawn() {
    let store = Store::in_memory();
    put(&store, "web", &["a", "b"], "one").await;
    let life = Life::new(&store, policies()).await;
    assert_eq!(published(&store), texts(&[("a", "one"), ("b", "one")]));
    assert_eq!(ready(&store, "web").0, "Reconciled");

    put(&store, "web", &["b", "c"], "two").await;
    life.settled().await;
    assert_eq!(published(&store), texts(&[("b", "two"), ("c", "two")]));

    delete(&store, "web").await;
    life.settled().await;
    assert_eq!(published(&store), texts(&[]));
    life.stop().await;
}

/// Publishes each zone under the name that the policy gives it, whoever else does so.
struct ByName;

impl Reactor<Policy> for ByName {
    async fn on_apply(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        for zone in &policy.spec.zones {
            cx.publish(Draft::new(zone, Rules::of(&policy, zone))).await?;
        }
        match &*policy.spec.text {
            "undeclared" => cx.publish(Draft::new("x", Zone::default())).await?,
            "fail" => return Err(Failure::new("as it says")),
            _ => {}
        }
        Ok(Action::done())
    }
}

fn by_name() -> Controller {
    Controller::new(ByName).named("policies").publishes::<Rules>()
}

/// Names of all rules that there are.
fn names(store: &Store) -> Vec<String> {
    rules(store).iter().map(|rules| rules.name().to_owned()).collect()
}

async fn state(life: &Life, name: &str) -> Option<(Waiting, String)> {
    let entry = life.entry(&key::<Policy>(name)).await?;
    Some((entry.state, entry.failure.map(|failure| failure.code().to_owned()).unwrap_or_default()))
}

/// F08: two objects that gave their children the same name took turns in overwriting each other's.
#[tokio::test(start_paused = true)]
async fn a_name_that_another_object_has_given_is_refused() {
    let store = Store::in_memory();
    let life = Life::new(&store, by_name()).await;
    put(&store, "first", &["a"], "one").await;
    life.settled().await;
    put(&store, "second", &["a", "b"], "two").await;
    life.settled().await;
    assert_eq!(published(&store), texts(&[("a", "one")]), "all of it, or nothing");
    assert_eq!(state(&life, "second").await, Some((Waiting::Failed, "COLLISION".into())));
    let (code, message) = ready(&store, "second");
    assert!(code == "Failed" && message.contains("first"), "{message}");

    put(&store, "second", &["b"], "two").await;
    life.settled().await;
    assert_eq!(published(&store), texts(&[("a", "one"), ("b", "two")]));
    put(&store, "first", &["a", "a"], "twice").await;
    life.settled().await;
    assert_eq!(state(&life, "first").await, Some((Waiting::Failed, "COLLISION".into())));
    assert_eq!(published(&store)["a"], "one");
    life.stop().await;
}

/// B11: what is published without saying so would be swept by nobody, or make a kind seem complete that is not.
#[tokio::test(start_paused = true)]
async fn only_kinds_that_were_declared_are_published() {
    let store = Store::in_memory();
    let life = Life::new(&store, by_name()).await;
    put(&store, "web", &["a"], "undeclared").await;
    life.settled().await;
    assert_eq!(state(&life, "web").await, Some((Waiting::Failed, "UNDECLARED".into())));
    assert!(names(&store).is_empty());
    put(&store, "web", &["two words"], "one").await;
    life.settled().await;
    assert_eq!(state(&life, "web").await, Some((Waiting::Failed, "INVALID".into())));
    put(&store, "web", &["a"], "one").await;
    life.settled().await;
    assert_eq!(names(&store), ["a"]);
    life.stop().await;
}

/// F31: what somebody else had put there was overwritten, and deleted with the object that had claimed it.
#[tokio::test(start_paused = true)]
async fn what_somebody_else_has_published_is_left_alone() {
    let store = Store::in_memory();
    let rules = Draft::new("a", Rules { zone: "a".to_owned(), text: "theirs".to_owned() });
    write_as(&store, "somebody", Op::Upsert(rules.try_into().unwrap())).await;
    let life = Life::new(&store, by_name()).await;
    put(&store, "web", &["a", "b"], "ours").await;
    life.settled().await;
    assert_eq!(state(&life, "web").await, Some((Waiting::Retrying, "FOREIGN".into())));
    assert_eq!(published(&store), texts(&[("a", "theirs")]));
    put(&store, "web", &["b"], "ours").await;
    life.settled().await;
    delete(&store, "web").await;
    life.settled().await;
    assert_eq!(published(&store), texts(&[("a", "theirs")]));

    put(&store, "web", &["a"], "ours").await;
    life.settled().await;
    write_as(&store, "somebody", Op::Delete(key::<Rules>("a"))).await;
    until(|| published(&store) == texts(&[("a", "ours")])).await;
    life.settled().await;
    life.stop().await;
}

/// F07: each look at an object was a write, and every agent was sent what it had.
#[tokio::test(start_paused = true)]
async fn publishing_what_is_there_already_makes_no_revision() {
    let store = Store::in_memory();
    put(&store, "web", &["a", "b"], "one").await;
    let life = Life::new(&store, policies()).await;
    let before = head(&store);
    for _ in 0..5 {
        life.handle.wake("policies", &key::<Policy>("web")).await.unwrap();
        life.settled().await;
    }
    assert_eq!(head(&store), before, "nothing has changed");
    life.stop().await;
    let life = Life::new(&store, policies()).await;
    life.stop().await;
    assert_eq!(head(&store), before, "nor does it by a restart");
}

/// H18: children that had got other names stayed behind, and nobody knew whose they were.
#[tokio::test(start_paused = true)]
async fn children_that_are_renamed_leave_nothing_behind() {
    let store = Store::in_memory();
    let life = Life::new(&store, by_name()).await;
    put(&store, "web", &["a", "b"], "one").await;
    life.settled().await;
    put(&store, "web", &["c"], "one").await;
    life.settled().await;
    assert_eq!(names(&store), ["c"]);
    delete(&store, "web").await;
    put(&store, "web", &["d"], "another life").await;
    life.settled().await;
    assert_eq!(names(&store), ["d"]);
    put(&store, "web", &["d", "e"], "fail").await;
    life.settled().await;
    assert_eq!(published(&store), texts(&[("d", "another life")]), "a failure keeps what was good");
    delete(&store, "web").await;
    life.settled().await;
    assert!(names(&store).is_empty());
    life.stop().await;
}

/// H18: a name that one object gave up could not be taken by another.
#[tokio::test(start_paused = true)]
async fn a_name_that_was_given_up_can_be_taken() {
    let store = Store::in_memory();
    let life = Life::new(&store, by_name()).await;
    put(&store, "first", &["a"], "one").await;
    life.settled().await;
    put(&store, "first", &["b"], "one").await;
    life.settled().await;
    put(&store, "second", &["a"], "two").await;
    life.settled().await;
    assert_eq!(published(&store), texts(&[("a", "two"), ("b", "one")]));
    delete(&store, "first").await;
    life.settled().await;
    put(&store, "second", &["a", "b"], "two").await;
    life.settled().await;
    assert_eq!(published(&store), texts(&[("a", "two"), ("b", "two")]));
    life.stop().await;
}
