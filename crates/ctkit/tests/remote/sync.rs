//! Syncs over the network.

use std::{collections::BTreeSet, time::Duration};

use ctkit::{CommitError, OpenSync as _, SyncEnded, Target as _};
use nimbus_core::{Kind, PublisherId};
use nimbus_store::Txn;
use prost::Message as _;
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
    sync.keep(vec![key("b")]).await.unwrap();
    let SyncEnded { epoch, revision, summary } = sync.end().await.unwrap();
    let state = world.bus.store().state();
    assert_eq!((summary.deleted, revision, epoch), (1, state.head(), Some(state.epoch())));
    let names: Vec<_> = world.holds().into_keys().map(|key| key.name().to_owned()).collect();
    assert_eq!(names, ["a", "b", "d"]);
}

#[tokio::test(start_paused = true)]
async fn a_publisher_of_nothing_is_in_step_at_once() {
    // A controller that publishes nothing began a sync of no kinds, which the bus refused, and so it never began to react.
    let world = World::start();
    let mut sync = world.remote().begin_sync(publisher(), 0, BTreeSet::new(), Vec::new()).await.unwrap();
    sync.keep(Vec::new()).await.unwrap();
    let summary = sync.end().await.unwrap().summary;
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
        let summary = sync.end().await.unwrap().summary;
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
        let summary = sync.end().await.unwrap().summary;
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
    assert_eq!(sync.end().await.unwrap().summary.deleted, 1);
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
async fn large_sets_are_kept_in_pieces() {
    let world = World::start();
    // Two pieces and a bit.
    let name = |n: u32| format!("{n:0>200}");
    for from in (0..10_000).step_by(1_000) {
        world.write((from..from + 1_000).map(|n| put(&name(n), "1")).collect());
    }
    world.write(vec![finalizers(&name(3), &["clean"], &[])]);
    world.write(vec![delete(&name(3))]);
    let before = world.holds();
    let remote = world.remote();
    let mut sync = remote.begin_sync(publisher(), 0, kinds(), Vec::new()).await.unwrap();
    let keys: Vec<_> = (0..10_000).map(|n| key(&name(n))).collect();
    assert!(keys.iter().map(|key| key.to_wire().encoded_len()).sum::<usize>() > 2 << 20);
    sync.keep(keys).await.unwrap();
    let summary = sync.end().await.unwrap().summary;
    assert_eq!((summary.unchanged, summary.deleted), (10_000, 0));
    assert_eq!(world.holds(), before, "to keep what is there changes nothing");
}

/// What belonged to objects that failed was sent again at the end of a sync as it had been at its beginning, and that undid
/// what was written in between: an object that had been published again became an older one, and one that had been
/// withdrawn came back.
#[tokio::test(start_paused = true)]
async fn what_is_kept_is_kept_as_it_is_by_then() {
    let world = World::start();
    world.sync(&[draft("a", "1"), draft("b", "1"), draft("c", "1")]).await;
    let remote = world.remote();
    let mut sync = remote.begin_sync(publisher(), 0, kinds(), Vec::new()).await.unwrap();
    let there = remote.published(&publisher(), &kinds()).await.unwrap();
    commit(&remote, txn(vec![put("a", "2"), delete("b")])).await.unwrap();
    let foreign = PublisherId::new("other").unwrap();
    commit(&remote, Txn { publisher: foreign, ..txn(vec![put("x", "1")]) }).await.unwrap();
    let before = world.holds();
    let kept = there.iter().map(|record| record.key().clone()).chain([key("x"), key("never-was")]);
    sync.keep(kept.collect()).await.unwrap();
    let summary = sync.end().await.unwrap().summary;
    assert_eq!((summary.created, summary.updated, summary.unchanged, summary.deleted), (0, 0, 1, 0), "only c was kept");
    assert_eq!(world.holds(), before);
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
