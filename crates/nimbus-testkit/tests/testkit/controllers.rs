//! Controllers alone.

use std::{sync::Arc, time::Duration};

use ctkit::{Action, Controller, Draft, Failure, Waiting, functions};
use nimbus_testkit::{World, key};
use parking_lot::Mutex;

use crate::kinds::{Policies, Policy, PolicyStatus, Rules, controller, pairs, policy, published, world};

#[tokio::test]
async fn what_a_user_writes_is_published_changed_and_withdrawn() {
    let world = world();
    let web = world.apply(policy(&["a", "b"], "443")).await;
    assert_eq!(web, key::<Policy>("web"));
    world.settled().await;
    assert_eq!(published(&world), pairs([("a", 443), ("b", 443)]));
    assert_eq!(world.objects::<Policy>()[0].spec.port, "443");

    world.apply(policy(&["b"], "80")).await;
    world.settled().await;
    assert_eq!(published(&world), pairs([("b", 80)]));

    world.delete(&web).await;
    world.settled().await;
    assert_eq!(published(&world), []);
    assert!(world.objects::<Policy>().is_empty());
}

#[tokio::test]
async fn an_object_that_cannot_be_is_not_ready_and_says_why() {
    let world = world();
    let web = world.apply(policy(&["a"], "http")).await;
    assert!(world.ready(&web).is_none(), "nobody has looked at it yet");
    world.settled().await;
    let ready = world.ready(&web).unwrap();
    assert_eq!((ready.is_ready, &*ready.code, ready.generation.0), (false, "Failed", 1));
    assert!(ready.message.contains("invalid digit"), "{ready:?}");
    assert_eq!(world.entries().await[0].state, Waiting::Failed);

    world.apply(policy(&["a"], "80")).await;
    world.settled().await;
    let ready = world.ready(&web).unwrap();
    assert_eq!((ready.is_ready, &*ready.code, ready.generation.0), (true, "Reconciled", 2));
    assert!(world.status::<PolicyStatus>(&web).is_none_or(|status| status.agents == 0));
    assert!(world.status::<Policy>(&web).is_none(), "that is no status");
}

#[tokio::test]
async fn a_reactor_that_fails_is_tried_again_when_time_passes() {
    let attempts = Arc::new(Mutex::new(0));
    let counted = attempts.clone();
    let mut world = World::new();
    world.controller(move || {
        let counted = counted.clone();
        Controller::new(functions::<Policy>().on_apply(move |cx, _| {
            *counted.lock() += 1;
            async move { if cx.attempt() < 8 { Err(Failure::new("not yet")) } else { Ok(Action::done()) } }
        }))
    });
    let web = world.apply(policy(&[], "80")).await;
    world.settled().await;
    assert!(!world.ready(&web).unwrap().is_ready);
    let (entry, before) = (world.entries().await.remove(0), *attempts.lock());
    assert_eq!((entry.state, &entry.object, entry.attempts), (Waiting::Retrying, &web, before));

    world.advance(Duration::from_secs(300)).await;
    assert!(world.ready(&web).unwrap().is_ready);
    assert_eq!(*attempts.lock(), 9);
}

#[tokio::test]
async fn a_reactor_that_fails_leaves_what_was_published() {
    let world = world();
    world.apply(policy(&["a"], "443")).await;
    world.settled().await;
    world.apply(policy(&["a"], "https")).await;
    world.settled().await;
    assert_eq!(published(&world), pairs([("a", 443)]));
}

#[tokio::test]
async fn controllers_that_are_restarted_or_killed_find_everything_as_it_was() {
    let mut world = world();
    world.apply(policy(&["a"], "443")).await;
    world.settled().await;
    let before = world.bus().store().state().head();
    world.restart_controllers().await;
    world.settled().await;
    world.crash_controllers().await;
    world.settled().await;
    assert_eq!(published(&world), pairs([("a", 443)]));
    assert_eq!(world.bus().store().state().head(), before, "nothing was written");

    world.kill_controllers().await;
    world.delete(&key::<Policy>("web")).await;
    world.settled().await;
    assert_eq!(published(&world), pairs([("a", 443)]), "nobody is there to withdraw it");
    world.start_controllers();
    world.settled().await;
    assert_eq!(published(&world), []);
}

#[tokio::test]
async fn a_bus_that_forgot_everything_is_told_again() {
    let mut world = world();
    world.apply(policy(&["a"], "443")).await;
    world.settled().await;
    world.stop_bus();
    world.apply(policy(&["a"], "80")).await;
    world.settled().await;
    world.advance(Duration::from_secs(60)).await;
    world.start_bus();
    assert_eq!(published(&world), []);
    world.settled().await;
    assert_eq!(published(&world), pairs([("a", 80)]));
}

#[tokio::test]
async fn a_plan_changes_nothing() {
    let world = World::new();
    let web = world.apply(policy(&["a"], "443")).await;
    let revision = world.api().snapshot().revision();
    let planned = world.plan(controller()).await;
    assert_eq!(planned.len(), 1, "{planned:?}");
    assert_eq!(planned[0].object, web);
    assert_eq!(published(&world), []);
    assert_eq!(world.api().snapshot().revision(), revision);
}

#[tokio::test]
#[should_panic(expected = "the world does not settle: kit.v1.Policy is busy with kit.v1.Policy/web")]
async fn a_reaction_that_never_ends_is_named() {
    let mut world = World::new();
    let never = || functions::<Policy>().on_apply(|_, _| std::future::pending());
    world.controller(move || Controller::new(never()).deadline(Duration::from_secs(3600)));
    world.settled().await;
    world.apply(policy(&[], "80")).await;
    world.settled().await;
}

#[tokio::test]
#[should_panic(expected = "two words")]
async fn a_draft_that_cannot_be_is_refused() {
    World::new().apply(Draft::new("web", Policy::default()).label("two words", "")).await;
}

#[tokio::test]
#[should_panic(expected = "no name for a controller")]
async fn a_controller_that_cannot_run_is_refused() {
    World::new().controller(|| Controller::new(Policies).publishes::<Rules>().named("two words"));
}
