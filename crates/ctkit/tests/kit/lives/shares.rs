//! Several instances share the objects of a controller (F60, F61).

use std::{collections::BTreeSet, time::Duration};

use ctkit::{Instances, Store};
use tokio::time::Instant;

use crate::{
    life::Life,
    lives::log::{Log, fill},
    world::{delete, published, put, quiet, rules},
};

const TTL: Duration = Duration::from_secs(3);

/// Nobody is missed for longer than a lease lasts, and it takes a moment to look and to work.
const NOTICED: Duration = Duration::from_millis(3800);

fn sharded() -> Instances {
    Instances::sharded("policies").shards(16).ttl(TTL)
}

/// The names of objects that this instance has reacted to since.
fn served(log: &Log, since: Instant) -> BTreeSet<String> {
    let entries = log.entries().into_iter();
    entries.filter(|entry| entry.begin >= since).map(|entry| entry.name).collect()
}

/// Fails unless what is published is what there is.
fn check_published(store: &Store, count: usize, text: &str) {
    let published = published(store);
    assert_eq!(published.len(), count);
    assert!(published.values().all(|published| published == text), "{published:?}");
}

#[tokio::test(start_paused = true)]
async fn two_instances_share_a_thousand_objects_and_none_is_reacted_to_by_both() {
    let (store, log) = (Store::in_memory(), Log::default());
    fill(&store, 1000, "one").await;
    let a = Life::start(log.instance(&store, "a", sharded()));
    let b = Life::start(log.instance(&store, "b", sharded()));
    quiet().await;
    check_published(&store, 1000, "one");
    log.clear();
    fill(&store, 1000, "two").await;
    quiet().await;
    check_published(&store, 1000, "two");
    assert_eq!(log.entries().len(), 1000, "each change was reacted to once");
    let shares = log.shares();
    assert!(shares.len() == 2 && shares.values().all(|share| *share > 300), "{shares:?}");
    assert!(log.doubles().is_empty(), "{:#?}", log.doubles());
    a.stop().await;
    b.stop().await;
}

/// The keys of an instance that died stayed locked by it until somebody cleaned up by hand (H13).
#[tokio::test(start_paused = true)]
async fn what_a_killed_instance_had_is_served_again_within_the_time_of_a_lease() {
    let (store, log) = (Store::in_memory(), Log::default());
    fill(&store, 1000, "one").await;
    let a = Life::start(log.instance(&store, "a", sharded()));
    let b = Life::start(log.instance(&store, "b", sharded()));
    quiet().await;
    let orphans: BTreeSet<_> = (log.by_name().into_iter())
        .filter(|(_, entries)| entries.last().is_some_and(|last| last.instance == "a"))
        .map(|(name, _)| name)
        .collect();
    // It dies in the middle of its work.
    fill(&store, 1000, "two").await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    a.crash().await;
    let died = Instant::now();
    delete(&store, "p0").await;
    tokio::time::sleep(NOTICED).await;
    let missed: Vec<_> = orphans.difference(&served(&log, died)).cloned().collect();
    assert!(missed.is_empty(), "{} of {}: {missed:?}", missed.len(), orphans.len());
    check_published(&store, 999, "two");
    assert!(log.doubles().is_empty(), "{:#?}", log.doubles());
    b.stop().await;
}

/// F61, F62: what changes during the hand-over is not lost, and `old` and `last` are what the other instance has seen.
#[tokio::test(start_paused = true)]
async fn an_instance_that_stops_hands_over_at_once_and_what_it_knew_goes_along() {
    let (store, log) = (Store::in_memory(), Log::default());
    fill(&store, 200, "0").await;
    let mut a = Life::start(log.instance(&store, "a", sharded()));
    quiet().await;
    for round in 1..=4 {
        // The other one comes, takes its half, and later all of it; then the same the other way round.
        let (newcomer, text) = (if round % 2 == 1 { "b" } else { "a" }, round.to_string());
        let b = Life::start(log.instance(&store, newcomer, sharded()));
        quiet().await;
        fill(&store, 200, &text).await;
        delete(&store, &format!("p{round}")).await;
        let stopped = Instant::now();
        a.stop().await;
        assert!(stopped.elapsed() < TTL, "{:?}", stopped.elapsed());
        tokio::time::sleep(TTL / 2).await;
        let left = 199;
        assert_eq!(published(&store).len(), left);
        assert!(published(&store).values().all(|published| *published == text));
        put(&store, &format!("p{round}"), &[&format!("p{round}")], &text).await;
        quiet().await;
        a = b;
    }
    assert!(log.doubles().is_empty(), "{:#?}", log.doubles());
    log.check_old();
    a.stop().await;
}

/// An instance that lost a part to a newcomer and got it back when that one left never served it again: it had not noticed
/// that it had let go of it.
#[tokio::test(start_paused = true)]
async fn what_was_handed_over_and_comes_back_is_served_again() {
    let (store, log) = (Store::in_memory(), Log::default());
    fill(&store, 100, "0").await;
    let a = Life::start(log.instance(&store, "a", sharded()));
    quiet().await;
    for round in 1..=3 {
        let b = Life::start(log.instance(&store, "b", sharded()));
        quiet().await;
        fill(&store, 100, &format!("{round} by two")).await;
        quiet().await;
        check_published(&store, 100, &format!("{round} by two"));
        b.stop().await;
        quiet().await;
        fill(&store, 100, &format!("{round} by one")).await;
        quiet().await;
        check_published(&store, 100, &format!("{round} by one"));
    }
    assert!(log.doubles().is_empty(), "{:#?}", log.doubles());
    log.check_old();
    a.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_third_instance_gets_its_part_while_everything_changes() {
    let (store, log) = (Store::in_memory(), Log::default());
    fill(&store, 100, "0").await;
    let a = Life::start(log.instance(&store, "a", sharded()));
    let b = Life::start(log.instance(&store, "b", sharded()));
    quiet().await;
    let c = Life::start(log.instance(&store, "c", sharded()));
    for round in 1..=20 {
        fill(&store, 100, &round.to_string()).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    quiet().await;
    check_published(&store, 100, "20");
    assert!(log.doubles().is_empty(), "{:#?}", log.doubles());
    log.check_old();
    log.clear();
    fill(&store, 100, "last").await;
    quiet().await;
    let shares = log.shares();
    assert!(shares.len() == 3 && shares.values().all(|share| *share > 10), "{shares:?}");
    for life in [a, b, c] {
        life.stop().await;
    }
}

/// F61: every instance is replaced by a new one, one after the other, while users go on to write.
#[tokio::test(start_paused = true)]
async fn a_rolling_upgrade_loses_no_change_and_does_nothing_twice() {
    let (store, log) = (Store::in_memory(), Log::default());
    fill(&store, 60, "0").await;
    let mut lives = Vec::new();
    for name in ["a1", "b1", "c1"] {
        lives.push(Life::start(log.instance(&store, name, sharded())));
    }
    quiet().await;
    let mut round = 0;
    for name in ["a2", "b2", "c2"] {
        let new = Life::start(log.instance(&store, name, sharded()));
        let old = lives.remove(0);
        for _ in 0..10 {
            round += 1;
            fill(&store, 60, &round.to_string()).await;
            tokio::time::sleep(Duration::from_millis(90)).await;
        }
        let stopping = tokio::spawn(old.stop());
        for _ in 0..10 {
            round += 1;
            fill(&store, 60, &round.to_string()).await;
            tokio::time::sleep(Duration::from_millis(90)).await;
        }
        stopping.await.unwrap();
        lives.push(new);
    }
    quiet().await;
    check_published(&store, 60, &round.to_string());
    assert!(log.doubles().is_empty(), "{:#?}", log.doubles());
    log.check_old();
    assert_eq!(rules(&store).len(), 60);
    for life in lives {
        life.stop().await;
    }
}

/// An instance whose last status was still being written when its last
/// reaction ended waited for nothing until its time was up (F62).
#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_what_runs_and_not_for_longer() {
    let (store, log) = (Store::in_memory(), Log::default());
    fill(&store, 10, "one").await;
    let takes = Duration::from_secs(2);
    let life = Life::start(log.slow(&store, "a", Instances::alone(), takes));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let stopped = Instant::now();
    life.stop().await;
    assert!(stopped.elapsed() < Duration::from_millis(1500), "{:?}", stopped.elapsed());
    check_published(&store, 10, "one");
    assert_eq!(crate::world::ready(&store, "p3").0, "Reconciled");
}
