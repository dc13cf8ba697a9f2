//! How a manager ends.

use std::{sync::Arc, time::Duration};

use ctkit::{Action, Context, Controller, Manager, Object, Store, functions};
use tokio::time::Instant;

use crate::{
    faulty::Faulty,
    kinds::{Policy, PolicyStatus, Rules},
    life::Life,
    log::Log,
    world::{published, put, ready, record, until},
};

/// Takes a while for each object.
fn slow(log: &Log, delay: Duration) -> Controller {
    let log = log.clone();
    let reactor = functions().on_apply(move |cx: Context, policy: Arc<Object<Policy>>| {
        log.note(policy.name());
        async move {
            tokio::time::sleep(delay).await;
            cx.update_status(|status: &mut PolicyStatus| status.zones = 1);
            let rules = Rules::of(&policy, policy.name());
            cx.publish(Object::derived(&policy, "a", rules)).await?;
            Ok(Action::done())
        }
    });
    Controller::new(reactor).named("policies").publishes::<Rules>().concurrency(1)
}

/// F62: a stop threw away what was under way, or waited until everything was done that there was to do.
#[tokio::test(start_paused = true)]
async fn a_stop_ends_what_runs_and_begins_nothing() {
    let (store, log) = (Store::in_memory(), Log::default());
    let life = Life::new(&store, slow(&log, Duration::from_secs(3))).await;
    put(&store, "a", &[], "one").await;
    put(&store, "b", &[], "one").await;
    until(|| log.len() == 1).await;
    let began = Instant::now();
    life.stop().await;
    assert!(began.elapsed() >= Duration::from_millis(2900) && began.elapsed() < Duration::from_secs(4));
    let first = log.take().remove(0);
    assert_eq!(published(&store).len(), 1);
    assert_eq!(ready(&store, &first).0, "Reconciled", "what was done is written");
}

/// F62: a stop was over before the last statuses were stored, and they were lost.
#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_statuses_and_for_nothing_else() {
    let (store, log) = (Store::in_memory(), Log::default());
    let source = Faulty::failing(&store, |call| (call < 3).then(|| ctkit::CommitError::Unavailable("busy".to_owned())));
    let manager = Manager::between(source, store.clone()).controller(slow(&log, Duration::ZERO)).seed(7);
    let life = Life::ready(manager).await;
    put(&store, "a", &[], "one").await;
    until(|| log.len() == 1).await;
    let began = Instant::now();
    life.stop().await;
    assert_eq!(ready(&store, "a").0, "Reconciled");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// F62: one reaction that never ended kept the whole process from ending.
#[tokio::test(start_paused = true)]
async fn a_stop_is_bounded_though_a_reaction_never_ends() {
    let (store, log) = (Store::in_memory(), Log::default());
    put(&store, "a", &[], "one").await;
    let hour = Duration::from_secs(3600);
    let manager = Manager::builder(store.clone())
        .controller(slow(&log, hour).deadline(hour))
        .grace(Duration::from_secs(7));
    let life = Life::start(manager.seed(7));
    until(|| log.len() == 1).await;
    let began = Instant::now();
    life.stop().await;
    assert!(began.elapsed() >= Duration::from_secs(7) && began.elapsed() < Duration::from_secs(9));
    assert!(record(&store, "a").status().is_empty());
}

/// F62: a manager with nothing to do took as long to stop as one with much.
#[tokio::test(start_paused = true)]
async fn a_stop_with_nothing_to_do_takes_no_time() {
    let (store, log) = (Store::in_memory(), Log::default());
    put(&store, "a", &[], "one").await;
    let life = Life::new(&store, slow(&log, Duration::ZERO)).await;
    let began = Instant::now();
    life.stop().await;
    assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
}
