//! What reactors publish, and what becomes of it.

use std::{collections::BTreeMap, sync::Arc};

use ctkit::{Action, Context, Controller, Draft, Failure, Object, Reactor, Spec as _, Store, Waiting};
use nimbus_store::Op;

use crate::world::{
    Policy, PolicyStatus, Rules, World, Zone, delete, head, key, published, put, ready, until, write_as,
};

/// Publishes the text of a policy to each of its zones.
struct Policies;

impl Reactor<Policy> for Policies {
    async fn on_apply(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        for zone in &policy.spec.zones {
            let rules = Rules { zone: zone.clone(), text: policy.spec.text.clone() };
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

fn expect(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(zone, text)| ((*zone).to_owned(), (*text).to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_published_is_withdrawn() {
    let store = Store::in_memory();
    put(&store, "web", &["a", "b"], "one").await;
    let world = World::new(&store, policies()).await;
    assert_eq!(published(&store), expect(&[("a", "one"), ("b", "one")]));
    assert_eq!(ready(&store, &key::<Policy>("web")).0, "Reconciled");

    put(&store, "web", &["b", "c"], "two").await;
    world.settled().await;
    assert_eq!(published(&store), expect(&[("b", "two"), ("c", "two")]));

    delete(&store, &key::<Policy>("web")).await;
    world.settled().await;
    assert_eq!(published(&store), expect(&[]));
    world.stop().await;
}

/// Publishes each zone under the name that the policy gives it, whoever else does so.
struct ByName;

impl Reactor<Policy> for ByName {
    async fn on_apply(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        for zone in &policy.spec.zones {
            cx.publish(Draft::new(zone, Rules { zone: zone.clone(), text: policy.spec.text.clone() }))
                .await?;
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
    let (snapshot, kind) = (store.snapshot(), Rules::kind());
    snapshot.list(&kind).map(|record| record.key().name().to_owned()).collect()
}

async fn state(world: &World, name: &str) -> Option<(Waiting, String)> {
    let entry = world.entry(&key::<Policy>(name)).await?;
    Some((entry.state, entry.failure.map(|failure| failure.code().to_owned()).unwrap_or_default()))
}

/// F08: two objects that gave their children the same name took turns in overwriting each other's.
#[tokio::test(start_paused = true)]
async fn a_name_that_another_object_has_given_is_refused() {
    let store = Store::in_memory();
    let world = World::new(&store, by_name()).await;
    put(&store, "first", &["a"], "one").await;
    world.settled().await;
    put(&store, "second", &["a", "b"], "two").await;
    world.settled().await;
    assert_eq!(published(&store), expect(&[("a", "one")]), "all of it, or nothing");
    assert_eq!(state(&world, "second").await, Some((Waiting::Failed, "COLLISION".into())));
    let (code, message) = ready(&store, &key::<Policy>("second"));
    assert!(code == "Failed" && message.contains("first"), "{message}");

    put(&store, "second", &["b"], "two").await;
    world.settled().await;
    assert_eq!(published(&store), expect(&[("a", "one"), ("b", "two")]));
    put(&store, "first", &["a", "a"], "twice").await;
    world.settled().await;
    assert_eq!(state(&world, "first").await, Some((Waiting::Failed, "COLLISION".into())));
    assert_eq!(published(&store)["a"], "one");
    world.stop().await;
}

/// B11: what is published without saying so would be swept by nobody, or make a kind seem complete that is not.
#[tokio::test(start_paused = true)]
async fn only_kinds_that_were_declared_are_published() {
    let store = Store::in_memory();
    let world = World::new(&store, by_name()).await;
    put(&store, "web", &["a"], "undeclared").await;
    world.settled().await;
    assert_eq!(state(&world, "web").await, Some((Waiting::Failed, "UNDECLARED".into())));
    assert!(names(&store).is_empty());
    put(&store, "web", &["two words"], "one").await;
    world.settled().await;
    assert_eq!(state(&world, "web").await, Some((Waiting::Failed, "INVALID".into())));
    put(&store, "web", &["a"], "one").await;
    world.settled().await;
    assert_eq!(names(&store), ["a"]);
    world.stop().await;
}

/// F31: what somebody else had put there was overwritten, and deleted with the object that had claimed it.
#[tokio::test(start_paused = true)]
async fn what_somebody_else_has_published_is_left_alone() {
    let store = Store::in_memory();
    let foreign = key::<Rules>("a");
    let rules = Draft::new("a", Rules { zone: "a".to_owned(), text: "theirs".to_owned() });
    write_as(&store, "somebody", Op::Upsert(rules.try_into().unwrap()).into()).await;
    let world = World::new(&store, by_name()).await;
    put(&store, "web", &["a", "b"], "ours").await;
    world.settled().await;
    assert_eq!(state(&world, "web").await, Some((Waiting::Retrying, "FOREIGN".into())));
    assert_eq!(published(&store), expect(&[("a", "theirs")]));
    put(&store, "web", &["b"], "ours").await;
    world.settled().await;
    delete(&store, &key::<Policy>("web")).await;
    world.settled().await;
    assert_eq!(published(&store), expect(&[("a", "theirs")]));

    put(&store, "web", &["a"], "ours").await;
    world.settled().await;
    write_as(&store, "somebody", Op::Delete(foreign).into()).await;
    until(|| published(&store) == expect(&[("a", "ours")])).await;
    world.settled().await;
    world.stop().await;
}

/// F07: each look at an object was a write, and every agent was sent what it had.
#[tokio::test(start_paused = true)]
async fn publishing_what_is_there_already_makes_no_revision() {
    let store = Store::in_memory();
    put(&store, "web", &["a", "b"], "one").await;
    let world = World::new(&store, policies()).await;
    let before = head(&store);
    for _ in 0..5 {
        world.handle.wake("policies", &key::<Policy>("web")).await.unwrap();
        world.settled().await;
    }
    assert_eq!(head(&store), before, "nothing has changed");
    world.stop().await;
    let world = World::new(&store, policies()).await;
    world.stop().await;
    assert_eq!(head(&store), before, "nor does it by a restart");
}

/// H18: children that had got other names stayed behind, and nobody knew whose they were.
#[tokio::test(start_paused = true)]
async fn children_that_are_renamed_leave_nothing_behind() {
    let store = Store::in_memory();
    let world = World::new(&store, by_name()).await;
    put(&store, "web", &["a", "b"], "one").await;
    world.settled().await;
    put(&store, "web", &["c"], "one").await;
    world.settled().await;
    assert_eq!(names(&store), ["c"]);
    delete(&store, &key::<Policy>("web")).await;
    put(&store, "web", &["d"], "another life").await;
    world.settled().await;
    assert_eq!(names(&store), ["d"]);
    put(&store, "web", &["d", "e"], "fail").await;
    world.settled().await;
    assert_eq!(published(&store), expect(&[("d", "another life")]), "a failure keeps what was good");
    delete(&store, &key::<Policy>("web")).await;
    world.settled().await;
    assert!(names(&store).is_empty());
    world.stop().await;
}

/// H18: a name that one object gave up could not be taken by another.
#[tokio::test(start_paused = true)]
async fn a_name_that_was_given_up_can_be_taken() {
    let store = Store::in_memory();
    let world = World::new(&store, by_name()).await;
    put(&store, "first", &["a"], "one").await;
    world.settled().await;
    put(&store, "first", &["b"], "one").await;
    world.settled().await;
    put(&store, "second", &["a"], "two").await;
    world.settled().await;
    assert_eq!(published(&store), expect(&[("a", "two"), ("b", "one")]));
    delete(&store, &key::<Policy>("first")).await;
    world.settled().await;
    put(&store, "second", &["a", "b"], "two").await;
    world.settled().await;
    assert_eq!(published(&store), expect(&[("a", "two"), ("b", "two")]));
    world.stop().await;
}
