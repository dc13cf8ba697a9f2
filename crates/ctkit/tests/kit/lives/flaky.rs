//! Sources and buses that go away all the time.

use std::{collections::BTreeMap, time::Duration};

use ctkit::{InstanceId, Instances, Manager, ManagerBuilder, Remote};
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};

use crate::{
    life::Life,
    lives::diary::Diary,
    net::Daemon,
    world::{delete, published, put, quiet},
};

const SEEDS: u64 = 6;

/// What users want, written past the network.
struct Users {
    rng: SmallRng,
    desired: BTreeMap<String, String>,
    writes: usize,
}

// === impl Users ===

impl Users {
    fn new(seed: u64) -> Self {
        Self { rng: SmallRng::seed_from_u64(seed), desired: BTreeMap::new(), writes: 0 }
    }

    async fn write(&mut self, daemon: &Daemon) {
        self.writes += 1;
        let name = format!("p{}", self.rng.random_range(0..8));
        if self.rng.random_bool(0.3) {
            self.desired.remove(&name);
            delete(&daemon.store, &name).await;
        } else {
            let text = self.writes.to_string();
            self.desired.insert(name.clone(), text.clone());
            put(&daemon.store, &name, &[&name], &text).await;
        }
    }
}

/// A daemon that forgets deletes soon: whoever was away for longer has to list everything again.
fn forgetful() -> Daemon {
    Daemon::start(|config| {
        config.assume_complete = true;
        config.limits.store.tombstones = 2;
    })
}

fn manager(daemon: &Daemon, diary: &Diary, seed: u64) -> ManagerBuilder<Remote> {
    Manager::builder(daemon.remote()).controller(diary.controller()).seed(seed)
}

/// Fails unless the last that the reactor has dealt with is what is wanted, for every object.
fn check(diary: &Diary, desired: &BTreeMap<String, String>, seed: u64) {
    let mut last: BTreeMap<String, Option<String>> = BTreeMap::new();
    for line in diary.take_good() {
        let (verb, rest) = line.split_once(' ').unwrap();
        let (name, text) = rest.split_once('=').unwrap();
        let new = match verb {
            "delete" => None,
            _ => Some(text.rsplit_once('>').map_or(text, |(_, new)| new).to_owned()),
        };
        last.insert(name.to_owned(), new);
    }
    let last: BTreeMap<_, _> = last.into_iter().filter_map(|(name, text)| Some((name, text?))).collect();
    assert_eq!(last, *desired, "seed {seed}");
}

/// Events that came while a watch was broken were lost, and nobody ever looked at the whole again; a delete in particular
/// (H11, H12).
#[tokio::test(start_paused = true)]
async fn a_source_that_breaks_off_and_lists_again_loses_nothing() {
    for seed in 0..SEEDS {
        let (daemon, diary, mut users) = (forgetful(), Diary::default(), Users::new(seed));
        let life = Life::start(manager(&daemon, &diary, seed));
        for _ in 0..40 {
            for _ in 0..users.rng.random_range(0..6) {
                users.write(&daemon).await;
            }
            if users.rng.random_bool(0.5) {
                daemon.net.cut();
            }
            tokio::time::sleep(Duration::from_millis(users.rng.random_range(0..800))).await;
        }
        quiet().await;
        quiet().await;
        assert_eq!(published(&daemon.store), users.desired, "seed {seed}");
        check(&diary, &users.desired, seed);
        assert!(diary.overlaps().is_empty(), "seed {seed}: {:?}", diary.overlaps());
        life.stop().await;
    }
}

/// There was one copy of the controller, and all that it knew was in its memory (H35).
#[tokio::test(start_paused = true)]
async fn a_standby_takes_over_on_a_source_that_breaks_off() {
    for seed in 0..SEEDS {
        let (daemon, diary, mut users) = (forgetful(), Diary::default(), Users::new(seed));
        let instance = |name: String| {
            let leader = Instances::leader("policies").ttl(Duration::from_secs(3));
            Life::start(manager(&daemon, &diary, seed).instances(leader.instance(InstanceId::new(&name))))
        };
        let mut leader = instance("0".to_owned());
        for round in 1..=4 {
            let standby = instance(round.to_string());
            for _ in 0..10 {
                users.write(&daemon).await;
                if users.rng.random_bool(0.2) {
                    daemon.net.cut();
                }
                tokio::time::sleep(Duration::from_millis(users.rng.random_range(0..800))).await;
            }
            if users.rng.random_bool(0.5) {
                leader.crash().await;
            } else {
                leader.stop().await;
            }
            leader = standby;
        }
        quiet().await;
        quiet().await;
        assert_eq!(published(&daemon.store), users.desired, "seed {seed}");
        check(&diary, &users.desired, seed);
        assert!(diary.overlaps().is_empty(), "seed {seed}: {:?}", diary.overlaps());
        leader.stop().await;
    }
}
