//! One instance leads, and the others stand by (scenario 10).

use std::time::Duration;

use ctkit::{Instances, Standing, Store};

use crate::{
    life::Life,
    lives::log::{Log, fill},
    process::Pause,
    world::{find, published, put, quiet},
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
