//! A process that dies at any moment: everything is told at least once, and nothing is lost (invariant 8).

use std::{collections::BTreeMap, time::Duration};

use ctkit::Store;
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};

use crate::{
    life::{Life, alone},
    lives::diary::Diary,
    world::{delete, published, put, quiet},
};

const SEEDS: u64 = 60;

/// Whoever died between a reaction and its note of it lost the delete that followed, or was told an `old` that it had never
/// seen (H11).
#[tokio::test(start_paused = true)]
async fn whenever_it_dies_every_object_is_dealt_with_in_the_end() {
    for seed in 0..SEEDS {
        let mut rng = SmallRng::seed_from_u64(seed);
        let (store, diary) = (Store::in_memory(), Diary::default());
        let mut desired: BTreeMap<String, String> = BTreeMap::new();
        // What the reactor has returned `Ok` for, in order; `None` is a delete.
        let mut told: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
        for life in 0..8 {
            let running = Life::start(alone(&store).controller(diary.controller()).seed(rng.random()));
            for step in 0..rng.random_range(0..6) {
                let name = format!("p{}", rng.random_range(0..4));
                if rng.random_bool(0.3) {
                    desired.remove(&name);
                    delete(&store, &name).await;
                } else {
                    let text = format!("{life}.{step}");
                    desired.insert(name.clone(), text.clone());
                    put(&store, &name, &[&name], &text).await;
                }
                for _ in 0..rng.random_range(0..12) {
                    tokio::task::yield_now().await;
                }
            }
            for _ in 0..rng.random_range(0..40) {
                tokio::task::yield_now().await;
            }
            running.crash().await;
            note(&mut told, &diary, seed);
        }
        let running = Life::begin(alone(&store).controller(diary.controller())).await;
        quiet().await;
        note(&mut told, &diary, seed);
        assert_eq!(published(&store), desired, "seed {seed}");
        for (name, told) in &told {
            let last = told.last().cloned().flatten();
            assert_eq!(last.as_ref(), desired.get(name), "seed {seed}: {name} was told {told:?}");
        }
        running.stop().await;
    }
}

/// Adds the calls of a life, and fails if one was told an `old` that had never been dealt with.
fn note(told: &mut BTreeMap<String, Vec<Option<String>>>, diary: &Diary, seed: u64) {
    for line in diary.take_good() {
        let (verb, rest) = line.split_once(' ').unwrap();
        let (name, text) = rest.split_once('=').unwrap();
        let told = told.entry(name.to_owned()).or_default();
        let (old, new) = match verb {
            "create" => (None, Some(text)),
            "delete" => (Some(text), None),
            _ => text.split_once('>').map(|(old, new)| (Some(old), Some(new))).unwrap(),
        };
        if let Some(old) = old {
            assert!(told.contains(&Some(old.to_owned())), "seed {seed}: {line} after {told:?}");
        }
        told.push(new.map(ToOwned::to_owned));
    }
}

/// A reaction that had been under way when its manager was dropped went on without it, and was begun a second time by the
/// next one: two of them worked on the same object.
#[tokio::test(start_paused = true)]
async fn reactions_end_with_the_manager_that_began_them() {
    let (store, diary) = (Store::in_memory(), Diary::default());
    put(&store, "web", &["a"], "one").await;
    let gate = diary.gate("web");
    let life = Life::start(alone(&store).controller(diary.controller()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    life.crash().await;
    let life = Life::start(alone(&store).controller(diary.controller()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(diary.overlaps().is_empty(), "{:?}", diary.overlaps());
    gate.add_permits(1);
    quiet().await;
    assert_eq!(diary.take(), ["create web=one", "create web=one"]);
    life.stop().await;
}
