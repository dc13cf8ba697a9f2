//! Statuses: written by the kit, whatever happens meanwhile.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ctkit::{Action, CommitError, Context, Controller, Failure, Generation, Manager, Object, Store, functions};
use nimbus_wire::v1;
use prost::Message as _;
use tokio::sync::Semaphore;

use crate::{
    faulty::Faulty,
    kinds::{Policy, PolicyStatus, Rules},
    life::Life,
    log::Log,
    world::{delete, find, key, put, ready, record, standing, until, write_status},
};

/// Says how many zones there are, and fails for those that should.
async fn count(cx: Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
    let zones = policy.spec.zones.len() as u32;
    cx.update_status(move |status: &mut PolicyStatus| status.zones = zones);
    if policy.spec.text == "fail" { Err(Failure::new("as it says").permanent()) } else { Ok(Action::done()) }
}

fn counting() -> Controller {
    Controller::new(functions().on_apply(count)).named("policies").publishes::<Rules>()
}

async fn between(source: &Faulty, store: &Store, controller: Controller) -> Life {
    Life::ready(Manager::between(source.clone(), store.clone()).controller(controller).seed(7)).await
}

fn detail(store: &Store, name: &str) -> PolicyStatus {
    let detail = standing(store, name).detail.unwrap();
    PolicyStatus::decode(&*detail.value).unwrap()
}

fn has_detail(store: &Store, name: &str) -> bool {
    find(store, name).is_some_and(|record| !record.status().is_empty()) && standing(store, name).detail.is_some()
}

fn condition(word: &str) -> v1::Condition {
    v1::Condition { r#type: word.to_owned(), code: "Yes".to_owned(), ..v1::Condition::default() }
}

/// H03, F45: statuses were written one by one by whoever had computed them, under a lock.
#[tokio::test(start_paused = true)]
async fn statuses_of_many_objects_are_written_together() {
    let store = Store::in_memory();
    for n in 0..200 {
        put(&store, &format!("p{n}"), &["a"], "one").await;
    }
    let source = Faulty::failing(&store, |_| None);
    let life = between(&source, &store, counting()).await;
    life.settled().await;
    until(|| (0..200).all(|n| has_detail(&store, &format!("p{n}")))).await;
    assert!(source.calls() <= 10, "{} transactions for 200 statuses", source.calls());
    life.stop().await;
}

/// H03: a status that could not be written at once was lost, or took that of somebody else with it.
#[tokio::test(start_paused = true)]
async fn statuses_are_written_again_until_they_are_stored() {
    let store = Store::in_memory();
    let source = Faulty::failing(&store, |call| match call % 4 {
        0 => Some(CommitError::Unavailable("busy".into())),
        1 => Some(CommitError::Conflict { key: key::<Policy>("web"), message: "somebody was faster".into() }),
        _ => None,
    });
    let life = between(&source, &store, counting()).await;
    for n in 1..=5 {
        put(&store, "web", &["a", "b", "c", "d", "e"][..n], "one").await;
        until(|| has_detail(&store, "web") && detail(&store, "web").zones == n as u32).await;
        until(|| record(&store, "web").observed() == record(&store, "web").generation()).await;
    }
    assert_eq!(ready(&store, "web").0, "Reconciled");
    life.stop().await;
}

/// H03: two who wrote the same status each threw away what the other had said.
#[tokio::test(start_paused = true)]
async fn a_status_does_not_overwrite_what_somebody_else_said_meanwhile() {
    let store = Store::in_memory();
    put(&store, "web", &["a"], "one").await;
    // The kit does not see for a while what somebody else has written, and must not believe what it sees.
    let source = Faulty::lagging(&store, Duration::from_millis(300));
    let life = between(&source, &store, counting()).await;
    until(|| has_detail(&store, "web")).await;
    for n in 2..6 {
        let mut said = standing(&store, "web");
        said.conditions.push(condition(&format!("Audited{n}")));
        write_status(&store, "web", &said).await;
        put(&store, "web", &["a", "b", "c", "d", "e"][..n], "one").await;
        until(|| detail(&store, "web").zones == n as u32).await;
    }
    until(|| record(&store, "web").observed() == record(&store, "web").generation()).await;
    let said = standing(&store, "web").conditions;
    let said: Vec<_> = said.iter().map(|condition| &*condition.r#type).collect();
    assert_eq!(said, ["Audited2", "Audited3", "Audited4", "Audited5", "Ready"]);
    life.stop().await;
}

/// H03: of two reactions that each changed a part of the status before either was written, only the second counted.
#[tokio::test(start_paused = true)]
async fn edits_of_a_status_that_is_not_written_yet_add_up() {
    let (store, log) = (Store::in_memory(), Log::default());
    let noted = log.clone();
    let reactor = functions().on_apply(move |cx: Context, policy: Arc<Object<Policy>>| {
        noted.note(&*policy.spec.text);
        match &*policy.spec.text {
            "one" => cx.update_status(|status: &mut PolicyStatus| status.zones += 1),
            text => {
                let text = text.to_owned();
                cx.update_status(move |status: &mut PolicyStatus| status.note = text);
            }
        }
        async { Ok(Action::done()) }
    });
    let source = Faulty::failing(&store, |call| (call < 4).then(|| CommitError::Unavailable("busy".into())));
    let life = between(&source, &store, Controller::new(reactor).publishes::<Rules>()).await;
    put(&store, "web", &[], "one").await;
    until(|| log.len() == 1).await;
    put(&store, "web", &[], "two").await;
    until(|| log.len() == 2).await;
    assert!(!has_detail(&store, "web"), "nothing is written yet");
    until(|| has_detail(&store, "web") && !detail(&store, "web").note.is_empty()).await;
    assert_eq!(detail(&store, "web"), PolicyStatus { zones: 1, note: "two".into() });
    life.stop().await;
}

/// Holds each reaction until it is let go, and notes what it saw.
fn gated(log: &Log, gate: &Arc<Semaphore>, seen: &Arc<AtomicU64>) -> Controller {
    let (log, gate, seen) = (log.clone(), gate.clone(), seen.clone());
    let reactor = functions().on_apply(move |cx: Context, policy: Arc<Object<Policy>>| {
        let gate = gate.clone();
        log.note(&*policy.spec.text);
        seen.fetch_max(policy.meta.generation.0, Ordering::Relaxed);
        async move {
            gate.acquire().await.unwrap().forget();
            count(cx, policy).await
        }
    });
    Controller::new(reactor).named("policies").publishes::<Rules>()
}

/// H03: the status of an object that had been deleted and made again was written onto its successor.
#[tokio::test(start_paused = true)]
async fn a_status_of_an_earlier_life_is_not_written_onto_the_next() {
    let (store, log, gate) = (Store::in_memory(), Log::default(), Arc::new(Semaphore::new(0)));
    let life = Life::new(&store, gated(&log, &gate, &Arc::default())).await;
    put(&store, "web", &["a", "b"], "fail").await;
    until(|| log.len() == 1).await;
    delete(&store, "web").await;
    put(&store, "web", &[], "second life").await;
    gate.add_permits(1);
    until(|| log.len() == 2).await;
    assert!(record(&store, "web").status().is_empty(), "the first life says nothing of the second");
    gate.add_permits(1);
    life.settled().await;
    assert_eq!(ready(&store, "web").0, "Reconciled");
    assert_eq!(log.take(), ["fail", "second life"]);

    put(&store, "web", &["a"], "third").await;
    until(|| log.len() == 1).await;
    delete(&store, "web").await;
    gate.add_permits(1);
    life.settled().await;
    assert!(find(&store, "web").is_none(), "a status brings nobody back");
    life.stop().await;
}

/// H16, F48: a status said "done" of an edit that nobody had looked at.
#[tokio::test(start_paused = true)]
async fn a_status_never_claims_more_than_was_seen() {
    let (store, log, gate) = (Store::in_memory(), Log::default(), Arc::new(Semaphore::new(0)));
    let seen = Arc::new(AtomicU64::new(0));
    let life = Life::new(&store, gated(&log, &gate, &seen)).await;
    put(&store, "web", &["a"], "first").await;
    for n in 1..=5 {
        until(|| log.len() == n).await;
        // An edit while the reaction goes on; the last one stays as it is.
        if n < 5 {
            put(&store, "web", &["a"], &format!("edit {n}")).await;
        }
        assert!(record(&store, "web").observed() < Generation(seen.load(Ordering::Relaxed)));
        gate.add_permits(1);
        until(|| record(&store, "web").observed() == Generation(n as u64)).await;
        let said = standing(&store, "web");
        assert!(
            said.conditions
                .iter()
                .all(|condition| condition.generation <= seen.load(Ordering::Relaxed))
        );
    }
    life.settled().await;
    assert_eq!(record(&store, "web").observed(), record(&store, "web").generation());
    life.stop().await;
}

/// H17: a reconcile read its cache before its own write had come round, and did the same work again.
#[tokio::test(start_paused = true)]
async fn a_reaction_never_sees_less_than_the_kit_has_written() {
    let (store, log) = (Store::in_memory(), Log::default());
    let noted = log.clone();
    let reactor = functions().on_apply(move |cx: Context, _: Arc<Object<Policy>>| {
        let count = cx.status::<PolicyStatus>().unwrap_or_default().zones;
        noted.note(count.to_string());
        cx.update_status(move |status: &mut PolicyStatus| status.zones = count + 1);
        async move { Ok(if count < 5 { Action::requeue_after(Duration::from_millis(10)) } else { Action::done() }) }
    });
    let source = Faulty::lagging(&store, Duration::from_millis(700));
    let life = between(&source, &store, Controller::new(reactor).named("policies").publishes::<Rules>()).await;
    put(&store, "web", &[], "one").await;
    until(|| log.len() == 2).await;
    // Whatever else wakes it does not make it look too early.
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        life.handle.wake("policies", &key::<Policy>("web")).await.unwrap();
    }
    until(|| has_detail(&store, "web") && detail(&store, "web").zones >= 6).await;
    let seen: Vec<u32> = log.take().iter().map(|count| count.parse().unwrap()).collect();
    assert!(seen.is_sorted_by(|a, b| a < b), "a count was seen twice: {seen:?}");
    life.stop().await;
}

/// H03: an object that somebody wrote all the time kept the statuses of all others from being stored.
#[tokio::test(start_paused = true)]
async fn an_object_that_changes_all_the_time_does_not_hold_up_the_statuses_of_others() {
    let store = Store::in_memory();
    // What the kit reads of the restless one is always too old to be written over.
    let source = Faulty::lagging(&store, Duration::from_millis(50));
    let life = between(&source, &store, counting()).await;
    let restless = async {
        for n in 0.. {
            put(&store, "restless", &[], &n.to_string()).await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let calm = async {
        for n in 0..20 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let name = format!("calm-{n}");
            put(&store, &name, &[], "one").await;
            let began = tokio::time::Instant::now();
            until(|| has_detail(&store, &name)).await;
            assert!(began.elapsed() < Duration::from_millis(500), "{name}: {:?}", began.elapsed());
        }
    };
    tokio::select! {
        () = calm => {}
        () = restless => {}
    }
    until(|| has_detail(&store, "restless") && record(&store, "restless").observed().0 > 0).await;
    life.stop().await;
}

/// A controller that shares its objects with another, or whose source has no statuses, was given a condition all the same.
#[tokio::test(start_paused = true)]
async fn without_a_ready_condition_only_what_the_reactor_says_is_written() {
    let store = Store::in_memory();
    put(&store, "told", &["a", "b"], "one").await;
    put(&store, "silent", &[], "silent").await;
    put(&store, "failing", &["a"], "fail").await;
    let reactor = functions().on_apply(|cx: Context, policy: Arc<Object<Policy>>| async move {
        if policy.spec.text == "silent" { Ok(Action::done()) } else { count(cx, policy).await }
    });
    let controller = Controller::new(reactor).named("policies").publishes::<Rules>();
    let life = Life::new(&store, controller.without_ready_condition()).await;
    for (name, zones) in [("told", 2), ("failing", 1)] {
        assert_eq!(detail(&store, name).zones, zones);
        assert!(standing(&store, name).conditions.is_empty(), "{name}: {:?}", standing(&store, name));
    }
    assert!(record(&store, "silent").status().is_empty());
    life.stop().await;
}
