//! Publications against a target that checks every transaction, with answers that get lost and restarts.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_store::{Op, Step};
use proptest::{collection::vec, prelude::*};

use crate::publications::{
    Collision, Owner, Publications,
    tests::world::{drafts, owner, record},
};

const OWNERS: [&str; 4] = ["a", "b", "c", "d"];

/// Names that any owner may use. Besides them, each has names of its own.
const SHARED: [&str; 2] = ["s", "t"];

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Committed,
    Refused,
    /// It happened, and nobody heard of it.
    LostAfter,
    /// It did not happen, and nobody heard of it.
    LostBefore,
    /// The controller ended before it could know.
    Crashed {
        after: bool,
    },
}

#[derive(Debug, Clone)]
enum Move {
    /// An owner publishes some of its own names and some of the shared ones.
    Publish {
        owner: usize,
        own: u8,
        shared: u8,
        again: bool,
        end: End,
    },
    Delete {
        owner: usize,
        end: End,
    },
    Orphan {
        owner: usize,
        end: End,
    },
    /// Another instance takes over, and syncs with what some of the owners say.
    Sync {
        heard: u8,
    },
}

/// A target and what its owners want, kept as simply as can be.
#[derive(Debug, Default)]
struct World {
    publications: Publications,
    /// Child to owner.
    target: BTreeMap<String, Option<String>>,
    /// What each owner has, as far as it was told.
    wanted: BTreeMap<&'static str, BTreeSet<String>>,
    /// Owners that have missed an answer since they last got one.
    in_doubt: BTreeSet<&'static str>,
    lives: BTreeMap<&'static str, u64>,
}

impl World {
    fn owner(&self, name: &'static str) -> Owner {
        owner(name, self.lives.get(name).copied().unwrap_or_default())
    }

    /// What a target does; every step must be one that the owner may take.
    fn apply(&mut self, owner: &str, steps: &[Step]) {
        for step in steps {
            match &step.op {
                Op::Upsert(draft) => {
                    let before = self.target.get(draft.key.name());
                    let is_free = before.is_none_or(|before| before.as_deref().is_none_or(|before| before == owner));
                    assert!(is_free, "{} of {before:?} is overwritten by {owner}", draft.key);
                    let owner = draft.owner.as_ref().map(|owner| owner.texts()[2].to_owned());
                    self.target.insert(draft.key.name().to_owned(), owner);
                }
                Op::Delete(key) => {
                    if let Some(before) = self.target.remove(key.name()) {
                        let is_own = before.as_deref().is_none_or(|before| before == owner);
                        assert!(is_own, "{key} of {before:?} is deleted by {owner}");
                    }
                }
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    /// Commits what an owner has staged, with a certain end.
    fn commit(&mut self, name: &'static str, steps: &[Step], wants: BTreeSet<String>, end: End) {
        let is_add = |step: &Step| matches!(step.op, Op::Upsert(_));
        assert!(steps.is_sorted_by_key(|step| !is_add(step)), "adds come before removals");
        if matches!(end, End::Committed | End::LostAfter | End::Crashed { after: true }) {
            self.apply(name, steps);
        }
        let key = self.owner(name).key;
        match end {
            End::Committed => {
                self.publications.committed(&key);
                self.in_doubt.remove(name);
                self.wanted.insert(name, wants);
            }
            End::Refused => self.publications.refused(&key),
            End::LostAfter | End::LostBefore => {
                self.publications.failed(&key);
                self.in_doubt.insert(name);
            }
            End::Crashed { .. } => {
                self.in_doubt.insert(name);
                self.restart();
            }
        }
        self.check();
    }

    fn publish(&mut self, name: &'static str, wants: BTreeSet<String>, end: End) -> Result<(), Collision> {
        let list: Vec<&str> = wants.iter().map(String::as_str).collect();
        let steps = self.publications.staged(&self.owner(name), drafts(&list)).inspect_err(|collision| {
            let Collision::Taken { child, by } = collision else { panic!("no child was twice there") };
            let holder = self.target.get(child.name()).and_then(Option::as_deref);
            assert_ne!(by.name(), name, "nobody is in the way of itself");
            assert!(holder == Some(by.name()) || self.in_doubt.contains(by.name()), "{by} has no {child}");
        })?;
        self.commit(name, &steps, wants, end);
        Ok(())
    }

    fn delete(&mut self, name: &'static str, end: End) {
        let steps = self.publications.withdraw(&self.owner(name).key);
        self.commit(name, &steps, BTreeSet::new(), end);
        *self.lives.entry(name).or_default() += 1;
    }

    fn orphan(&mut self, name: &'static str, end: End) {
        let records: Vec<_> = self.target.iter().map(|(child, owner)| record(child, owner.as_deref())).collect();
        let steps = self.publications.orphan(&self.owner(name).key, &records);
        self.commit(name, &steps, BTreeSet::new(), end);
    }

    /// Another instance, which knows what it finds.
    fn restart(&mut self) {
        self.publications = Publications::default();
        let records: Vec<_> = self.target.iter().map(|(child, owner)| record(child, owner.as_deref())).collect();
        self.publications.recover(&records);
    }

    /// A restart with a sync in which only some owners get their say: what nobody names is swept.
    fn sync(&mut self, heard: u8) {
        self.restart();
        let mut named = BTreeSet::new();
        for (_, name) in OWNERS.into_iter().enumerate().filter(|(at, _)| heard & (1 << at) != 0) {
            let wants = self.wanted.get(name).cloned().unwrap_or_default();
            if self.publish(name, wants.clone(), End::Committed).is_ok() {
                named.extend(wants);
            }
        }
        named.extend(self.publications.survivors().iter().map(|key| key.name().to_owned()));
        let mut orphans = self.target.iter().filter(|(_, owner)| owner.is_none());
        assert!(orphans.all(|(child, _)| named.contains(child)), "orphans are kept by name");
        self.target.retain(|child, _| named.contains(child));
        self.check();
    }

    /// Nothing that an owner knows to have is missing, and the books know of everything that is there.
    fn check(&self) {
        for (name, wants) in self.wanted.iter().filter(|(name, _)| !self.in_doubt.contains(*name)) {
            for child in wants {
                let holder = self.target.get(child).map(Option::as_deref);
                assert_eq!(holder, Some(Some(*name)), "{child} is wanted by {name}");
            }
        }
        for (child, holder) in &self.target {
            let Some(holder) = holder else { continue };
            let key = crate::publications::tests::world::child(child);
            let known = self.publications.owner_of(&key).map(|owner| owner.name().to_owned());
            assert_eq!(known.as_ref(), Some(holder), "{child} would be left behind");
        }
    }

    /// Everybody says what it wants, without faults: first what is its own, so that shared names become free.
    fn settle(&mut self, wants: &BTreeMap<&'static str, BTreeSet<String>>) {
        for name in OWNERS {
            let own = wants[name].iter().filter(|child| !SHARED.contains(&child.as_str())).cloned().collect();
            self.publish(name, own, End::Committed).unwrap();
        }
        for name in OWNERS {
            self.publish(name, wants[name].clone(), End::Committed).unwrap();
        }
        for name in OWNERS {
            let held = self.target.iter().filter(|(_, owner)| owner.as_deref() == Some(name));
            let held: BTreeSet<_> = held.map(|(child, _)| child.clone()).collect();
            assert_eq!(held, wants[name], "{name} has what it wants and nothing else");
        }
    }
}

fn wants(name: &str, own: u8, shared: u8) -> BTreeSet<String> {
    let own = (0..4).filter(|bit| own & (1 << bit) != 0).map(|bit| format!("{name}{bit}"));
    let shared = SHARED.iter().enumerate().filter(|(bit, _)| shared & (1 << bit) != 0);
    own.chain(shared.map(|(_, child)| (*child).to_owned())).collect()
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        6 => Just(End::Committed),
        1 => Just(End::Refused),
        2 => Just(End::LostAfter),
        2 => Just(End::LostBefore),
        1 => any::<bool>().prop_map(|after| End::Crashed { after }),
    ]
}

fn a_move() -> impl Strategy<Value = Move> {
    let owner = 0..OWNERS.len();
    prop_oneof![
        8 => (owner.clone(), 0..16_u8, 0..4_u8, any::<bool>(), end())
            .prop_map(|(owner, own, shared, again, end)| Move::Publish { owner, own, shared, again, end }),
        2 => (owner.clone(), end()).prop_map(|(owner, end)| Move::Delete { owner, end }),
        1 => (owner, end()).prop_map(|(owner, end)| Move::Orphan { owner, end }),
        1 => any::<u8>().prop_map(|heard| Move::Sync { heard }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_left_behind_and_nothing_wanted_or_foreign_is_touched(
        moves in vec(a_move(), 1..60),
        last in vec(0..16_u8, OWNERS.len()),
    ) {
        let mut world = World::default();
        for one in moves {
            match one {
                Move::Publish { owner, own, shared, again, end } => {
                    let name = OWNERS[owner];
                    if again {
                        *world.lives.entry(name).or_default() += 1;
                    }
                    // A collision is an answer, too: the owner waits, and what it has stays.
                    let _ = world.publish(name, wants(name, own, shared), end);
                }
                Move::Delete { owner, end } => world.delete(OWNERS[owner], end),
                Move::Orphan { owner, end } => world.orphan(OWNERS[owner], end),
                Move::Sync { heard } => world.sync(heard),
            }
        }
        // Each shared name goes to one of them.
        let last = OWNERS.into_iter().zip(last).enumerate();
        let last = last.map(|(at, (name, own))| (name, wants(name, own, if at < 2 { 1 << at } else { 0 })));
        world.settle(&last.collect());
        for name in OWNERS {
            world.delete(name, End::Committed);
        }
        let owned = world.target.values().flatten().count();
        prop_assert_eq!(owned, 0, "a deleted owner leaves nothing behind");
    }
}
