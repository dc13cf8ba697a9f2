//! The parts of the kit, together and each on its own.

use std::{sync::Arc, time::Duration};

use ctkit::{
    Action, Cause, Context, Controller, Debounce, Failure, Manager, Object, Reflector, ReflectorConfig, Spec as _,
    Store, functions,
    queue::{self, Finish, Queue},
};
use tokio::time::Instant;

use crate::{
    kinds::{Policy, Rules},
    life::Life,
    log::Log,
    world::{key, put},
};

fn noting(log: &Log) -> Controller {
    let log = log.clone();
    let reactor = functions().on_apply(move |_: Context, policy: Arc<Object<Policy>>| {
        log.note(&*policy.spec.text);
        async { Ok(Action::done()) }
    });
    Controller::new(reactor).publishes::<Rules>()
}

/// H06: one source had one queue with one worker, and who needed another pace needed another process.
#[tokio::test(start_paused = true)]
async fn two_controllers_with_different_policies_share_one_source() {
    let store = Store::in_memory();
    let (eager, lazy, failing) = (Log::default(), Log::default(), Log::default());
    let noted = failing.clone();
    let fails = functions().on_apply(move |_: Context, policy: Arc<Object<Policy>>| {
        noted.note(&*policy.spec.text);
        async { Err(Failure::new("always").retry_after(Duration::from_secs(3600))) }
    });
    let manager = Manager::builder(store.clone())
        .controller(noting(&eager).named("eager"))
        .controller(noting(&lazy).named("lazy").debounce(Debounce::trailing(Duration::from_secs(1))))
        .controller(Controller::new(fails).named("failing"))
        .seed(7);
    let life = Life::ready(manager).await;
    for n in 0..5 {
        put(&store, "web", &[], &n.to_string()).await;
        life.settled().await;
    }
    assert_eq!(eager.take(), ["0", "1", "2", "3", "4"]);
    assert_eq!(lazy.take(), [""; 0], "the burst is not over");
    tokio::time::sleep(Duration::from_secs(2)).await;
    life.settled().await;
    assert_eq!(lazy.take(), ["4"]);
    assert_eq!(failing.take(), ["0", "1", "2", "3", "4"], "its failures are its own");
    life.stop().await;
}

/// H06: none of the parts could be used without all the others.
#[tokio::test(start_paused = true)]
async fn a_reflector_and_a_queue_make_a_controller_of_their_own() {
    let store = Store::in_memory();
    put(&store, "a", &[], "one").await;
    let reflector = Reflector::start(store.clone(), &Policy::kind(), ReflectorConfig::default());
    let mut changes = reflector.subscribe();
    let mut queue = Queue::new(queue::Config::default());
    let lane = queue.lane(queue::Policy::default());
    let mut texts = Vec::new();
    for name in ["a", "b"] {
        put(&store, name, &[], name).await;
        for woken in changes.next().await.keys {
            queue.add(lane, woken.key, Cause::Edited, Instant::now());
        }
        while let Some(job) = queue.next(Instant::now()) {
            let record = reflector.snapshot().get(&job.key).unwrap();
            texts.push(Object::<Policy>::from_wire(&record.to_wire()).unwrap().spec.text);
            queue.finish(lane, &job.key, Finish::Done, Instant::now(), 0.5).unwrap();
        }
    }
    assert_eq!(texts, ["a", "b"]);
}

/// H07, F54: a debounce began again with every change, so that an object that was changed all the time was never looked at.
#[tokio::test(start_paused = true)]
async fn changes_that_never_cease_are_looked_at_from_time_to_time() {
    let (store, log) = (Store::in_memory(), Log::default());
    let (quiet, max_wait) = (Duration::from_millis(50), Duration::from_millis(200));
    let life = Life::new(&store, noting(&log).debounce(Debounce { quiet, max_wait, leading: false })).await;
    for n in 0..100 {
        put(&store, "web", &[], &n.to_string()).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let during = log.take();
    assert!((4..=5).contains(&during.len()), "once in 200 ms of 1,000: {during:?}");
    tokio::time::sleep(Duration::from_millis(100)).await;
    life.settled().await;
    assert_eq!(log.take(), ["99"]);
    life.stop().await;
}

/// H07, F55: a list of many objects was worked off as fast as the machine could.
#[tokio::test(start_paused = true)]
async fn a_rate_holds_for_all_objects_of_a_controller() {
    let (store, log) = (Store::in_memory(), Log::default());
    for n in 0..50 {
        put(&store, &format!("p{n}"), &[], "one").await;
    }
    let began = Instant::now();
    let life = Life::new(&store, noting(&log).rate(10, 10)).await;
    assert_eq!(log.len(), 50);
    let elapsed = began.elapsed();
    assert!(elapsed >= Duration::from_millis(3900) && elapsed <= Duration::from_millis(4200), "{elapsed:?}");
    assert!(life.entry(&key::<Policy>("p0")).await.is_none());
    life.stop().await;
}
