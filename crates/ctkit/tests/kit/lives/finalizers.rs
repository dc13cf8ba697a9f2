//! Deletes that wait for somebody (F67).

use ctkit::{Controller, Deletion, Store};

use crate::{
    life::{Life, alone},
    lives::diary::Diary,
    world::{delete, finalizers, find, published, put, quiet, ready, texts},
};

const MARK: &str = "policies-cleanup";

fn marking(diary: &Diary) -> Controller {
    diary.controller().finalizer(MARK)
}

/// A delete that came while the first reaction was under way was missed, because the object had not been marked before
/// (F67).
#[tokio::test(start_paused = true)]
async fn an_object_is_marked_before_the_first_reaction_to_it() {
    let (store, diary) = (Store::in_memory(), Diary::default());
    let gate = diary.gate("web");
    let life = Life::begin(alone(&store).controller(marking(&diary))).await;
    put(&store, "web", &["a"], "one").await;
    quiet().await;
    assert_eq!(diary.take(), ["create web=one"]);
    assert!(find(&store, "web").unwrap().finalizers().contains(MARK));
    delete(&store, "web").await;
    quiet().await;
    assert!(find(&store, "web").unwrap().is_deleting());
    gate.add_permits(10);
    quiet().await;
    assert_eq!(diary.take(), ["delete web=one"]);
    assert!(find(&store, "web").is_none());
    assert_eq!(published(&store), texts(&[]));
    life.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_deleted_while_its_controller_is_down_goes_when_it_is_back() {
    let (store, diary) = (Store::in_memory(), Diary::default());
    put(&store, "web", &["a"], "one").await;
    put(&store, "db", &["b"], "one").await;
    Life::begin(alone(&store).controller(marking(&diary))).await.stop().await;
    diary.take();
    delete(&store, "web").await;
    assert!(find(&store, "web").unwrap().is_deleting());
    let life = Life::begin(alone(&store).controller(marking(&diary))).await;
    assert_eq!(diary.take(), ["delete web=one", "update db=one>one"]);
    assert!(find(&store, "web").is_none());
    assert_eq!(published(&store), texts(&[("b", "one")]));
    life.stop().await;
}

/// A restart wrote every object of a controller with a finalizer anew (B11).
#[tokio::test(start_paused = true)]
async fn a_restart_of_a_controller_with_a_finalizer_moves_nothing() {
    let (store, diary) = (Store::in_memory(), Diary::default());
    put(&store, "web", &["b", "a"], "one").await;
    Life::begin(alone(&store).controller(marking(&diary))).await.stop().await;
    let before = crate::world::head(&store);
    Life::begin(alone(&store).controller(marking(&diary))).await.stop().await;
    assert_eq!(crate::world::head(&store), before);
}

#[tokio::test(start_paused = true)]
async fn each_of_two_controllers_lets_go_in_its_own_time() {
    let (store, first, second) = (Store::in_memory(), Diary::default(), Diary::default());
    let other = second.with(true, "other-").named("others").finalizer("others-cleanup");
    let life = Life::begin(alone(&store).controller(marking(&first)).controller(other)).await;
    put(&store, "web", &["a"], "one").await;
    quiet().await;
    assert_eq!(crate::world::rules(&store).len(), 2);
    second.stick("web", true);
    delete(&store, "web").await;
    quiet().await;
    let record = find(&store, "web").unwrap();
    assert!(!record.finalizers().contains(MARK) && record.finalizers().contains("others-cleanup"));
    assert_eq!(crate::world::rules(&store).len(), 1);
    first.take();
    second.stick("web", false);
    quiet().await;
    assert!(find(&store, "web").is_none());
    assert!(crate::world::rules(&store).is_empty());
    assert!(first.take().is_empty(), "it was told once");
    life.stop().await;
}

/// An object was gone although its clean-up had failed, and nobody ever tried again (H01).
#[tokio::test(start_paused = true)]
async fn a_deletion_that_fails_keeps_the_object_and_is_tried_again() {
    let (store, diary) = (Store::in_memory(), Diary::default());
    put(&store, "web", &["a"], "one").await;
    let life = Life::begin(alone(&store).controller(marking(&diary))).await;
    diary.stick("web", true);
    delete(&store, "web").await;
    quiet().await;
    assert!(find(&store, "web").unwrap().is_deleting());
    assert_eq!(published(&store), texts(&[("a", "one")]));
    assert_eq!(ready(&store, "web").0, "Failed");
    // It fails on after a restart.
    life.stop().await;
    let life = Life::begin(alone(&store).controller(marking(&diary))).await;
    assert!(find(&store, "web").is_some());
    assert_eq!(published(&store), texts(&[("a", "one")]));
    diary.stick("web", false);
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    assert!(find(&store, "web").is_none());
    assert_eq!(published(&store), texts(&[]));
    life.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_somebody_else_removes_holds_nothing() {
    let (store, diary) = (Store::in_memory(), Diary::default());
    put(&store, "web", &["a"], "one").await;
    let life = Life::begin(alone(&store).controller(marking(&diary))).await;
    diary.take();
    diary.stick("web", true);
    delete(&store, "web").await;
    quiet().await;
    finalizers(&store, "web", &[], &[MARK]).await;
    assert!(find(&store, "web").is_none(), "nobody holds it");
    diary.stick("web", false);
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    assert_eq!(diary.take().last().unwrap(), "delete web=one");
    assert_eq!(published(&store), texts(&[]));
    life.stop().await;
}

/// An object of which only somebody else's finalizer is left was worked on for ever.
#[tokio::test(start_paused = true)]
async fn an_object_that_only_somebody_else_holds_is_left_alone() {
    let (store, diary) = (Store::in_memory(), Diary::default());
    put(&store, "web", &["a"], "one").await;
    finalizers(&store, "web", &["theirs"], &[]).await;
    let life = Life::begin(alone(&store).controller(marking(&diary))).await;
    delete(&store, "web").await;
    quiet().await;
    diary.take();
    assert_eq!(published(&store), texts(&[]));
    let before = crate::world::head(&store);
    quiet().await;
    life.stop().await;
    let life = Life::begin(alone(&store).controller(marking(&diary))).await;
    assert!(diary.take().is_empty());
    assert_eq!(crate::world::head(&store), before);
    finalizers(&store, "web", &[], &["theirs"]).await;
    quiet().await;
    assert!(find(&store, "web").is_none());
    assert!(diary.take().is_empty());
    life.stop().await;
}

/// What was to stay without its owner was swept by the first sync after its owner had been deleted, if nobody remembered
/// the owner (F68).
#[tokio::test(start_paused = true)]
async fn what_is_to_stay_without_its_owner_stays_whoever_was_down() {
    for remembers in [true, false] {
        for down in [true, false] {
            let (store, diary) = (Store::in_memory(), Diary::default());
            put(&store, "web", &["a", "b"], "one").await;
            put(&store, "db", &["c"], "one").await;
            let orphaning = || diary.with(remembers, "").on_deletion(Deletion::Orphan);
            let mut life = Life::begin(alone(&store).controller(orphaning())).await;
            if down {
                life.stop().await;
                delete(&store, "web").await;
                life = Life::begin(alone(&store).controller(orphaning())).await;
            } else {
                delete(&store, "web").await;
                quiet().await;
            }
            for _ in 0..3 {
                let case = format!("remembers: {remembers}, down: {down}");
                assert_eq!(published(&store), texts(&[("a", "one"), ("b", "one"), ("c", "one")]), "{case}");
                let owners = crate::world::rules(&store).into_iter().filter(|rules| rules.meta.owner.is_some());
                assert_eq!(owners.count(), 1, "{case}");
                life.stop().await;
                life = Life::begin(alone(&store).controller(orphaning())).await;
            }
            life.stop().await;
        }
    }
}

/// Finalizers were a set, and whoever was faster went first: the network of a machine was taken away before its processes
/// had ended (F67).
#[tokio::test(start_paused = true)]
async fn whoever_finalizes_after_others_waits_for_them_in_any_order_of_events() {
    let (store, first, second) = (Store::in_memory(), Diary::default(), Diary::default());
    let after = || {
        second
            .with(true, "other-")
            .named("others")
            .finalizer("others-cleanup")
            .finalizes_after([MARK, "foreign"])
    };
    let manager = || alone(&store).controller(marking(&first)).controller(after());
    let life = Life::begin(manager()).await;
    put(&store, "web", &["a"], "one").await;
    quiet().await;
    finalizers(&store, "web", &["foreign"], &[]).await;
    first.stick("web", true);
    first.take();
    second.take();
    delete(&store, "web").await;
    quiet().await;
    assert_eq!(second.take(), Vec::<String>::new(), "two others come first");
    // One of them is done, and the other one only after a restart.
    finalizers(&store, "web", &[], &["foreign"]).await;
    quiet().await;
    assert_eq!(second.take(), Vec::<String>::new());
    life.stop().await;
    first.stick("web", false);
    let life = Life::begin(manager()).await;
    quiet().await;
    assert_eq!(second.take(), ["delete web=one"]);
    assert!(find(&store, "web").is_none());
    life.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_order_of_finalizers_that_makes_no_sense_is_refused() {
    let diary = Diary::default();
    for (controller, expected) in [
        (diary.controller().finalizes_after(["x"]), "finalizer of one's own"),
        (diary.controller().finalizer("x").finalizes_after(["x"]), "and another one"),
        (diary.controller().finalizer("x").finalizes_after(["no name"]), "no name for a finalizer"),
    ] {
        let refused = alone(&Store::in_memory()).controller(controller).build().err().unwrap().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
}
