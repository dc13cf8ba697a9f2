//! What becomes of reactions that panic.

use std::{sync::Arc, time::Duration};

use ctkit::{Action, Backoff, Context, Controller, Object, Store, Waiting, functions};

use crate::{
    kinds::{Policy, Rules},
    life::Life,
    log::Log,
    world::{key, published, put, ready, until},
};

/// Publishes the text to a zone of the name of the policy, unless it says "panic".
fn controller(log: &Log) -> Controller {
    let log = log.clone();
    let reactor = functions().on_apply(move |cx: Context, policy: Arc<Object<Policy>>| {
        log.note(policy.name());
        async move {
            assert!(policy.spec.text != "panic", "it says so");
            let rules = Rules::of(&policy, policy.name());
            cx.publish(Object::derived(&policy, "a", rules)).await?;
            Ok(Action::done())
        }
    });
    let second = Duration::from_secs(1);
    Controller::new(reactor)
        .publishes::<Rules>()
        .quarantine(Backoff { base: second, max: second }, 3)
}

/// F58, F59, H15: a panic on one object ended the worker, and when that was started again it took the same object first.
#[tokio::test(start_paused = true)]
async fn a_panic_holds_up_its_own_object_and_nobody_else() {
    let (store, log) = (Store::in_memory(), Log::default());
    put(&store, "bad", &[], "panic").await;
    put(&store, "good", &[], "one").await;
    let life = Life::new(&store, controller(&log)).await;
    assert_eq!(published(&store)["good"], "one");
    let entry = life.entry(&key::<Policy>("bad")).await.unwrap();
    assert_eq!((entry.state, entry.attempts), (Waiting::Quarantined, 1));
    let (code, message) = ready(&store, "bad");
    assert_eq!(code, "Quarantined");
    assert!(message.contains("it says so"), "{message}");

    put(&store, "good", &[], "two").await;
    life.settled().await;
    assert_eq!(published(&store)["good"], "two");
    put(&store, "bad", &[], "better").await;
    life.settled().await;
    assert_eq!(published(&store)["bad"], "better");
    assert_eq!(ready(&store, "bad").0, "Reconciled");
    assert_eq!(life.entry(&key::<Policy>("bad")).await, None);
    life.stop().await;
}

/// H15: a poison message came round again for ever, and each time cost as much as the first.
#[tokio::test(start_paused = true)]
async fn an_object_that_panics_too_often_waits_for_an_edit() {
    let (store, log) = (Store::in_memory(), Log::default());
    put(&store, "bad", &[], "panic").await;
    let life = Life::new(&store, controller(&log)).await;
    until(|| log.len() == 3).await;
    life.settled().await;
    assert_eq!(life.entry(&key::<Policy>("bad")).await.unwrap().state, Waiting::Poisoned);
    tokio::time::advance(Duration::from_secs(24 * 3600)).await;
    life.settled().await;
    assert_eq!(log.take().len(), 3);
    put(&store, "bad", &[], "better").await;
    life.settled().await;
    assert_eq!(published(&store)["bad"], "better");
    life.stop().await;
}

/// H10: a supervisor that counted failures over its whole life gave up when there had been enough of them.
#[tokio::test(start_paused = true)]
async fn hundreds_of_panics_do_not_end_the_manager() {
    let (store, log) = (Store::in_memory(), Log::default());
    for n in 0..200 {
        put(&store, &format!("bad-{n}"), &[], "panic").await;
    }
    let life = Life::new(&store, controller(&log)).await;
    until(|| log.len() == 600).await;
    put(&store, "good", &[], "one").await;
    life.settled().await;
    assert_eq!(published(&store).len(), 1);
    assert_eq!(life.handle.entries().await.unwrap().len(), 200);
    life.stop().await;
}
