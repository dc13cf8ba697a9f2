//! One instance leads, and the others stand by (scenario 10).

use std::{pin::pin, time::Duration};

use ctkit::{Change, Event, InstanceId, Instances, Manager, ObjectKey, Source, Spec as _, Standing, Store};
use tokio_stream::StreamExt as _;

use crate::{
    faulty::Faulty,
    kinds::Rules,
    life::Life,
    lives::{
        diary::Diary,
        log::{Log, fill},
    },
    process::Pause,
    world::{delete, find, published, put, quiet, texts},
};

const TTL: Duration = Duration::from_secs(3);

fn leader() -> Instances {
    Instances::leader("policies").ttl(TTL)
}

/// A lock that ended by itself was still believed in by its holder, which came back from a long pause and wrote over what
/// its successor had done (H13).
#[tokio::test(start_paused = true)]
async fn a_paused_leader_that_returns_is_refused_and_stands_by() {
    for (seed, pause_after) in [0u64, 5, 15, 25, 40, 100].into_iter().enumerate() {
        let (store, log) = (Store::in_memory(), Log::default());
        fill(&store, 20, "one").await;
        let pause = Pause::default();
        let a = log.slow(&store, "a", leader(), Duration::from_millis(20)).seed(seed as u64);
        let a = Life::paused_by(&pause, a);
        quiet().await;
        let b = Life::start(log.instance(&store, "b", leader()));
        quiet().await;
        assert_eq!(log.shares().into_iter().collect::<Vec<_>>(), [("a".to_owned(), 20)]);
        log.clear();

        // It stops at some moment of its work.
        fill(&store, 20, "two").await;
        tokio::time::sleep(Duration::from_millis(pause_after)).await;
        pause.set(true);
        tokio::time::sleep(TTL * 2).await;
        fill(&store, 20, "three").await;
        quiet().await;
        assert!(published(&store).values().all(|text| text == "three"));
        let before = crate::world::head(&store);

        // Nothing that it does reaches the bus.
        log.clear();
        pause.set(false);
        quiet().await;
        assert_eq!(crate::world::head(&store), before, "paused after {pause_after} ms");
        assert_eq!(a.handle.instances().standing, Standing::Standby);
        assert!(log.entries().is_empty(), "{:#?}", log.entries());

        // It is of use again when it is needed.
        fill(&store, 20, "four").await;
        quiet().await;
        b.crash().await;
        fill(&store, 20, "five").await;
        quiet().await;
        assert!(published(&store).values().all(|text| text == "five"));
        assert!(log.doubles().is_empty(), "{:#?}", log.doubles());
        a.stop().await;
    }
}

/// A standby took over whose watch had stopped saying anything, as those of connections do of which one end is gone. What it
/// had read was older than what the leader before it had dealt with: it withdrew what had been published since, agents removed
/// that, and got it again when the watch had come back (seed 234625426; H13, H22).
#[tokio::test(start_paused = true)]
async fn who_takes_over_knows_what_the_one_before_knew() {
    for remembers in [true, false] {
        let (store, a_diary, b_diary) = (Store::in_memory(), Diary::default(), Diary::default());
        let (a_source, b_source) = (Faulty::lagging(&store, Duration::ZERO), Faulty::lagging(&store, Duration::ZERO));
        let instance = |source: &Faulty, diary: &Diary, name: &str| {
            let builder = Manager::between(source.clone(), store.clone());
            let builder = builder.instances(leader().instance(InstanceId::new(name)));
            builder.controller(diary.with(remembers, "")).seed(7)
        };
        put(&store, "web", &["x"], "one").await;
        put(&store, "db", &["z"], "one").await;
        let a = Life::start(instance(&a_source, &a_diary, "a"));
        quiet().await;
        let b = Life::start(instance(&b_source, &b_diary, "b"));
        quiet().await;
        b_source.deafen();
        put(&store, "web", &["x", "y"], "two").await;
        delete(&store, "db").await;
        quiet().await;
        let expected = texts(&[("x", "two"), ("y", "two")]);
        assert_eq!(published(&store), expected);

        let watching = tokio::spawn(removals(store.clone()));
        a.crash().await;
        quiet().await;
        assert_eq!(b.handle.instances().standing, Standing::Active);
        watching.abort();
        let removed = watching.await;
        assert!(removed.is_err(), "{removed:?} was removed, and wanted all the time");
        assert_eq!(published(&store), expected);
        let calls = b_diary.take();
        let stale = |call: &&String| call.contains("one");
        assert_eq!(calls.iter().find(stale), None, "{calls:?}");
        assert_eq!(b_diary.take().len(), 0);

        // From then on, it hears of everything.
        put(&store, "web", &["y"], "three").await;
        quiet().await;
        assert_eq!(published(&store), texts(&[("y", "three")]));
        b.stop().await;
    }
}

/// The first rules that are removed.
async fn removals(store: Store) -> ObjectKey {
    let mut changes = pin!(Source::watch(&store, &Rules::kind(), None));
    loop {
        if let Some(Ok(Event::Changes(changes, _))) = changes.next().await
            && let Some(Change::Removed(key, _)) = changes.into_iter().find(|it| matches!(it, Change::Removed(..)))
        {
            return key;
        }
    }
}

/// However long it was away, and whether or not its lease was over by then: nobody else is there, so it goes on (H13).
#[tokio::test(start_paused = true)]
async fn a_leader_that_was_away_for_a_moment_goes_on() {
    let (store, log) = (Store::in_memory(), Log::default());
    fill(&store, 20, "0").await;
    let pause = Pause::default();
    let a = Life::paused_by(&pause, log.instance(&store, "a", leader()));
    quiet().await;
    for away in (0..TTL.as_millis() as u64 * 2).step_by(100) {
        let text = away.to_string();
        fill(&store, 20, &text).await;
        tokio::time::sleep(Duration::from_millis(away % 30)).await;
        pause.set(true);
        tokio::time::sleep(Duration::from_millis(away)).await;
        pause.set(false);
        quiet().await;
        assert!(published(&store).values().all(|published| *published == text), "away for {away} ms");
    }
    assert!(log.doubles().is_empty(), "{:#?}", log.doubles());
    a.stop().await;
}

/// Work that took longer than the lock lasted was begun a second time by somebody else (H14).
#[tokio::test(start_paused = true)]
async fn a_reaction_that_takes_longer_than_a_lease_keeps_it() {
    let (store, log) = (Store::in_memory(), Log::default());
    put(&store, "p0", &["p0"], "one").await;
    let a = Life::start(log.slow(&store, "a", leader(), TTL * 10));
    tokio::time::sleep(TTL).await;
    let b = Life::start(log.slow(&store, "b", leader(), TTL * 10));
    tokio::time::sleep(TTL * 9).await;
    quiet().await;
    assert_eq!(published(&store).len(), 1);
    let entries = log.entries();
    assert!(entries.len() == 1 && entries[0].instance == "a" && entries[0].good, "{entries:#?}");
    a.stop().await;
    b.stop().await;
}

/// Work that hung was never given up, and nothing was ever tried again (H14).
#[tokio::test(start_paused = true)]
async fn a_reaction_that_hangs_is_given_up_at_its_deadline_and_tried_again() {
    let store = Store::in_memory();
    put(&store, "web", &["a"], "one").await;
    put(&store, "db", &["b"], "one").await;
    let diary = crate::lives::diary::Diary::default();
    let gate = diary.gate("web");
    let controller = diary.controller().deadline(Duration::from_secs(10));
    let life = Life::begin(crate::life::alone(&store).controller(controller)).await;
    assert_eq!(crate::world::ready(&store, "web").0, "Failed");
    assert_eq!(crate::world::ready(&store, "db").0, "Reconciled");
    assert!(diary.take().iter().filter(|line| *line == "create web=one").count() > 1);
    gate.add_permits(100);
    quiet().await;
    assert_eq!(published(&store).len(), 2);
    assert!(diary.overlaps().is_empty());
    assert!(find(&store, "web").is_some());
    life.stop().await;
}
