//! What a watch says, and what it does not say.

use std::time::Duration;

use bytes::Bytes;
use ctkit::{Event, Source as _, WatchError};
use nimbus_core::{Epoch, Generation, Kind};
use nimbus_store::{Op, StatusDraft};
use tokio::time::timeout;

use crate::world::{QUIET, Watcher, World, delete, draft, key, kind, packed, put, put_for, values};

#[tokio::test(start_paused = true)]
async fn everything_is_listed_and_then_every_change_comes() {
    let world = World::synced().await;
    world.write(vec![put("a", "1"), put_for("b", "1", "zone=a")]);
    let mut watcher = world.watch();
    watcher.settled().await;
    assert_eq!((watcher.values(), watcher.lists, watcher.listed), (values(&[("a", "1"), ("b", "1")]), 1, 2));
    assert_eq!(watcher.faces(), world.holds(), "audiences included");

    let committed = world.write(vec![put("a", "2"), put("c", "1"), delete("b")]);
    let Event::Changes(changes, position) = watcher.step().await else { panic!("a transaction is seen as a whole") };
    assert_eq!((changes.len(), position.revision), (3, committed.revision));
    assert_eq!(watcher.faces(), world.holds());
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_is_not_there_yet_is_waited_for() {
    let mut world = World::start();
    world.kill();
    let mut watcher = world.watch();
    assert!(timeout(QUIET, watcher.next()).await.is_err());
    world.begin();
    world.sync(&[draft("a", "1")]).await;
    watcher.until(&[("a", "1")]).await;
    assert_eq!(watcher.lists, 0, "the list is whole a moment later");
    watcher.settled().await;
    assert_eq!(watcher.lists, 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_cut_only_the_difference_comes() {
    let world = World::synced().await;
    let ops = (0..50).map(|n| put(&format!("o{n}"), "1")).collect();
    world.write(ops);
    let mut watcher = world.watch();
    watcher.settled().await;

    world.net.cut();
    world.write(vec![put("o1", "2"), put("new", "1")]);
    world.write(vec![delete("o2"), put("o1", "3")]);
    watcher.quiet().await;
    assert_eq!((watcher.lists, watcher.listed), (1, 50));
    assert_eq!((watcher.puts, watcher.removals), (2, 1), "each object once, in its newest version");
    assert_eq!(watcher.faces(), world.holds());

    world.net.cut();
    let events = watcher.quiet().await;
    assert_eq!(events, 0, "nothing changed, so nothing is said");
}

#[tokio::test(start_paused = true)]
async fn what_is_as_it_was_but_for_its_revision_is_said_within_one_epoch() {
    // A writer that compares revisions would be refused for ever if it were not told of the newest one.
    let world = World::synced().await;
    world.write(vec![put("a", "1")]);
    let mut watcher = world.watch();
    watcher.settled().await;
    world.net.cut();
    for (status, observed) in [(packed("up"), 1), (Bytes::new(), 0)] {
        world.write(vec![Op::Status(StatusDraft { key: key("a"), status, observed: Generation(observed) })]);
    }
    watcher.quiet().await;
    assert_eq!(watcher.puts, 1);
    assert_eq!(watcher.faces(), world.holds());
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_of_the_bus_only_what_differs_comes() {
    let mut world = World::start();
    let drafts: Vec<_> = (0..20).map(|n| draft(&format!("o{n}"), "1")).collect();
    world.sync(&drafts).await;
    let mut watcher = world.watch();
    watcher.settled().await;
    assert_eq!(watcher.position.unwrap().epoch, Epoch(1));

    world.kill();
    world.begin();
    let mut drafts = drafts;
    drafts[3] = draft("o3", "2");
    drafts.remove(7);
    world.sync(&drafts).await;
    watcher.quiet().await;
    assert_eq!(watcher.position.unwrap().epoch, Epoch(2));
    assert_eq!((watcher.lists, watcher.puts, watcher.removals), (1, 1, 1));
    assert_eq!(watcher.values()["o3"], "2");
    assert!(!watcher.values().contains_key("o7"));
}

#[tokio::test(start_paused = true)]
async fn another_epoch_is_seen_even_if_nothing_differs() {
    let mut world = World::start();
    world.sync(&[draft("a", "1")]).await;
    let mut watcher = world.watch();
    watcher.settled().await;
    world.kill();
    world.begin();
    world.sync(&[draft("a", "1")]).await;
    let Event::Changes(changes, position) = watcher.step().await else { panic!("not a list again") };
    assert_eq!((changes.len(), position.epoch), (0, Epoch(2)));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_being_refilled_is_not_taken_for_an_empty_one() {
    let mut world = World::start();
    let mut fresh = world.watch();
    assert!(timeout(QUIET, fresh.next()).await.is_err(), "nobody has synced yet");
    world.sync(&[draft("a", "1"), draft("b", "1")]).await;
    fresh.settled().await;
    let mut watcher = world.watch();
    watcher.settled().await;

    world.kill();
    world.begin();
    assert_eq!(watcher.quiet().await, 0, "an empty bus removes nothing");
    world.write(vec![put("a", "1")]);
    assert_eq!(watcher.quiet().await, 0, "nor does one that is half full");
    world.sync(&[draft("a", "1")]).await;
    watcher.quiet().await;
    assert_eq!((watcher.values(), watcher.removals), (values(&[("a", "1")]), 1));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_cut_off_is_whole_when_it_comes() {
    let world = World::synced().await;
    let mut watcher = world.watch();
    for n in 0..200 {
        world.write(vec![put(&format!("o{n}"), &"x".repeat(10_000))]);
    }
    // It is cut wherever it happens to be.
    for millis in [0, 0, 1, 1, 2] {
        timeout(Duration::from_millis(millis), std::future::pending::<()>()).await.ok();
        timeout(Duration::from_millis(millis), watcher.step()).await.ok();
        world.net.cut();
        world.write(vec![delete(&format!("o{millis}"))]);
    }
    watcher.quiet().await;
    assert_eq!(watcher.lists, 1);
    assert_eq!(watcher.faces(), world.holds());
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_from_a_position() {
    let world = World::synced().await;
    world.write(vec![put("a", "1"), put("b", "1")]);
    let mut first = world.watch();
    first.settled().await;
    let from = first.position;
    drop(first);

    world.write(vec![put("a", "2"), delete("b")]);
    let mut second = Watcher::new(world.remote().watch(&kind(), from));
    second.quiet().await;
    assert_eq!((second.lists, second.puts, second.removals), (0, 1, 1));
    // It does not hold everything, so digests are of no use, and it still comes back.
    world.net.cut();
    world.write(vec![put("c", "1")]);
    second.quiet().await;
    assert_eq!((second.lists, second.puts, second.removals), (0, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_position_that_nobody_knows_any_more_leads_to_a_list() {
    let mut world = World::synced().await;
    let mut first = world.watch();
    first.settled().await;
    world.kill();
    world.begin();
    world.sync(&[draft("a", "1"), draft("b", "1")]).await;
    let mut second = Watcher::new(world.remote().watch(&kind(), first.position));
    second.settled().await;
    assert_eq!((second.lists, second.listed), (1, 2));
    world.net.cut();
    world.write(vec![delete("a")]);
    second.quiet().await;
    assert_eq!(second.faces(), world.holds());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_nobody_knows_is_waited_for() {
    let world = World::synced().await;
    let unknown = Kind::new("t.v1.Unknown").unwrap();
    let mut watcher = Watcher::new(world.remote().watch(&unknown, None));
    assert!(timeout(QUIET, watcher.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_ends_and_says_why() {
    let world = World::start();
    let scripted = crate::scripted::refusing(&world.net);
    let mut watcher = world.watch();
    let WatchError::Refused { kind, message } = watcher.refused().await else { panic!("another error") };
    assert_eq!((kind, &*message), (crate::world::kind(), "not you"));
    scripted.abort();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_is_left_out_and_the_rest_goes_on() {
    let world = World::start();
    let scripted = crate::scripted::with_an_odd_object(&world.net);
    let mut watcher = world.watch();
    watcher.settled().await;
    assert_eq!(watcher.values(), values(&[("good", "1")]));
    scripted.abort();
}

#[tokio::test(start_paused = true)]
async fn a_mismatch_is_healed_and_never_seen() {
    let world = World::start();
    let (scripted, offers) = crate::scripted::with_a_lost_object(&world.net);
    let mut watcher = world.watch();
    watcher.settled().await;
    assert_eq!((watcher.lists, watcher.values()), (1, values(&[("good", "1"), ("lost", "1")])));
    let offers = offers.lock();
    assert!(offers[0].is_none(), "it holds nothing at first");
    let second = offers[1].as_ref().unwrap();
    assert!(second.position.is_none() && second.buckets.len() == 4096, "then it compares everything");
    scripted.abort();
}
