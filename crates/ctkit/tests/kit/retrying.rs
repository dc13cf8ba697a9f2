//! What becomes of reactions that fail.

use std::{sync::Arc, time::Duration};

use ctkit::{Action, Backoff, Context, Controller, Failure, Object, Store, Waiting, functions};
use nimbus_wire::v1::ConditionState;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    kinds::{Policy, Rules},
    life::Life,
    log::Log,
    world::{apply, key, published, put, ready, standing, until},
};

/// Publishes the text, unless the policy says that it cannot work.
async fn publish(cx: Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
    let text = match &*policy.spec.text {
        "never" => return Err(Failure::new("it says so").permanent()),
        "later" => return Err(Failure::new("not yet")),
        text => text.to_owned(),
    };
    cx.publish(Object::derived(&policy, "a", Rules { zone: "a".into(), text })).await?;
    Ok(Action::done())
}

/// Notes attempt and text of each call.
fn noting(log: &Log) -> Controller {
    let log = log.clone();
    let reactor = functions().on_apply(move |cx, policy: Arc<Object<Policy>>| {
        log.note(format!("{} {}", cx.attempt(), policy.spec.text));
        publish(cx, policy)
    });
    Controller::new(reactor).named("policies").publishes::<Rules>()
}

/// H01: a reactor that failed was never called again, and the object stayed half done until somebody touched it. Where
/// it was called again, it was with the event that had failed, though the object had changed since.
#[tokio::test(start_paused = true)]
async fn a_reactor_that_fails_seven_times_is_called_an_eighth_with_the_newest_version() {
    let store = Store::in_memory();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = calls.clone();
    let labelled = store.clone();
    let reactor = functions().on_apply(move |cx: Context, policy: Arc<Object<Policy>>| {
        let (seen, store) = (seen.clone(), labelled.clone());
        async move {
            seen.lock().push((cx.attempt(), policy.meta.labels.get("n").map(str::to_owned)));
            if cx.attempt() < 7 {
                // Not its spec, which would begin the count again.
                let draft = ctkit::Draft::new("web", policy.spec.clone()).label("n", &cx.attempt().to_string());
                apply(&store, draft).await;
                return Err(Failure::new("not yet"));
            }
            publish(cx, policy).await
        }
    });
    let life = Life::new(&store, Controller::new(reactor).named("policies").publishes::<Rules>()).await;
    put(&store, "web", &[], "one").await;
    until(|| calls.lock().len() == 3).await;
    let entry = life.entry(&key::<Policy>("web")).await.unwrap();
    assert_eq!((entry.state, entry.attempts), (Waiting::Retrying, 3));
    assert_eq!(entry.failure.unwrap().message(), "not yet");
    until(|| !published(&store).is_empty()).await;
    life.settled().await;
    let expected: Vec<_> = (0..8u32).map(|n| (n, n.checked_sub(1).map(|n| n.to_string()))).collect();
    assert_eq!(*calls.lock(), expected, "each attempt sees what the one before it wrote");
    assert_eq!(life.entry(&key::<Policy>("web")).await, None);
    assert_eq!(published(&store)["a"], "one");
    life.stop().await;
}

/// H01: the count of failures of an older version held up the newer one, which had nothing to do with them.
#[tokio::test(start_paused = true)]
async fn an_edit_begins_the_count_of_attempts_again() {
    let (store, log) = (Store::in_memory(), Log::default());
    let life = Life::new(&store, noting(&log)).await;
    put(&store, "web", &[], "later").await;
    until(|| log.len() == 4).await;
    put(&store, "web", &[], "now").await;
    life.settled().await;
    assert_eq!(log.take(), ["0 later", "1 later", "2 later", "3 later", "0 now"]);
    life.stop().await;
}

/// H09: an object that failed once for want of a connection was FAILED for good, and work on it ended.
#[tokio::test(start_paused = true)]
async fn a_transient_failure_is_a_condition_and_goes_away() {
    let (store, log) = (Store::in_memory(), Log::default());
    let noted = log.clone();
    let reactor = functions().on_apply(move |cx: Context, policy| {
        noted.note("call");
        let first = cx.attempt() == 0;
        async move { if first { Err(Failure::new("no route")) } else { publish(cx, policy).await } }
    });
    let life = Life::new(&store, Controller::new(reactor).publishes::<Rules>()).await;
    put(&store, "web", &[], "one").await;
    life.settled().await;
    assert_eq!(ready(&store, "web"), ("Failed".into(), "no route".into()));
    assert_eq!(standing(&store, "web").conditions[0].state(), ConditionState::False);
    until(|| log.len() == 2).await;
    life.settled().await;
    assert_eq!(ready(&store, "web").0, "Reconciled");
    assert_eq!(standing(&store, "web").conditions[0].state(), ConditionState::True);
    life.stop().await;
}

/// H09, F57: what only an edit can cure was tried again and again, and what could be cured by one was not tried after it.
#[tokio::test(start_paused = true)]
async fn a_permanent_failure_waits_for_the_next_generation_and_only_that() {
    let (store, log) = (Store::in_memory(), Log::default());
    let life = Life::new(&store, noting(&log)).await;
    put(&store, "web", &[], "one").await;
    life.settled().await;
    put(&store, "web", &[], "never").await;
    life.settled().await;
    assert_eq!(life.entry(&key::<Policy>("web")).await.unwrap().state, Waiting::Failed);
    assert_eq!(ready(&store, "web"), ("Failed".into(), "it says so".into()));
    assert_eq!(published(&store)["a"], "one", "what was good before stays");

    let spec = Policy { zones: Vec::new(), text: "never".into() };
    apply(&store, ctkit::Draft::new("web", spec).label("touched", "yes")).await;
    life.settled().await;
    tokio::time::advance(Duration::from_secs(24 * 3600)).await;
    life.settled().await;
    assert_eq!(log.take(), ["0 one", "0 never"]);
    put(&store, "web", &[], "two").await;
    life.settled().await;
    assert_eq!(log.take(), ["0 two"]);
    assert_eq!(published(&store)["a"], "two");
    life.stop().await;
}

/// H14: a reaction that waited for an answer which never came held its object for ever.
#[tokio::test(start_paused = true)]
async fn a_reaction_that_takes_too_long_is_given_up_and_tried_again() {
    let (store, log) = (Store::in_memory(), Log::default());
    let noted = log.clone();
    let reactor = functions().on_apply(move |cx: Context, policy| {
        noted.note(cx.attempt().to_string());
        async move {
            if cx.attempt() == 0 {
                std::future::pending::<()>().await;
            }
            publish(cx, policy).await
        }
    });
    let controller = Controller::new(reactor).publishes::<Rules>().deadline(Duration::from_secs(5));
    let life = Life::new(&store, controller).await;
    put(&store, "web", &[], "one").await;
    let began = Instant::now();
    until(|| !published(&store).is_empty()).await;
    assert!(began.elapsed() >= Duration::from_secs(5));
    assert_eq!(log.take(), ["0", "1"]);
    life.stop().await;
}

/// H08: a retry that waited kept a newer version waiting, or the newer version made the retry come later and later.
#[tokio::test(start_paused = true)]
async fn an_edit_does_not_wait_for_the_backoff_of_an_older_version() {
    let (store, log) = (Store::in_memory(), Log::default());
    let hour = Duration::from_secs(3600);
    let life = Life::new(&store, noting(&log).backoff(Backoff { base: hour, max: hour })).await;
    put(&store, "web", &[], "later").await;
    life.settled().await;
    let began = Instant::now();
    put(&store, "web", &[], "now").await;
    life.settled().await;
    assert_eq!(published(&store)["a"], "now");
    assert!(began.elapsed() < Duration::from_secs(1));
    life.stop().await;
}
