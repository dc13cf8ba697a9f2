//! Reactors of closures, pauses, wake-ups and dry runs.

use std::sync::Arc;

use ctkit::{
    Action, Context, Controller, Draft, HandleError, Manager, Object, PlannedChange, Store, Waiting, functions,
};

use crate::{
    kinds::{Policy, Rules},
    life::Life,
    log::Log,
    world::{apply, delete, head, key, published, put, ready},
};

/// Notes each call.
fn noting(log: &Log) -> Controller {
    let (created, updated, deleted) = (log.clone(), log.clone(), log.clone());
    let reactor = functions()
        .on_create(move |cx: Context, new: Arc<Object<Policy>>| {
            created.note(format!("create {}", new.spec.text));
            publish(cx, new)
        })
        .on_update(move |cx, old: Arc<Object<Policy>>, new| {
            updated.note(format!("update {} {}", old.spec.text, new.spec.text));
            publish(cx, new)
        })
        .on_delete(move |_, last: Arc<Object<Policy>>| {
            deleted.note(format!("delete {}", last.spec.text));
            async { Ok(Action::done()) }
        });
    Controller::new(reactor).named("policies").publishes::<Rules>()
}

async fn publish(cx: Context, policy: Arc<Object<Policy>>) -> Result<Action, ctkit::Failure> {
    let rules = Rules::of(&policy, policy.name());
    cx.publish(Object::derived(&policy, "a", rules)).await?;
    Ok(Action::done())
}

/// F50: what happens to an object, as closures are told.
#[tokio::test(start_paused = true)]
async fn closures_are_told_what_was_what_is_and_what_was_last() {
    let (store, log) = (Store::in_memory(), Log::default());
    let life = Life::new(&store, noting(&log)).await;
    put(&store, "web", &[], "one").await;
    life.settled().await;
    put(&store, "web", &[], "two").await;
    put(&store, "web", &[], "three").await;
    life.settled().await;
    delete(&store, "web").await;
    life.settled().await;
    assert_eq!(log.take(), ["create one", "update one three", "delete three"]);
    put(&store, "web", &[], "four").await;
    life.settled().await;
    delete(&store, "web").await;
    put(&store, "web", &[], "five").await;
    life.settled().await;
    assert_eq!(log.take(), ["create four", "delete four", "create five"], "another life is another object");
    put(&store, "short", &[], "unseen").await;
    delete(&store, "short").await;
    life.settled().await;
    assert_eq!(log.take(), [""; 0], "what was never dealt with is not deleted");
    life.stop().await;
}

/// F66: an object could not be left alone without stopping everything.
#[tokio::test(start_paused = true)]
async fn an_object_that_is_annotated_is_left_alone_and_says_so() {
    let (store, log) = (Store::in_memory(), Log::default());
    let life = Life::new(&store, noting(&log)).await;
    put(&store, "web", &[], "one").await;
    life.settled().await;
    let spec = |text: &str| Policy { zones: Vec::new(), text: text.to_owned() };
    apply(&store, Draft::new("web", spec("two")).annotation("nimbus/paused", "maintenance")).await;
    life.settled().await;
    apply(&store, Draft::new("web", spec("three")).annotation("nimbus/paused", "maintenance")).await;
    put(&store, "other", &[], "goes on").await;
    life.settled().await;
    assert_eq!(ready(&store, "web").0, "Paused");
    assert_eq!(published(&store)["web"], "one");
    assert_eq!(log.take(), ["create one", "create goes on"]);
    apply(&store, Draft::new("web", spec("three"))).await;
    life.settled().await;
    assert_eq!(log.take(), ["update one three"]);
    assert_eq!(ready(&store, "web").0, "Reconciled");

    apply(&store, Draft::new("web", spec("three")).annotation("nimbus/paused", "maintenance")).await;
    life.settled().await;
    delete(&store, "web").await;
    life.settled().await;
    assert_eq!(log.take(), ["delete three"], "nothing is left that could be paused");
    life.stop().await;
}

/// F66: the same by hand, for one object and for all.
#[tokio::test(start_paused = true)]
async fn objects_and_controllers_are_paused_by_hand() {
    let (store, log) = (Store::in_memory(), Log::default());
    let web = key::<Policy>("web");
    let life = Life::new(&store, noting(&log)).await;
    life.handle.pause("policies", Some(&web)).await.unwrap();
    put(&store, "web", &[], "one").await;
    put(&store, "other", &[], "one").await;
    life.settled().await;
    assert_eq!(log.take(), ["create one"]);
    assert_eq!(life.entry(&web).await.unwrap().state, Waiting::Paused);
    life.handle.resume("policies", Some(&web)).await.unwrap();
    life.settled().await;
    assert_eq!(published(&store).len(), 2);

    log.take();
    life.handle.pause("policies", Some(&web)).await.unwrap();
    life.settled().await;
    assert_eq!(ready(&store, "web").0, "Paused");
    life.handle.resume("policies", Some(&web)).await.unwrap();
    life.settled().await;
    assert_eq!(ready(&store, "web").0, "Reconciled", "nothing has changed, and it must not stay paused");
    assert_eq!(log.take(), ["update one one"]);

    life.handle.pause("policies", None).await.unwrap();
    log.take();
    put(&store, "web", &[], "two").await;
    put(&store, "other", &[], "two").await;
    life.settled().await;
    assert_eq!(log.take(), [""; 0]);
    assert_eq!(life.handle.entries().await.unwrap().len(), 2);
    life.handle.resume("policies", None).await.unwrap();
    life.settled().await;
    assert_eq!(log.take(), ["update one two", "update one two"]);

    life.handle.wake("policies", &web).await.unwrap();
    life.settled().await;
    assert_eq!(log.take(), ["update two two"], "somebody asked for it");
    let unknown = life.handle.pause("polices", None).await.unwrap_err();
    assert!(matches!(unknown, HandleError::NoSuchController { .. }), "{unknown}");
    let handle = life.handle.clone();
    life.stop().await;
    assert_eq!(handle.settled().await, Err(HandleError::Stopped));
}

/// F70: nobody could say what a controller would do without letting it.
#[tokio::test(start_paused = true)]
async fn a_plan_says_what_would_be_done_and_does_nothing() {
    let (store, log) = (Store::in_memory(), Log::default());
    put(&store, "gone", &[], "one").await;
    put(&store, "web", &[], "one").await;
    let life = Life::new(&store, noting(&log)).await;
    life.stop().await;
    delete(&store, "gone").await;
    put(&store, "new", &[], "one").await;
    let (before, rules) = (head(&store), published(&store));
    log.take();

    let manager = Manager::builder(store.clone()).controller(noting(&log)).seed(7).build().unwrap();
    let mut plans = manager.plan().await;
    plans.sort_by(|a, b| a.object.cmp(&b.object));
    let told: Vec<_> = plans
        .iter()
        .map(|plan| {
            let sort = |change: &PlannedChange| match change {
                PlannedChange::Publish(_) => "publish",
                PlannedChange::Withdraw(_) => "withdraw",
                _ => "?",
            };
            (plan.object.name(), plan.changes.iter().map(sort).collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(told, [("gone", vec!["withdraw"]), ("new", vec!["publish"]), ("web", vec!["publish"])]);
    assert_eq!((head(&store), published(&store)), (before, rules), "nothing is written anywhere");
    let mut calls = log.take();
    calls.sort();
    assert_eq!(calls, ["create one", "delete one", "update one one"]);
}
