//! Leases against a naive model, and what a lost one stops.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use bytes::Bytes;
use nimbus_core::{Audience, Epoch};
use nimbus_store::{Acquired, Collection, Config, Guard, Held, LeaseError, Leases, Refused, Saved, Txn};
use proptest::{prelude::*, test_runner::Config as Cases};
use tempfile::TempDir;

use crate::guarantees::{collection, draft, kind, publisher, put, txn};

const NAMES: [&str; 3] = ["leader", "shard-0", "shard-1"];
const HOLDERS: [&str; 3] = ["a", "b", "c"];

/// How many may be held: one name must wait for another.
const MAX: usize = 2;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// When everything begins. Nothing here looks at the clock a second time.
fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    #[allow(clippy::disallowed_methods, reason = "there is no other way to make one; it stands for zero")]
    *ORIGIN.get_or_init(Instant::now)
}

fn at(millis: u64) -> Instant {
    origin() + ms(millis)
}

fn guard(held: &Held) -> Guard {
    Guard { lease: held.name.clone(), token: held.token }
}

#[derive(Debug, Clone)]
enum Step {
    Acquire {
        name: usize,
        holder: usize,
        ttl: u64,
    },
    /// One holder renews all that it ever had.
    Renew {
        holder: usize,
    },
    /// A token that was given at some time is given back.
    Release {
        pick: usize,
    },
    /// A write with a token that was given at some time.
    Write {
        pick: usize,
    },
    Pass {
        ms: u64,
    },
    /// The process dies, and another one begins with what was saved.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let ttl = prop::sample::select(vec![100, 150, 1000]);
    prop_oneof![
        6 => (0..NAMES.len(), 0..HOLDERS.len(), ttl).prop_map(|(name, holder, ttl)| Step::Acquire { name, holder, ttl }),
        3 => (0..HOLDERS.len()).prop_map(|holder| Step::Renew { holder }),
        2 => any::<usize>().prop_map(|pick| Step::Release { pick }),
        6 => any::<usize>().prop_map(|pick| Step::Write { pick }),
        4 => prop::sample::select(vec![0, 1, 49, 99, 100, 150, 999, 1000]).prop_map(|ms| Step::Pass { ms }),
        1 => Just(Step::Restart),
    ]
}

/// What the model knows of a lease that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    holder: &'static str,
    token: u64,
    ttl: u64,
    ends: u64,
}

/// Leases, what was saved of them, and the naive model.
struct World {
    now: u64,
    leases: Leases,
    disk: BTreeMap<Arc<str>, Bytes>,
    known: BTreeMap<&'static str, Known>,
    /// All tokens that were ever given, with whom they were given to.
    given: Vec<(&'static str, Guard)>,
    /// Tokens that were refused once.
    lost: BTreeSet<u64>,
}

impl World {
    fn new() -> Self {
        let (disk, known, given, lost) = (BTreeMap::new(), BTreeMap::new(), Vec::new(), BTreeSet::new());
        Self { now: 0, leases: Leases::new(MAX, 0), disk, known, given, lost }
    }

    fn step(&mut self, step: &Step) {
        // Some have looked at the clock a while ago.
        let now = at(self.now.saturating_sub([0, 70, 200][self.given.len() % 3]));
        match *step {
            Step::Acquire { name, holder, ttl } => self.acquire(NAMES[name], HOLDERS[holder], ttl, now),
            Step::Renew { holder } => {
                let own = self.given.iter().filter(|(whose, _)| *whose == HOLDERS[holder]);
                let own: Vec<_> = own.map(|(_, guard)| guard.clone()).collect();
                let lost = self.leases.renew(&own, now);
                let expected: Vec<_> = own
                    .iter()
                    .filter(|guard| self.good(guard).is_none())
                    .map(|guard| guard.lease.clone())
                    .collect();
                assert_eq!(lost, expected, "leases that are lost");
                for guard in own {
                    let ends = self.good(&guard).map(|known| self.now + known.ttl);
                    if let (Some(ends), Some(known)) = (ends, self.known.get_mut(&*guard.lease)) {
                        known.ends = ends;
                    } else {
                        self.lost.insert(guard.token);
                    }
                }
            }
            Step::Release { pick } => {
                let Some((_, guard)) = self.given.get(pick % self.given.len().max(1)).cloned() else { return };
                self.leases.release(std::slice::from_ref(&guard), now);
                if self.good(&guard).is_some() {
                    self.known.remove(&*guard.lease);
                }
                self.lost.insert(guard.token);
            }
            Step::Write { pick } => {
                let Some((_, guard)) = self.given.get(pick % self.given.len().max(1)).cloned() else { return };
                self.leases.pass(now);
                let done = self.leases.check(std::slice::from_ref(&guard));
                assert_eq!(done.is_ok(), self.good(&guard).is_some(), "{guard:?} at {}", self.now);
                assert!(done.is_err() || !self.lost.contains(&guard.token), "{guard:?} was lost, and is good again");
                if let Err(refused) = done {
                    self.lost.insert(guard.token);
                    let holder = self.known.get(&*guard.lease).map_or("nobody", |known| known.holder);
                    assert!(refused.to_string().contains(&format!("{holder} holds it now")), "{refused}");
                }
            }
            Step::Pass { ms } => self.now += ms,
            Step::Restart => {
                self.leases = Leases::new(MAX, 0);
                self.leases.restore(self.disk.values().cloned(), at(self.now)).unwrap();
                for known in self.known.values_mut() {
                    known.ends = self.now + known.ttl;
                }
            }
        }
        self.known.retain(|_, known| self.now < known.ends);
        let listed = self.leases.list("", at(self.now));
        let listed: Vec<_> = listed
            .iter()
            .map(|held| (&*held.name, &*held.holder, held.token, held.expires_in))
            .collect();
        let known = self.known.iter();
        let known: Vec<_> = known
            .map(|(name, known)| (*name, known.holder, known.token, ms(known.ends - self.now)))
            .collect();
        assert_eq!(listed, known, "who holds what at {}", self.now);
        for Saved { name, record } in self.leases.take_unsaved() {
            match record {
                Some(record) => self.disk.insert(name, record),
                None => self.disk.remove(&name),
            };
        }
    }

    fn acquire(&mut self, name: &'static str, holder: &'static str, ttl: u64, now: Instant) {
        let done = self.leases.acquire(name, holder, ms(ttl), now);
        let before = self.known.get(name).cloned();
        if before.is_none() && self.known.len() == MAX {
            assert_eq!(done, Err(LeaseError::Full { max: MAX }));
            return;
        }
        let Acquired { granted, changed, lease } = done.unwrap();
        assert_eq!(granted, before.as_ref().is_none_or(|before| before.holder == holder));
        assert_eq!(changed, before.is_none(), "a new token");
        match before {
            None => {
                let highest = self.given.iter().map(|(_, guard)| guard.token).max().unwrap_or_default();
                assert!(lease.token > highest, "{} after {highest}", lease.token);
                self.given.push((holder, guard(&lease)));
            }
            Some(before) => assert_eq!((&*lease.holder, lease.token), (before.holder, before.token)),
        }
        if granted {
            self.known.insert(name, Known { holder, token: lease.token, ttl, ends: self.now + ttl });
        }
    }

    /// The lease, if this token is good for it.
    fn good(&self, guard: &Guard) -> Option<&Known> {
        self.known
            .get(&*guard.lease)
            .filter(|known| known.token == guard.token && self.now < known.ends)
    }
}

proptest! {
    #![proptest_config(Cases { cases: 500, failure_persistence: None, ..Cases::default() })]

    /// At every moment a lease has one holder at most, tokens only rise, and a token that was lost is never good again.
    #[test]
    fn leases_are_those_of_the_model_whatever_time_and_crashes_do(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        steps.iter().for_each(|step| world.step(step));
    }
}

fn acquire(store: &Collection, holder: &str, now: u64) -> Acquired {
    store.acquire("leader", holder, ms(1000), at(now)).unwrap()
}

fn write(store: &Collection, value: u8, leases: &[Guard]) -> Result<(), Refused> {
    let txn = Txn { leases: leases.to_vec(), ..txn(vec![put("x", value, Audience::Everyone)]) };
    store.commit(&txn).map(drop)
}

fn is_lost(done: Result<impl std::fmt::Debug, Refused>, holder: Option<&str>) {
    match done {
        Err(Refused::LeaseLost { lease, current, .. }) => {
            assert_eq!((&*lease, current.as_ref().map(|held| &*held.holder)), ("leader", holder));
        }
        other => panic!("expected a lost lease, found {other:?}"),
    }
}

/// Scenario 10 (H13).
#[test]
fn a_paused_leader_that_returns_after_its_lease_expired_is_refused() {
    let store = collection(|_| {});
    let old = guard(&acquire(&store, "a", 0).lease);
    write(&store, 1, std::slice::from_ref(&old)).unwrap();
    // It sleeps. Nobody has taken over yet when it comes back, but it is too late.
    store.tell_time(at(1000));
    is_lost(write(&store, 2, std::slice::from_ref(&old)), None);
    let new = acquire(&store, "b", 1500);
    assert!(new.granted && new.lease.token > old.token);
    is_lost(write(&store, 2, std::slice::from_ref(&old)), Some("b"));
    is_lost(store.plan(&Txn { leases: vec![old.clone()], ..txn(Vec::new()) }), Some("b"));
    is_lost(
        store.commit_at(nimbus_core::Revision(9), &Txn { leases: vec![old.clone()], ..txn(Vec::new()) }),
        Some("b"),
    );
    assert_eq!(*store.renew(std::slice::from_ref(&old), at(1600)), *std::slice::from_ref(&old.lease));
    // Whoever read the clock before the lease changed hands, and writes after it, is refused by its token.
    store.tell_time(at(500));
    is_lost(write(&store, 2, std::slice::from_ref(&old)), Some("b"));
    // Giving it back does not take it from the one who has it.
    store.release(&[old], at(1700));
    write(&store, 3, &[guard(&new.lease)]).unwrap();
    assert_eq!(store.leases("lead", at(1700)).wait().unwrap()[0].holder, new.lease.holder);
    assert_eq!(store.state().head().0, 2);
}

#[test]
fn a_write_needs_every_lease_that_it_names() {
    let store = collection(|_| {});
    let leader = guard(&acquire(&store, "a", 0).lease);
    let shard = guard(&store.acquire("shard-0", "a", ms(5000), at(0)).unwrap().lease);
    write(&store, 1, &[leader.clone(), shard.clone()]).unwrap();
    write(&store, 2, &[]).unwrap();
    store.tell_time(at(2000));
    is_lost(write(&store, 3, &[shard.clone(), leader.clone()]), None);
    write(&store, 3, std::slice::from_ref(&shard)).unwrap();
    is_lost(write(&store, 4, &[Guard { token: shard.token, ..leader }]), None);
}

#[test]
fn a_sync_needs_its_leases_from_the_beginning_to_the_end() {
    let store = collection(|_| {});
    write(&store, 1, &[]).unwrap();
    let old = guard(&acquire(&store, "a", 0).lease);
    let begin = |lease: &Guard| {
        store
            .submit_begin(&publisher(), 0, BTreeSet::from([kind()]), vec![lease.clone()])
            .map(|ticket| ticket.wait().unwrap())
    };
    let items = || vec![draft("y", 1, Audience::Everyone)];
    let first = begin(&old).unwrap();
    store.sync_items(&first, items()).unwrap();
    let new = guard(&acquire(&store, "b", 2000).lease);
    is_lost(store.sync_items(&first, items()), Some("b"));
    is_lost(store.end_sync(&first), Some("b"));
    is_lost(begin(&old), Some("b"));
    assert_eq!(store.state().objects(), 2, "nothing was swept");
    let second = begin(&new).unwrap();
    store.sync_items(&second, items()).unwrap();
    assert_eq!(store.end_sync(&second).unwrap().1.deleted, 1);
}

#[test]
fn a_lease_that_nobody_could_have_is_refused_and_says_why() {
    let store = collection(|config| config.limits.leases = 1);
    let refuse =
        |name: &str, holder: &str, ttl: u64| store.acquire(name, holder, ms(ttl), at(0)).unwrap_err().to_string();
    assert!(refuse("", "a", 1000).starts_with("lease \"\": expected 1 to 253"));
    assert!(refuse(&"n".repeat(254), "a", 1000).contains("1 to 253"));
    assert!(refuse("leader", "a/b", 1000).starts_with("holder \"a/b\""));
    assert_eq!(refuse("leader", "a", 99), "a lease lasts between 100 ms and 3600000 ms, not 99 ms");
    assert_eq!(refuse("leader", "a", 3_600_001), "a lease lasts between 100 ms and 3600000 ms, not 3600001 ms");
    acquire(&store, "a", 0);
    assert_eq!(refuse("other", "a", 1000), "leases are limited to 1");
    assert!(store.acquire("other", "a", ms(1000), at(1000)).is_ok(), "the first one has ended");
}

#[test]
fn after_a_restart_a_lease_counts_as_held_for_as_long_as_it_lasts() {
    let dir = TempDir::new().unwrap();
    let open = || Collection::open(&dir.path().join("store"), Config::new(Epoch(1))).unwrap();
    let before = open();
    let held = acquire(&before, "a", 0).lease;
    let given_back = before.acquire("shard-0", "b", ms(1000), at(0)).unwrap().lease;
    before.release(&[guard(&given_back)], at(0));
    drop(before);

    let store = open();
    store.restore_leases(at(10_000)).unwrap();
    assert!(!acquire(&store, "b", 10_999).granted, "its holder may live");
    assert_eq!(store.renew(&[guard(&held)], at(10_999)), Vec::<Arc<str>>::new());
    let next = acquire(&store, "b", 12_000);
    assert!(next.granted && next.lease.token > given_back.token, "also above those that were given back");
    store.set_extra("lease/damaged", Some(Bytes::from_static(b"\xff"))).wait().unwrap();
    assert!(store.restore_leases(at(12_000)).is_err());
}
