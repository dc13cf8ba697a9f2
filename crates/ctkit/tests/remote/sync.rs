//! Syncs over the network.

use std::{collections::BTreeSet, time::Duration};

use ctkit::{CommitError, OpenSync as _, Target as _};
use nimbus_core::{Kind, PublisherId};
use nimbus_store::Txn;
use tokio::time::{sleep, timeout};

use crate::world::{QUIET, World, commit, delete, draft, finalizers, key, kind, publisher, put, txn};

fn kinds() -> BTreeSet<Kind> {
    BTreeSet::from([kind()])
}

#[tokio::test(start_paused = true)]
async fn what_is_neither_published_nor_kept_is_swept() {
    let world = World::start();
    world.sync(&[draft("a", "1"), draft("b", "1"), draft("c", "1")]).await;
    let remote = world.remote();
    let mut sync = remote.begin_sync(publisher(), 0, kinds(), Vec::new()).await.unwrap();
    commit(&remote, txn(vec![put("a", "1"), put("d", "1")])).await.unwrap();
    let there = remote.published(&publisher(), &kinds()).await.unwrap();
    assert_eq!(there.len(), 4);
    let kept = there.into_iter().filter(|record| record.key() == &key("b")).collect();
    sync.keep(kept).await.unwrap();
    let (revision, summary) = sync.end().await.unwrap();
    assert_eq!((summary.deleted, revision), (1, world.bus.store().state().head()));
    let names: Vec<_> = world.holds().into_keys().map(|key| key.name().to_owned()).collect();
    assert_eq!(names, ["a", "b", "d"]);
}

#[tokio::test(start_paused = true)]
async fn a_publisher_of_nothing_is_in_step_at_once() {
    // A controller that publishes nothing began a sync of no kinds, which the bus refused, and so it never began to react.
    let world = World::start();
    let mut sync = world.remote().begin_sync(publisher(), 0, BTreeSet::new(), Vec::new()).await.unwrap();
    sync.keep(Vec::new()).await.unwrap();
    let (_, summary) = sync.end().await.unwrap();
    assert_eq!((summary.deleted, world.bus.store().state().head().0), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn nothing_that_is_committed_after_the_beginning_is_swept() {
    // The bus answers a sync at its end only. Were a transaction to overtake the beginning, it would not count as said.
    let world = World::start();
    for round in 0..20 {
        let remote = world.remote();
        let sync = remote.begin_sync(publisher(), 0, kinds(), Vec::new()).await.unwrap();
        commit(&remote, txn(vec![put("a", "1"), put("b", "1")])).await.unwrap();
        let (_, summary) = sync.end().await.unwrap();
        assert_eq!((summary.deleted, world.holds().len()), (0, 2), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_is_it_on_many_threads_and_a_clock_that_runs() {
    let world = World::start();
    let remote = world.remote();
    for round in 0..50 {
        let sync = remote.begin_sync(publisher(), 0, kinds(), Vec::new()).await.unwrap();
        commit(&remote, txn(vec![put("a", "1")])).await.unwrap();
        let (_, summary) = sync.end().await.unwrap();
        assert_eq!(summary.deleted, 0, "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sync_that_is_dropped_deletes_nothing() {
    let world = World::start();
    world.sync(&[draft("a", "1")]).await;
    let remote = world.remote();
    let sync = remote.begin_sync(publisher(), 0, kinds(), Vec::new()).await.unwrap();
    drop(sync);
    sleep(QUIET).await;
    assert_eq!(world.holds().len(), 1);
    // It is over: another one begins as if it had never been.
    remote.begin_sync(publisher(), 0, kinds(), Vec::new()).await.unwrap().end().await.unwrap();
    assert_eq!(world.holds().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_sync_whose_stream_breaks_off_is_unavailable() {
    let world = World::start();
    world.sync(&[draft("a", "1")]).await;
    let remote = world.remote();
    for end in [false, true] {
        let mut sync = remote.begin_sync(publisher(), 0, kinds(), Vec::new()).await.unwrap();
        world.net.cut();
        sleep(Duration::from_secs(1)).await;
        let error = if end { sync.end().await.unwrap_err() } else { sync.keep(Vec::new()).await.unwrap_err() };
        assert!(matches!(error, CommitError::Unavailable(_)), "{error:?}");
        assert_eq!(world.holds().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_sync_outlives_long_silence() {
    let world = World::start();
    world.sync(&[draft("a", "1")]).await;
    let sync = world.remote().begin_sync(publisher(), 0, kinds(), Vec::new()).await.unwrap();
    sleep(Duration::from_secs(600)).await;
    assert_eq!(sync.end().await.unwrap().1.deleted, 1);
}

#[tokio::test(start_paused = true)]
async fn an_older_instance_cannot_begin() {
    let world = World::start();
    let remote = world.remote();
    commit(&remote, Txn { fence: 2, ..txn(vec![put("a", "1")]) }).await.unwrap();
    let begun = timeout(QUIET, remote.begin_sync(publisher(), 1, kinds(), Vec::new())).await.unwrap();
    assert!(matches!(begun, Err(CommitError::Fenced(_))), "{begun:?}");
}

#[tokio::test(start_paused = true)]
async fn large_sets_are_kept_in_pieces_and_what_is_being_deleted_is_not() {
    let world = World::start();
    for n in 0..30 {
        world.write(vec![put(&format!("o{n}"), &"x".repeat(200 << 10))]);
    }
    world.write(vec![finalizers("o3", &["clean"], &[])]);
    world.write(vec![delete("o3")]);
    let before = world.holds();
    let remote = world.remote();
    let mut sync = remote.begin_sync(publisher(), 0, kinds(), Vec::new()).await.unwrap();
    let there = remote.published(&publisher(), &kinds()).await.unwrap();
    assert_eq!(there.len(), 30);
    sync.keep(there).await.unwrap();
    sync.end().await.unwrap();
    assert_eq!(world.holds(), before, "publishing what is there already changes nothing");
}

#[tokio::test(start_paused = true)]
async fn published_is_what_this_publisher_has_of_these_kinds() {
    let world = World::start();
    let remote = world.remote();
    assert!(remote.published(&publisher(), &kinds()).await.unwrap().is_empty(), "nobody knows the kind yet");
    let ops = (0..2_500).map(|n| put(&format!("o{n}"), "1"));
    for op in ops {
        world.write(vec![op]);
    }
    let other = PublisherId::new("other").unwrap();
    commit(&remote, Txn { publisher: other.clone(), ..txn(vec![put("x", "1")]) })
        .await
        .unwrap();
    assert_eq!(remote.published(&publisher(), &kinds()).await.unwrap().len(), 2_500, "on several pages");
    assert_eq!(remote.published(&other, &kinds()).await.unwrap().len(), 1);
    let unknown = BTreeSet::from([Kind::new("t.v1.Unknown").unwrap()]);
    assert!(remote.published(&publisher(), &unknown).await.unwrap().is_empty());
}
