//! Objects that refer to others, and what happens when those change.

use std::{sync::Arc, time::Duration};

use ctkit::{
    Action, Cause, Context, Controller, Draft, Failure, Manager, Object, ObjectKey, Ref, Spec as _, Store, Waiting,
    functions,
};
use nimbus_store::Op;
use tokio::{sync::Semaphore, time::Instant};

use crate::{
    kinds::{Policy, Rules, Zone},
    life::Life,
    log::Log,
    world::{apply, delete, key, published, put, ready, texts, until, write},
};

async fn put_zone(store: &Store, name: &str, text: &str) {
    apply(store, Draft::new(name, Zone { text: text.to_owned() })).await;
}

async fn delete_zone(store: &Store, name: &str) {
    write(store, Op::Delete(key::<Zone>(name))).await;
}

/// Publishes the texts of all zones that a policy names, as far as they are there.
async fn join(cx: Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
    let mut texts = Vec::new();
    for zone in &policy.spec.zones {
        if let Some(zone) = cx.get::<Zone>(&key::<Zone>(zone)).await? {
            texts.push(zone.spec.text.clone());
        }
    }
    let rules = Rules { zone: policy.name().to_owned(), text: texts.join(" ") };
    cx.publish(Object::derived(&policy, "a", rules)).await?;
    Ok(Action::done())
}

fn joining(log: &Log) -> Controller {
    let log = log.clone();
    let reactor = functions().on_apply(move |cx: Context, policy: Arc<Object<Policy>>| {
        log.note(policy.name());
        join(cx, policy)
    });
    Controller::new(reactor).named("policies").publishes::<Rules>()
}

/// Waits for all zones that a policy names.
fn waiting(log: &Log) -> Controller {
    let log = log.clone();
    let reactor = functions().on_apply(move |cx: Context, policy: Arc<Object<Policy>>| {
        log.note(policy.name());
        async move {
            let mut missing = Vec::new();
            for zone in &policy.spec.zones {
                let zone = key::<Zone>(zone);
                if cx.get::<Zone>(&zone).await?.is_none() {
                    missing.push(zone);
                }
            }
            if missing.is_empty() { join(cx, policy).await } else { Ok(Action::wait_for(missing)) }
        }
    });
    Controller::new(reactor).named("policies").publishes::<Rules>()
}

/// F76, H18: a referent that came, changed or went was noticed at the next relist, if at all.
#[tokio::test(start_paused = true)]
async fn a_referrer_follows_what_it_refers_to() {
    let (store, log) = (Store::in_memory(), Log::default());
    let life = Life::new(&store, joining(&log)).await;
    put(&store, "web", &["x", "y"], "").await;
    life.settled().await;
    assert_eq!(published(&store)["web"], "");
    put_zone(&store, "x", "1").await;
    life.settled().await;
    assert_eq!(published(&store)["web"], "1");
    put_zone(&store, "y", "2").await;
    put_zone(&store, "x", "3").await;
    life.settled().await;
    assert_eq!(published(&store)["web"], "3 2");
    delete_zone(&store, "x").await;
    life.settled().await;
    assert_eq!(published(&store)["web"], "2");
    life.stop().await;
}

/// F76, H20: wake-ups called the reconciler directly, past its queue: twice at once, and with nobody to note the error.
#[tokio::test(start_paused = true)]
async fn referents_wake_through_the_queue_once_for_many_changes_and_at_once() {
    let (store, log) = (Store::in_memory(), Log::default());
    let life = Life::new(&store, joining(&log)).await;
    put(&store, "web", &["x", "x", "y"], "").await;
    put_zone(&store, "x", "1").await;
    life.settled().await;
    log.take();
    let began = Instant::now();
    life.handle.pause("policies", Some(&key::<Policy>("web"))).await.unwrap();
    for n in 0..20 {
        put_zone(&store, "x", &n.to_string()).await;
        put_zone(&store, "y", &n.to_string()).await;
        life.settled().await;
    }
    let entry = life.entry(&key::<Policy>("web")).await.unwrap();
    assert_eq!(entry.state, Waiting::Paused);
    assert!(entry.causes.contains(Cause::Referent));
    assert_eq!(log.take(), [""; 0], "it is in the queue, and that is paused");
    life.handle.resume("policies", Some(&key::<Policy>("web"))).await.unwrap();
    life.settled().await;
    assert_eq!(log.take(), ["web"]);
    assert_eq!(published(&store)["web"], "19 19 19");
    assert!(began.elapsed() < Duration::from_millis(100), "nobody waited: {:?}", began.elapsed());
    life.stop().await;
}

/// H19, F77: the difference of two sets of references was left to the developer, and one that was dropped woke for ever.
#[tokio::test(start_paused = true)]
async fn a_reference_that_is_dropped_wakes_no_more() {
    let (store, log) = (Store::in_memory(), Log::default());
    let life = Life::new(&store, joining(&log)).await;
    put_zone(&store, "x", "1").await;
    put_zone(&store, "y", "1").await;
    put(&store, "web", &["x", "y"], "").await;
    life.settled().await;
    put(&store, "web", &["y"], "").await;
    life.settled().await;
    log.take();
    put_zone(&store, "x", "2").await;
    life.settled().await;
    assert_eq!(log.take(), [""; 0]);
    put_zone(&store, "y", "2").await;
    life.settled().await;
    assert_eq!(log.take(), ["web"]);
    let explained = life.handle.explain("policies", &key::<Policy>("web")).await.unwrap().unwrap();
    assert_eq!(explained.refers_to, [Ref::to(&key::<Zone>("y"))]);
    life.stop().await;
}

/// Does something to a zone after a reactor has read it and before it returns.
async fn change_between(change: impl AsyncFnOnce(&Store), expected: &str) {
    let (store, log, gate) = (Store::in_memory(), Log::default(), Arc::new(Semaphore::new(0)));
    put_zone(&store, "x", "before").await;
    let (noted, held) = (log.clone(), gate.clone());
    let reactor = functions().on_apply(move |cx: Context, policy: Arc<Object<Policy>>| {
        let (log, gate) = (noted.clone(), held.clone());
        async move {
            let done = join(cx, policy).await?;
            log.note("read");
            gate.acquire().await.unwrap().forget();
            Ok(done)
        }
    });
    let life = Life::new(&store, Controller::new(reactor).publishes::<Rules>()).await;
    put(&store, "web", &["x"], "").await;
    until(|| log.len() == 1).await;
    change(&store).await;
    gate.add_permits(100);
    life.settled().await;
    assert_eq!(published(&store)["web"], expected);
    life.stop().await;
}

/// H22: a referent that changed while its referrer was being worked on was seen as it had been, and nobody looked again.
#[tokio::test(start_paused = true)]
async fn a_referent_that_changes_during_a_reaction_is_read_again() {
    change_between(async |store| put_zone(store, "x", "after").await, "after").await;
}

/// H22: the same with a referent that ended before anybody listened to its kind: it was in no list, and in no event.
#[tokio::test(start_paused = true)]
async fn a_referent_that_ends_during_the_first_reaction_is_missed() {
    change_between(async |store| delete_zone(store, "x").await, "").await;
}

/// F76, F80, F81: an object that waited for another said so to nobody, and went on when somebody looked at it by chance.
#[tokio::test(start_paused = true)]
async fn an_object_waits_for_others_and_says_for_which() {
    let (store, log) = (Store::in_memory(), Log::default());
    let (web, x, y) = (key::<Policy>("web"), key::<Zone>("x"), key::<Zone>("y"));
    let life = Life::new(&store, waiting(&log)).await;
    put(&store, "web", &["x", "y"], "").await;
    life.settled().await;
    assert_eq!(published(&store).len(), 0);
    let (code, message) = ready(&store, "web");
    assert_eq!(code, "Waiting");
    assert!(message.contains("Zone") && message.contains('x') && message.contains('y'), "{message}");
    assert_eq!(life.entry(&web).await.unwrap().state, Waiting::Waiting);
    tokio::time::advance(Duration::from_secs(60)).await;
    let dangling = life.handle.dangling("policies").await.unwrap();
    let missing: Vec<_> = dangling.iter().map(|one| (&one.referent, &*one.referrers)).collect();
    assert_eq!(missing, [(&x, std::slice::from_ref(&web)), (&y, std::slice::from_ref(&web))]);
    assert!(dangling[0].since >= Duration::from_secs(60));
    let explained = life.handle.explain("policies", &web).await.unwrap().unwrap();
    assert_eq!(explained.waits_for, std::slice::from_ref(&x));
    assert_eq!(explained.dealt_with, None);

    put_zone(&store, "x", "1").await;
    life.settled().await;
    assert_eq!(ready(&store, "web").0, "Waiting");
    put_zone(&store, "y", "2").await;
    life.settled().await;
    assert_eq!(ready(&store, "web").0, "Reconciled");
    assert_eq!(published(&store)["web"], "1 2");
    assert_eq!(life.handle.dangling("policies").await.unwrap(), []);

    delete_zone(&store, "y").await;
    life.settled().await;
    assert_eq!(ready(&store, "web").0, "Waiting");
    assert_eq!(published(&store)["web"], "1 2", "what was good before stays");
    life.stop().await;
}

/// F81: the delete of an object that waited for something which never came waited as well.
#[tokio::test(start_paused = true)]
async fn an_object_that_waits_can_be_deleted() {
    let (store, log) = (Store::in_memory(), Log::default());
    let life = Life::new(&store, waiting(&log)).await;
    put(&store, "web", &["never"], "").await;
    life.settled().await;
    delete(&store, "web").await;
    life.settled().await;
    assert_eq!(life.handle.entries().await.unwrap(), []);
    assert_eq!(life.handle.dangling("policies").await.unwrap(), []);
    assert_eq!(life.handle.explain("policies", &key::<Policy>("web")).await.unwrap(), None);
    life.stop().await;
}

/// H15: a reactor that waited for an object which was there already, but not ready, was called again at once, for ever.
#[tokio::test(start_paused = true)]
async fn waiting_for_what_is_there_already_does_not_spin() {
    let (store, log) = (Store::in_memory(), Log::default());
    let noted = log.clone();
    let reactor = functions().on_apply(move |cx: Context, policy: Arc<Object<Policy>>| {
        noted.note(policy.name());
        async move {
            let zone: ObjectKey = key::<Zone>("x");
            match cx.get::<Zone>(&zone).await? {
                Some(ready) if ready.spec.text == "ready" => join(cx, policy).await,
                _ => Ok(Action::wait_for([zone])),
            }
        }
    });
    put_zone(&store, "x", "not ready").await;
    let life = Life::new(&store, Controller::new(reactor).publishes::<Rules>()).await;
    put(&store, "web", &["x"], "").await;
    life.settled().await;
    assert!(log.len() <= 4, "{} calls for nothing", log.len());
    put_zone(&store, "x", "ready").await;
    life.settled().await;
    assert_eq!(published(&store)["web"], "ready");
    life.stop().await;
}

/// F79, H21: the watch of a kind had to be declared when the program was built, and was never given up or too soon.
#[tokio::test(start_paused = true)]
async fn a_kind_is_watched_from_its_first_reference_to_a_while_after_its_last() {
    let (store, log) = (Store::in_memory(), Log::default());
    let manager = Manager::builder(store.clone())
        .controller(joining(&log))
        .linger(Duration::from_secs(10))
        .seed(7);
    let life = Life::ready(manager).await;
    for round in 0..3 {
        put_zone(&store, "x", &format!("then {round}")).await;
        put(&store, "web", &["x"], "").await;
        life.settled().await;
        assert_eq!(published(&store)["web"], format!("then {round}"));
        put_zone(&store, "x", &format!("now {round}")).await;
        life.settled().await;
        assert_eq!(published(&store)["web"], format!("now {round}"));
        put(&store, "web", &[], "").await;
        life.settled().await;
        // Shorter than the linger, longer than it, and much longer.
        tokio::time::sleep(Duration::from_secs([5, 15, 100][round])).await;
    }
    life.stop().await;
}

/// F71, H18: only children of one kind were looked at, so that a parent without any was never seen.
#[tokio::test(start_paused = true)]
async fn a_list_is_a_reference_to_all_that_are_there_and_all_that_come() {
    let (store, log) = (Store::in_memory(), Log::default());
    let noted = log.clone();
    let reactor = functions().on_apply(move |cx: Context, policy: Arc<Object<Policy>>| {
        noted.note(policy.name());
        async move {
            let zones = cx.list::<Zone>().await?;
            let names: Vec<_> = zones.iter().map(|zone| zone.name()).collect();
            let rules = Rules { zone: "all".to_owned(), text: names.join(" ") };
            cx.publish(Object::derived(&policy, "a", rules)).await?;
            Ok(Action::done())
        }
    });
    put(&store, "web", &[], "").await;
    let life = Life::new(&store, Controller::new(reactor).publishes::<Rules>()).await;
    assert_eq!(published(&store)["all"], "");
    for (n, expected) in ["z0", "z0 z1", "z0 z1 z2"].into_iter().enumerate() {
        put_zone(&store, &format!("z{n}"), "").await;
        life.settled().await;
        assert_eq!(published(&store)["all"], expected);
    }
    delete_zone(&store, "z1").await;
    life.settled().await;
    assert_eq!(published(&store)["all"], "z0 z2");
    life.stop().await;
}

/// F71: an object that left a selector by its own update was still counted by those who had selected it.
#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_a_selector_wakes_those_who_selected_it() {
    let (store, log) = (Store::in_memory(), Log::default());
    let noted = log.clone();
    let reactor = functions().on_apply(move |cx: Context, policy: Arc<Object<Policy>>| {
        if policy.name() == "all" {
            noted.note("all");
            cx.refer([Ref::matching::<Policy>("tier=edge").unwrap()]);
        }
        async { Ok(Action::done()) }
    });
    let label = |tier: &str| Draft::new("web", Policy::default()).label("tier", tier);
    apply(&store, label("edge")).await;
    let life = Life::new(&store, Controller::new(reactor).publishes::<Rules>()).await;
    put(&store, "all", &[], "").await;
    life.settled().await;
    log.take();
    apply(&store, label("core")).await;
    life.settled().await;
    assert_eq!(log.take(), ["all"], "it left");
    apply(&store, label("none")).await;
    life.settled().await;
    assert_eq!(log.take(), [""; 0], "it was not there");
    apply(&store, label("edge")).await;
    life.settled().await;
    assert_eq!(log.take(), ["all"], "it came back");
    assert_ne!(Zone::kind(), Policy::kind());
    life.stop().await;
}

/// H29: a resolver was locked while something was sent that nobody took, and everything that had references stood still. A
/// reaction that never ends, after all that it may do, holds nothing that anybody else needs.
#[tokio::test(start_paused = true)]
async fn a_reaction_that_never_ends_holds_up_no_references_of_others() {
    let store = Store::in_memory();
    let reactor = functions().on_apply(|cx: Context, policy: Arc<Object<Policy>>| async move {
        let missing = policy
            .spec
            .zones
            .iter()
            .map(|zone| key::<Zone>(zone))
            .find(|zone| zone.name() == "missing");
        let all = cx.list::<Zone>().await?;
        let done = join(cx, policy.clone()).await?;
        if policy.name() == "stuck" {
            std::future::pending::<()>().await;
        }
        let is_there = |zone: &ObjectKey| all.iter().any(|other| other.key() == zone);
        Ok(missing.filter(|zone| !is_there(zone)).map_or(done, |zone| Action::wait_for([zone])))
    });
    let controller = Controller::new(reactor).named("policies").publishes::<Rules>();
    put_zone(&store, "x", "1").await;
    put(&store, "stuck", &["x", "y"], "").await;
    let manager = Manager::builder(store.clone()).controller(controller).grace(Duration::from_secs(1));
    let life = Life::start(manager);
    put(&store, "web", &["x"], "").await;
    put(&store, "late", &["x", "missing"], "").await;
    until(|| published(&store).get("web").is_some_and(|text| text == "1")).await;
    put_zone(&store, "x", "2").await;
    put_zone(&store, "missing", "3").await;
    until(|| published(&store) == texts(&[("web", "2"), ("late", "2 3")])).await;
    put(&store, "web", &["y"], "").await;
    delete_zone(&store, "x").await;
    delete(&store, "late").await;
    until(|| published(&store) == texts(&[("web", "")])).await;
    put_zone(&store, "y", "4").await;
    until(|| published(&store) == texts(&[("web", "4")])).await;
    life.stop().await;
}
