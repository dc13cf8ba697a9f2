//! A disk that is full or broken, for a while.

use std::{fs, path::Path};

use crate::cache::{
    health::{CacheFailure, Health},
    keeper::Keeper,
    memory::Memory,
    tests::{Place, agent, applied, at, faults::FaultyDisk, file_with, item, names_in, place, put, reload, settings},
};

fn open_on(disk: &FaultyDisk, path: &Path) -> (Keeper, Memory) {
    let (keeper, memory, aside) = Keeper::open_with(path, &agent(), settings(disk.clone())).unwrap();
    assert_eq!(aside, None);
    (keeper, memory)
}

async fn until_good(keeper: &Keeper) {
    keeper.health().wait_for(|health| *health == Health::Good).await.unwrap();
}

async fn until_failing(keeper: &Keeper) {
    keeper.health().wait_for(|health| *health != Health::Good).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_holds_nobody_up_and_loses_nothing() {
    let Place { directory: _directory, path } = place();
    let disk = FaultyDisk::default();
    let (keeper, _) = open_on(&disk, &path);
    keeper.save(put(1, &[item("a", 1)]));
    keeper.barrier().await.unwrap();

    disk.fail(FaultyDisk::FULL);
    keeper.save(put(2, &[item("a", 2), item("b", 1)]));
    let failure = keeper.barrier().await.unwrap_err();
    assert_eq!(failure.to_string(), "the memory on disk is not up to date: No space left on device (os error 28)");
    let health = keeper.health().borrow().clone();
    assert!(matches!(&health, Health::Failing { message, .. } if message.contains("No space left")), "{health:?}");
    // While it fails, more is saved, and nobody waits.
    keeper.save(put(3, &[item("c", 1)]));
    assert!(matches!(keeper.barrier().await, Err(CacheFailure::Failing(_))));

    disk.heal();
    until_good(&keeper).await;
    keeper.barrier().await.unwrap();
    keeper.close().await;
    let memory = reload(&path).await;
    assert_eq!(memory.position, at(3));
    let generations: Vec<_> = memory.desired.values().map(|item| item.generation().0).collect();
    assert_eq!(generations, [2, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_stays_full_is_tried_again_and_again_but_reported_once() {
    let Place { directory: _directory, path } = place();
    let disk = FaultyDisk::default();
    let (keeper, _) = open_on(&disk, &path);
    let mut health = keeper.health();
    disk.fail(FaultyDisk::FULL);
    keeper.save(put(1, &[]));
    until_failing(&keeper).await;
    health.mark_unchanged();
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    assert!(!health.has_changed().unwrap());
    disk.heal();
    until_good(&keeper).await;
    keeper.close().await;
    assert_eq!(reload(&path).await.position, at(1));
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_full_from_the_start_is_no_reason_not_to_start() {
    let Place { directory, path } = place();
    let disk = FaultyDisk::default();
    disk.fail(FaultyDisk::FULL);
    let (keeper, _) = open_on(&disk, &path);
    until_failing(&keeper).await;
    keeper.save(put(1, &[item("a", 1)]));
    assert!(keeper.barrier().await.is_err());
    assert_eq!(names_in(directory.path()), ["memory.db.lock"]);
    disk.heal();
    until_good(&keeper).await;
    keeper.close().await;
    assert_eq!(reload(&path).await.position, at(1));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_crashed_on_a_full_disk_remembers_when_it_starts_on_a_full_disk() {
    let Place { directory: _directory, path } = place();
    let crashed = path.with_extension("crashed");
    let disk = FaultyDisk::default();
    let (keeper, _) = open_on(&disk, &path);
    keeper.save(put(1, &[item("a", 1)]));
    keeper.save(applied(&item("a", 1)));
    keeper.barrier().await.unwrap();
    disk.fail(FaultyDisk::FULL);
    keeper.save(put(2, &[item("a", 2)]));
    keeper.barrier().await.unwrap_err();
    fs::copy(&path, &crashed).unwrap();

    let (restarted, memory) = open_on(&disk, &crashed);
    assert_eq!(memory.position, at(1));
    assert_eq!(memory.applied.len(), 1);
    until_failing(&restarted).await;
    disk.heal();
    until_good(&restarted).await;
    restarted.close().await;
    assert_eq!(reload(&crashed).await.position, at(1));
    keeper.close().await;
}

#[tokio::test(start_paused = true)]
async fn the_health_changes_its_reason_when_the_disk_does() {
    let Place { directory: _directory, path } = place();
    let disk = FaultyDisk::default();
    let (keeper, _) = open_on(&disk, &path);
    keeper.barrier().await.unwrap();
    disk.fail(FaultyDisk::FULL);
    keeper.save(put(1, &[]));
    until_failing(&keeper).await;
    disk.fail(FaultyDisk::BROKEN);
    let broken = |health: &Health| matches!(health, Health::Failing { message, .. } if message.contains("os error 5"));
    keeper.health().wait_for(broken).await.unwrap();
    disk.heal();
    until_good(&keeper).await;
    keeper.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_file_that_makes_redb_panic_is_made_anew() {
    let Place { directory: _directory, path } = place();
    let disk = FaultyDisk::default();
    let (keeper, _) = open_on(&disk, &path);
    keeper.save(put(1, &[item("a", 1)]));
    keeper.barrier().await.unwrap();
    disk.panic();
    keeper.save(put(2, &[item("b", 1)]));
    let failure = keeper.barrier().await.unwrap_err();
    assert!(failure.to_string().contains("redb panicked: as redb does"), "{failure}");
    disk.heal();
    until_good(&keeper).await;
    keeper.close().await;
    let memory = reload(&path).await;
    assert_eq!((memory.position, memory.desired.len()), (at(2), 2));
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_destroyed_while_the_disk_fails_is_made_anew() {
    let Place { directory: _directory, path } = place();
    for destroy in [
        (|path| fs::write(path, "garbage").unwrap()) as fn(&Path),
        |path| fs::remove_file(path).unwrap(),
        |path| fs::write(path, "").unwrap(),
    ] {
        let disk = FaultyDisk::default();
        let (keeper, _) = open_on(&disk, &path);
        keeper.save(put(1, &[item("a", 1)]));
        keeper.barrier().await.unwrap();
        disk.fail(FaultyDisk::BROKEN);
        keeper.save(put(2, &[item("b", 1)]));
        until_failing(&keeper).await;
        destroy(&path);
        disk.heal();
        until_good(&keeper).await;
        keeper.close().await;
        let memory = reload(&path).await;
        assert_eq!((memory.position, memory.desired.len()), (at(2), 2));
        fs::remove_file(&path).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_was_replaced_while_the_disk_failed_is_made_anew() {
    let Place { directory: _directory, path } = place();
    let backup = path.with_extension("backup");
    file_with(&path, [put(1, &[item("old", 1)])]).await;
    fs::copy(&path, &backup).unwrap();

    let disk = FaultyDisk::default();
    let (keeper, _) = open_on(&disk, &path);
    keeper.save(put(2, &[item("a", 1)]));
    keeper.barrier().await.unwrap();
    disk.fail(FaultyDisk::BROKEN);
    keeper.save(put(3, &[item("b", 1)]));
    until_failing(&keeper).await;
    fs::copy(&backup, &path).unwrap();
    disk.heal();
    until_good(&keeper).await;
    keeper.close().await;
    let memory = reload(&path).await;
    assert_eq!((memory.position, memory.desired.len()), (at(3), 3));
}

#[tokio::test(start_paused = true)]
async fn closing_on_a_full_disk_ends() {
    let Place { directory: _directory, path } = place();
    let disk = FaultyDisk::default();
    let (keeper, _) = open_on(&disk, &path);
    keeper.save(put(1, &[item("a", 1)]));
    keeper.barrier().await.unwrap();
    disk.fail(FaultyDisk::FULL);
    keeper.save(put(2, &[item("a", 2)]));
    keeper.close().await;
    assert_eq!(reload(&path).await.position, at(1));
}

/// Power goes at any moment: after a number of writes no other succeeds. Whatever the number is, there is one state or
/// the other afterwards, or no file where there was none.
#[tokio::test(start_paused = true)]
async fn whichever_write_is_the_last_one_the_file_has_one_state_or_the_other() {
    let mut outcomes = std::collections::BTreeMap::new();
    for limit in 0.. {
        let Place { directory, path } = place();
        let disk = FaultyDisk::default();
        disk.limit(limit);
        let (keeper, _) = open_on(&disk, &path);
        let mut durable = 0;
        for revision in 1..=3 {
            let items: Vec<_> = ["a", "b", "c"].iter().map(|name| item(name, revision)).collect();
            keeper.save(put(revision, &items));
            if keeper.barrier().await.is_err() {
                break;
            }
            durable = revision;
        }
        // The image of the file at this moment is what the next start finds.
        let found = directory.path().join("found.db");
        if path.exists() {
            fs::copy(&path, &found).unwrap();
        }
        let (restarted, memory) = open_on(&FaultyDisk::default(), &found);
        let revision = memory.position.map_or(0, |position| position.revision.0);
        assert!(revision == durable || revision == durable + 1, "{revision} after {durable}, limit {limit}");
        assert_eq!(memory.desired.len(), if revision == 0 { 0 } else { 3 });
        assert!(memory.desired.values().all(|item| item.generation().0 == revision));
        restarted.close().await;
        keeper.close().await;
        *outcomes.entry((durable, revision)).or_insert(0) += 1;
        if durable == 3 && disk.writes() < limit {
            break;
        }
    }
    assert!(outcomes.len() >= 4, "{outcomes:?}");
}
