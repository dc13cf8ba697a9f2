//! Callbacks that hear how far controllers are.

use std::sync::Arc;

use ctkit::{Action, Context, Controller, ControllerError, ManagerError, Object, Stage, Store, functions};
use tokio::sync::{Semaphore, mpsc};

use crate::{
    kinds::{Policy, Rules},
    life::{Life, alone},
    world::{put, quiet, rules},
};

/// Publishes when it is let through.
fn gated(name: &str, gate: &Arc<Semaphore>) -> Controller {
    let gate = gate.clone();
    let reactor = functions().on_apply(move |cx: Context, policy: Arc<Object<Policy>>| {
        let gate = gate.clone();
        async move {
            gate.acquire().await.expect("it is never closed").forget();
            cx.publish(Object::derived(&policy, cx.controller(), Rules::of(&policy, policy.name())))
                .await?;
            Ok(Action::done())
        }
    });
    Controller::new(reactor).named(name).publishes::<Rules>()
}

/// A callback, and what it is told.
fn listening() -> (impl FnMut(Stage) -> std::future::Ready<()> + Send + 'static, mpsc::Receiver<Stage>) {
    let (told, heard) = mpsc::channel(64);
    let callback = move |stage| {
        told.try_send(stage).unwrap();
        std::future::ready(())
    };
    (callback, heard)
}

/// F63: nobody could say when a controller had looked at everything, or had nothing left to do, without asking again and
/// again.
#[tokio::test(start_paused = true)]
async fn callbacks_are_told_when_controllers_are_synced_and_when_they_are_idle() {
    let (store, gate, other) = (Store::in_memory(), Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(100)));
    put(&store, "web", &[], "one").await;
    let (callback, mut heard) = listening();
    let (all, mut heard_of_all) = listening();
    let (free, mut heard_of_free) = listening();
    let builder = alone(&store).controller(gated("gated", &gate)).controller(gated("free", &other));
    let life = Life::start(builder.on_stage(["gated"], callback).on_stage([""; 0], all).on_stage(["free"], free));
    // The other one does not wait.
    while heard_of_free.recv().await != Some(Stage::Idle) {}
    assert!(heard.try_recv().is_err(), "nothing has been looked at to the end");
    assert!(heard_of_all.try_recv().is_err(), "all means the slowest, too");

    gate.add_permits(1);
    while heard.recv().await != Some(Stage::Idle) {}
    while heard_of_all.recv().await != Some(Stage::Idle) {}
    assert_eq!(rules(&store).len(), 2, "idle is what comes after everything is published");
    quiet().await;
    while heard.try_recv().is_ok() || heard_of_all.try_recv().is_ok() {}

    put(&store, "db", &[], "one").await;
    assert_eq!(heard.recv().await, Some(Stage::Busy), "it was synced, and still is");
    assert_eq!(heard_of_all.recv().await, Some(Stage::Busy));
    quiet().await;
    assert!(heard.try_recv().is_err(), "it waits at the gate");
    gate.add_permits(1);
    assert_eq!(heard.recv().await, Some(Stage::Idle));
    while heard_of_all.recv().await != Some(Stage::Idle) {}
    assert_eq!(rules(&store).len(), 4);
    life.stop().await;
    let last = std::iter::from_fn(|| heard.try_recv().ok()).last();
    assert!(last.is_none_or(|last| last == Stage::Idle), "{last:?}");
}

/// F63: a callback is somebody else's program.
#[tokio::test(start_paused = true)]
async fn a_callback_that_panics_is_called_again_and_harms_nobody() {
    let (store, gate) = (Store::in_memory(), Arc::new(Semaphore::new(100)));
    let (told, mut heard) = mpsc::channel(64);
    let callback = move |stage| {
        told.try_send(stage).unwrap();
        assert_ne!(stage, Stage::Idle, "as it should");
        async move { assert_ne!(stage, Stage::Busy, "as it should") }
    };
    let life = Life::start(alone(&store).controller(gated("free", &gate)).on_stage(["free"], callback));
    while heard.recv().await != Some(Stage::Idle) {}
    put(&store, "web", &[], "one").await;
    while heard.recv().await != Some(Stage::Idle) {}
    life.settled().await;
    assert_eq!(rules(&store).len(), 1);
    life.stop().await;
}

#[tokio::test]
async fn a_callback_for_a_controller_that_there_is_not_is_refused() {
    let gate = Arc::new(Semaphore::new(0));
    let (callback, _heard) = listening();
    let builder = alone(&Store::in_memory()).controller(gated("zones", &gate)).on_stage(["zoens"], callback);
    let refused = builder.build().unwrap_err();
    let ManagerError::Controller(ControllerError::NoSuchController { .. }) = &refused else { panic!("{refused}") };
    assert_eq!(refused.to_string(), "there is no controller \"zoens\" to hear of; there are zones");
}
