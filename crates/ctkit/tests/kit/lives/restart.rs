//! The manager restarts, and the store does not (B11).

use std::time::Duration;

use ctkit::{CommitError, Manager, Store};

use crate::{
    faulty::Faulty,
    life::{Life, alone},
    lives::diary::Diary,
    world::{delete, head, published, put, quiet, ready, texts, until},
};

/// A controller that was restarted wrote what it remembers anew, because what it remembers of an object held the revision
/// that its own status had given the object: everybody who watches was told of a thousand changes that were none (B11).
#[tokio::test(start_paused = true)]
async fn a_restart_with_nothing_changed_moves_nothing() {
    let store = Store::in_memory();
    for name in ["web", "db", "dns"] {
        put(&store, name, &[name], "one").await;
    }
    let diary = Diary::default();
    Life::begin(alone(&store).controller(diary.controller())).await.stop().await;
    let before = head(&store);
    for _ in 0..3 {
        let diary = Diary::default();
        let life = Life::begin(alone(&store).controller(diary.controller())).await;
        assert_eq!(diary.take(), ["update db=one>one", "update dns=one>one", "update web=one>one"]);
        assert_eq!(head(&store), before);
        life.stop().await;
        assert_eq!(head(&store), before);
    }
}

/// Edge-triggered controllers never learned of what happened while they were down (H12).
#[tokio::test(start_paused = true)]
async fn what_happened_while_the_manager_was_down_is_told_with_the_right_versions() {
    let store = Store::in_memory();
    for name in ["kept", "edited", "deleted", "reborn"] {
        put(&store, name, &[name], "one").await;
    }
    let diary = Diary::default();
    let life = Life::begin(alone(&store).controller(diary.controller())).await;
    put(&store, "edited", &["edited"], "two").await;
    put(&store, "deleted", &["deleted"], "two").await;
    quiet().await;
    life.stop().await;
    diary.take();

    put(&store, "edited", &["edited"], "three").await;
    put(&store, "edited", &["elsewhere"], "four").await;
    put(&store, "deleted", &["deleted"], "three").await;
    delete(&store, "deleted").await;
    delete(&store, "reborn").await;
    put(&store, "reborn", &["reborn"], "another").await;
    put(&store, "created", &["created"], "one").await;
    put(&store, "fleeting", &["fleeting"], "one").await;
    delete(&store, "fleeting").await;
    let life = Life::begin(alone(&store).controller(diary.controller())).await;
    assert_eq!(
        diary.take(),
        [
            "create created=one",
            "create reborn=another",
            "delete deleted=two",
            "delete reborn=one",
            "update edited=two>four",
            "update kept=one>one",
        ]
    );
    assert_eq!(
        published(&store),
        texts(&[("kept", "one"), ("elsewhere", "four"), ("reborn", "another"), ("created", "one")])
    );
    // Once is enough: nothing of it is told again.
    life.stop().await;
    let life = Life::begin(alone(&store).controller(diary.controller())).await;
    assert_eq!(
        diary.take(),
        ["update created=one>one", "update edited=four>four", "update kept=one>one", "update reborn=another>another",]
    );
    life.stop().await;
}

/// What was published for objects that were deleted while their controller was down stayed for ever, if nobody remembered
/// them (H12).
#[tokio::test(start_paused = true)]
async fn what_was_published_for_deleted_objects_is_withdrawn_by_reactors_without_a_memory() {
    let store = Store::in_memory();
    put(&store, "web", &["a", "b"], "one").await;
    put(&store, "db", &["c"], "one").await;
    let diary = Diary::default();
    Life::begin(alone(&store).controller(diary.with(false, ""))).await.stop().await;
    delete(&store, "web").await;
    let life = Life::begin(alone(&store).controller(diary.with(false, ""))).await;
    assert_eq!(published(&store), texts(&[("c", "one")]));
    assert_eq!(diary.take(), ["create db=one", "create db=one", "create web=one"]);
    life.stop().await;
}

/// A sync that swept what was not published again took away the last good version of every object whose reactor failed
/// right after a restart.
#[tokio::test(start_paused = true)]
async fn a_reactor_that_fails_at_boot_keeps_what_it_had_published() {
    let store = Store::in_memory();
    put(&store, "web", &["a", "b"], "one").await;
    put(&store, "db", &["c"], "one").await;
    let diary = Diary::default();
    Life::begin(alone(&store).controller(diary.controller())).await.stop().await;
    put(&store, "web", &["b"], "two").await;
    diary.fail("web", true);
    let life = Life::begin(alone(&store).controller(diary.controller())).await;
    assert_eq!(published(&store), texts(&[("a", "one"), ("b", "one"), ("c", "one")]));
    assert_eq!(ready(&store, "web").0, "Failed");
    diary.fail("web", false);
    quiet().await;
    assert_eq!(published(&store), texts(&[("b", "two"), ("c", "one")]));
    // `old` is what it last returned `Ok` for, before the restart.
    assert!(diary.take().contains(&"update web=one>two".to_owned()));
    life.stop().await;
}

/// A new version of a program that gives its children other names left the old ones on the bus, where nobody owned them.
#[tokio::test(start_paused = true)]
async fn children_that_a_new_program_renames_leave_no_orphans() {
    for remembers in [true, false] {
        let store = Store::in_memory();
        put(&store, "web", &["a", "b"], "one").await;
        let diary = Diary::default();
        Life::begin(alone(&store).controller(diary.with(remembers, ""))).await.stop().await;
        let old: Vec<_> = crate::world::rules(&store).iter().map(|rules| rules.name().to_owned()).collect();
        let life = Life::begin(alone(&store).controller(diary.with(remembers, "v2-"))).await;
        let new: Vec<_> = crate::world::rules(&store).iter().map(|rules| rules.name().to_owned()).collect();
        assert_eq!(new.len(), 2);
        assert!(new.iter().all(|name| !old.contains(name)), "{old:?} {new:?}");
        life.stop().await;
    }
}

/// An instance dealt with the end of an object and with another of its name, and was gone before it could write that down.
/// The next one remembered the object before, took its end for news, and withdrew what had been published for the one that
/// is there: agents removed what they should have had, and were given it again.
#[tokio::test(start_paused = true)]
async fn what_was_published_for_a_new_life_stays_though_nobody_wrote_down_the_end_of_the_last() {
    let (source, bus, diary) = (Store::in_memory(), Store::in_memory(), Diary::default());
    let between = |source: Faulty| Manager::between(source, bus.clone()).controller(diary.controller()).seed(7);
    put(&source, "web", &["web"], "one").await;
    let life = Life::ready(between(Faulty::lagging(&source, Duration::ZERO))).await;
    life.settled().await;
    life.stop().await;
    delete(&source, "web").await;
    put(&source, "web", &["web"], "two").await;

    let nothing_is_written = Faulty::failing(&source, |_| Some(CommitError::Unavailable("not now".into())));
    let life = Life::ready(between(nothing_is_written)).await;
    until(|| published(&bus) == texts(&[("web", "two")])).await;
    life.crash().await;
    assert_eq!(diary.take(), ["create web=one", "create web=two", "delete web=one"]);

    let before = head(&bus);
    let life = Life::ready(between(Faulty::lagging(&source, Duration::ZERO))).await;
    life.settled().await;
    assert_eq!(head(&bus), before, "nothing was withdrawn in between");
    assert_eq!(diary.take(), ["create web=two"]);
    life.stop().await;
    delete(&source, "web").await;
    let life = Life::ready(between(Faulty::lagging(&source, Duration::ZERO))).await;
    life.settled().await;
    assert_eq!((diary.take(), published(&bus).len()), (vec!["delete web=two".to_owned()], 0));
    life.stop().await;
}
