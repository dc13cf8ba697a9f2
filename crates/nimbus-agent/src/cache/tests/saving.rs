//! What is saved is there after a restart.

use std::{fs, path::Path, slice, sync::Arc};

use nimbus_client::Item;
use nimbus_disk::RealDisk;
use proptest::{prelude::*, test_runner::TestCaseError};

use crate::cache::{
    image::Image,
    keeper::Keeper,
    memory::{Delta, Memory},
    tests::{
        Place, agent, applied, at, boot, faults::FaultyDisk, file_with, item, open, place, put, reload, settings,
        sized, started,
    },
};

/// What a memory should be after these deltas, but for when it was saved.
fn model(deltas: &[Delta]) -> Memory {
    let mut image = Image::default();
    deltas
        .iter()
        .for_each(|delta| image.apply(delta.clone(), boot("boot-1").as_ref(), |_| {}));
    image.to_memory(boot("boot-1").as_ref(), None)
}

#[tokio::test]
async fn everything_that_was_saved_is_there_after_a_restart() {
    let Place { directory: _directory, path } = place();
    let (a, b, c) = (item("a", 1), item("b", 1), item("c", 1));
    let b2 = item("b", 2);
    file_with(
        &path,
        [
            put(5, &[a.clone(), b.clone(), c.clone()]),
            started(&a),
            applied(&b),
            put(6, slice::from_ref(&b2)),
            started(&b2),
        ],
    )
    .await;

    let memory = reload(&path).await;
    assert_eq!(memory.position, at(6));
    assert_eq!(memory.desired.values().cloned().collect::<Vec<_>>(), [a.clone(), b2.clone(), c]);
    assert_eq!(memory.applied.values().cloned().collect::<Vec<_>>(), [b]);
    assert_eq!(memory.started.values().cloned().collect::<Vec<_>>(), [a, b2]);
    assert_eq!(memory.boot, boot("boot-1"));
    assert_eq!(memory.saved_at, Some((settings(RealDisk).wall)()));
}

#[tokio::test]
async fn what_was_deleted_is_gone_and_what_was_applied_of_it_is_not() {
    let Place { directory: _directory, path } = place();
    let (a, b) = (item("a", 1), item("b", 1));
    let delete = |item: &Arc<Item>| Delta { deletes: vec![item.key().clone()], ..Delta::default() };
    let unapply = |item: &Arc<Item>| Delta { applied: vec![(item.key().clone(), None)], ..Delta::default() };
    file_with(&path, [put(1, &[a.clone(), b.clone()]), applied(&a), applied(&b), delete(&a), delete(&b), unapply(&b)])
        .await;

    let memory = reload(&path).await;
    assert!(memory.desired.is_empty());
    assert_eq!(memory.applied.into_values().collect::<Vec<_>>(), [a]);
}

#[tokio::test]
async fn an_object_that_a_delta_deletes_and_puts_is_there() {
    let Place { directory: _directory, path } = place();
    let (old, new) = (item("a", 1), item("a", 2));
    let again = Delta { deletes: vec![old.key().clone()], puts: vec![new.clone()], ..Delta::default() };
    file_with(&path, [put(1, &[old]), again]).await;
    assert_eq!(reload(&path).await.desired.into_values().collect::<Vec<_>>(), [new]);
}

#[tokio::test]
async fn the_position_can_be_forgotten() {
    let Place { directory: _directory, path } = place();
    file_with(&path, [put(1, &[item("a", 1)]), Delta { position: Some(None), ..Delta::default() }]).await;
    let memory = reload(&path).await;
    assert_eq!((memory.position, memory.desired.len()), (None, 1));
}

#[tokio::test]
async fn a_memory_without_anything_is_one() {
    let Place { directory: _directory, path } = place();
    file_with(&path, []).await;
    let memory = reload(&path).await;
    assert_eq!(Memory { saved_at: None, boot: None, ..memory }, Memory::default());
}

#[tokio::test]
async fn deltas_are_merged_by_object_while_nothing_is_written() {
    let Place { directory: _directory, path } = place();
    let disk = FaultyDisk::default();
    let (keeper, ..) = Keeper::open_with(&path, &agent(), settings(disk.clone())).unwrap();
    keeper.save(put(0, &[]));
    keeper.barrier().await.unwrap();
    let before = disk.writes();
    // The worker has no chance to run in between: the runtime has one thread, which is here.
    for generation in 1..=1_000 {
        keeper.save(put(generation, &[item("a", generation), item("b", generation)]));
    }
    keeper.barrier().await.unwrap();
    assert!(disk.writes() - before < 100, "{} writes", disk.writes() - before);
    keeper.close().await;

    let memory = reload(&path).await;
    assert_eq!(memory.position, at(1_000));
    assert!(memory.desired.values().all(|item| item.generation().0 == 1_000));
}

#[tokio::test]
async fn after_a_barrier_everything_saved_before_it_is_in_the_file() {
    let Place { directory: _directory, path } = place();
    let copy = path.with_extension("copy");
    let (keeper, ..) = open(&path);
    for generation in 1..=20 {
        keeper.save(put(generation, &[item("a", generation)]));
        keeper.barrier().await.unwrap();
        // As if the machine stopped here.
        fs::copy(&path, &copy).unwrap();
        assert_eq!(reload(&copy).await.position, at(generation));
    }
    keeper.close().await;
}

#[tokio::test]
async fn what_was_saved_and_not_waited_for_is_written_when_the_last_handle_is_dropped() {
    let Place { directory: _directory, path } = place();
    let (keeper, ..) = open(&path);
    let other = keeper.clone();
    let mut health = keeper.health();
    drop(keeper);
    other.save(put(1, &[item("a", 1)]));
    drop(other);
    // The worker has the other end.
    health.changed().await.unwrap_err();
    assert_eq!(reload(&path).await.position, at(1));
}

#[tokio::test]
async fn a_closed_keeper_says_so() {
    let Place { directory: _directory, path } = place();
    let (keeper, ..) = open(&path);
    let other = keeper.clone();
    keeper.save(put(1, &[item("a", 1)]));
    keeper.close().await;
    other.barrier().await.unwrap();
    other.save(put(2, &[item("a", 2)]));
    assert_eq!(other.barrier().await.unwrap_err().to_string(), "the memory on disk was closed");
    assert_eq!(reload(&path).await.position, at(1));
}

#[tokio::test]
async fn a_forgetful_keeper_does_everything_at_once() {
    let keeper = Keeper::forgetful();
    keeper.save(put(1, &[item("a", 1)]));
    keeper.barrier().await.unwrap();
    assert!(!keeper.health().has_changed().unwrap());
    keeper.close().await;
}

#[tokio::test]
async fn what_was_applied_before_the_machine_started_again_is_stale() {
    let Place { directory: _directory, path } = place();
    let (a, b) = (item("a", 1), item("b", 1));
    let stale_in = async |path: &Path, run: &str, delta: Delta| {
        let (keeper, memory, _) =
            Keeper::open_with(path, &agent(), crate::cache::keeper::Settings { boot: boot(run), ..settings(RealDisk) })
                .unwrap();
        keeper.save(delta);
        keeper.close().await;
        memory.stale.iter().map(|key| key.name().to_owned()).collect::<Vec<_>>()
    };
    let both = Delta { applied: [applied(&a).applied, applied(&b).applied].concat(), ..Delta::default() };
    assert_eq!(stale_in(&path, "boot-1", both).await, [""; 0]);
    assert_eq!(stale_in(&path, "boot-1", Delta::default()).await, [""; 0]);
    // The agent gets to apply only one of them before it has to start again, on the same machine.
    assert_eq!(stale_in(&path, "boot-2", applied(&a)).await, ["a", "b"]);
    assert_eq!(stale_in(&path, "boot-2", Delta::default()).await, ["b"]);
    // A machine that does not tell may have started.
    assert_eq!(stale_in(&path, "", Delta::default()).await, ["a", "b"]);
}

#[tokio::test]
async fn an_object_is_stored_once_however_many_uses_it_has() {
    let Place { directory, path } = place();
    let items: Vec<_> = (0..500).map(|number| sized(&format!("object-{number}"), 1, 1_000)).collect();
    file_with(&path, [put(1, &items)]).await;
    let once = fs::metadata(&path).unwrap().len();

    let pairs: Vec<_> = items.iter().map(|item| (item.key().clone(), Some(item.clone()))).collect();
    let again = directory.path().join("again.db");
    let all = Delta { applied: pairs.clone(), started: pairs, ..put(1, &items) };
    file_with(&again, [all]).await;
    let thrice = fs::metadata(&again).unwrap().len();
    assert!(thrice < once + once / 4, "{once} bytes became {thrice}");

    let memory = reload(&again).await;
    assert_eq!(memory.applied.len(), 500);
    assert!(
        memory
            .desired
            .iter()
            .all(|(key, item)| { Arc::ptr_eq(item, &memory.applied[key]) && Arc::ptr_eq(item, &memory.started[key]) })
    );
}

#[tokio::test]
async fn a_file_that_is_mostly_free_is_small_after_a_restart() {
    let Place { directory: _directory, path } = place();
    let items: Vec<_> = (0..2_000).map(|number| sized(&format!("object-{number}"), 1, 4_000)).collect();
    let (keeper, ..) = open(&path);
    keeper.save(put(1, &items));
    keeper.barrier().await.unwrap();
    let keys = items[1..].iter().map(|item| item.key().clone()).collect();
    keeper.save(Delta { deletes: keys, ..put(2, &[]) });
    keeper.barrier().await.unwrap();
    // As after a crash: redb cuts a file only when it is closed.
    let copy = path.with_extension("copy");
    fs::copy(&path, &copy).unwrap();
    keeper.close().await;
    assert!(fs::metadata(&copy).unwrap().len() > 8_000_000);

    assert_eq!(reload(&copy).await.desired.len(), 1);
    assert!(fs::metadata(&copy).unwrap().len() < 2_000_000);
    assert_eq!(reload(&copy).await.desired.len(), 1);
}

fn any_delta() -> impl Strategy<Value = Delta> {
    let any_item = || ("[abc]", 1..4_u64).prop_map(|(name, generation)| item(&name, generation));
    let any_use = move || (any_item(), any::<bool>()).prop_map(|(item, is)| (item.key().clone(), is.then_some(item)));
    (
        proptest::option::of(proptest::option::of(1..9_u64)),
        proptest::collection::vec(any_item(), 0..3),
        proptest::collection::vec(any_item(), 0..3),
        proptest::collection::vec(any_use(), 0..3),
        proptest::collection::vec(any_use(), 0..3),
    )
        .prop_map(|(position, deletes, puts, applied, started)| Delta {
            position: position.map(|revision| revision.and_then(at)),
            deletes: deletes.iter().map(|item| item.key().clone()).collect(),
            puts,
            applied,
            started,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_deltas_in_any_commits_give_what_the_model_says(deltas in proptest::collection::vec((any_delta(), any::<bool>()), 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let Place { directory: _directory, path } = place();
            let (keeper, ..) = open(&path);
            for (delta, commit) in &deltas {
                keeper.save(delta.clone());
                if *commit {
                    keeper.barrier().await.unwrap();
                }
            }
            keeper.close().await;
            let found = reload(&path).await;
            let expected = model(&deltas.into_iter().map(|(delta, _)| delta).collect::<Vec<_>>());
            prop_assert_eq!(Memory { saved_at: None, boot: None, ..found }, expected);
            Ok::<_, TestCaseError>(())
        })?;
    }
}
