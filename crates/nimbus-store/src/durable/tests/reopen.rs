//! A collection that is reopened is the same as one that was in memory all along, to the last tombstone.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use nimbus_core::{Audience, Generation, Labels, Reference, Revision};
use proptest::{
    prelude::*,
    test_runner::{Config as TestConfig, TestRunner},
};

use crate::{
    collection::{Collection, Config},
    durable::tests::{
        Place, agents, config, disk::TestDisk, draft, key, kind, open, place, publisher, put, selected, spec, txn,
    },
    limits::Limits,
    publishers::SyncId,
    txn::{Draft, Op, StatusDraft, Txn},
};

#[derive(Debug, Clone)]
enum Act {
    Write { publisher: usize, fence: u64, ops: BTreeMap<usize, Change> },
    Begin { publisher: usize, fence: u64 },
    Items { publisher: usize, ops: BTreeMap<usize, Change> },
    End { publisher: usize },
    Trim { back: u64 },
    Extra { name: usize, value: Option<u8> },
    Reopen,
}

#[derive(Debug, Clone)]
enum Change {
    Put { value: u64, audience: usize, label: bool, refers: Option<usize> },
    Status(u8),
    Delete,
}

const PUBLISHERS: [&str; 2] = ["p", "q"];

/// A collection in memory and one on disk, to which the same happens.
struct Twins {
    place: Place,
    tombstones: usize,
    memory: Collection,
    durable: Option<Collection>,
    syncs: BTreeMap<usize, (SyncId, SyncId)>,
}

fn audience(at: usize) -> Audience {
    match at {
        0 => Audience::Everyone,
        1 => selected("zone=a"),
        2 => selected("zone in (a,b),!canary"),
        3 => agents(&[]),
        4 => agents(&["x"]),
        5 => agents(&["x", "y"]),
        _ => agents(&["y", "z"]),
    }
}

fn named(at: usize) -> String {
    format!("object-{at}")
}

fn draft_of(at: usize, change: &Change) -> Option<Draft> {
    let Change::Put { value, audience: to, label, refers } = change else { return None };
    let labels: BTreeMap<_, _> = label.then(|| ("app".to_owned(), "web".to_owned())).into_iter().collect();
    // Only to those that come after: no cycles.
    let refers = refers.filter(|to| *to > at).map(|to| Reference::strong(key(&named(to))));
    Some(Draft {
        labels: Labels::new(&labels).unwrap(),
        refs: refers.into_iter().collect::<Arc<[_]>>(),
        ..draft(&named(at), *value, audience(*to))
    })
}

fn op(at: usize, change: &Change) -> Op {
    match change {
        Change::Put { .. } => Op::Upsert(draft_of(at, change).unwrap()),
        Change::Delete => Op::Delete(key(&named(at))),
        Change::Status(value) => Op::Status(StatusDraft {
            key: key(&named(at)),
            status: spec(u64::from(*value), 0),
            observed: Generation(1),
        }),
    }
}

/// Everything in a collection, but for the last revision of a lane: one whose last tombstone was forgotten is behind the
/// horizon anyway.
fn everything(store: &Collection) -> String {
    let state = store.state();
    let mut text = format!(
        "{:?} {:?} {:?} {} {} {:?} {:?}\n",
        state.epoch, state.head, state.horizon, state.objects, state.bytes, state.synced, state.extras
    );
    for (name, kind) in &state.kinds {
        let view = format!("{:?}", kind.all);
        let mut parts = view.split(", last: Revision(");
        let first = parts.next().unwrap_or_default();
        let rest = parts.map(|part| part.split_once(')').unwrap().1);
        let lanes: Vec<_> = std::iter::once(first)
            .chain(rest)
            .map(|lane| lane.replace(", Record", ",\nRecord"))
            .collect();
        text += &format!("{name} {:?}\n{}\n", kind.publishers, lanes.join("\n"));
    }
    let labels = [&[][..], &[("zone", "a")], &[("zone", "b")], &[("zone", "a"), ("canary", "")]];
    for labels in labels {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        text += &format!("{:?}\n", state.selectors.matching(&Labels::new(&labels).unwrap()));
    }
    let writer = store.core().lock();
    for name in PUBLISHERS {
        let fence = (0..).find(|fence| writer.publishers.check_fence(&publisher(name), *fence).is_ok());
        text += &format!("{name} {fence:?}\n");
    }
    text + &writer.memory()
}

impl Twins {
    fn new(tombstones: usize) -> Self {
        let place = place();
        let mut twins = Self {
            memory: Collection::new(Self::config(tombstones)),
            durable: None,
            tombstones,
            place,
            syncs: BTreeMap::new(),
        };
        twins.reopen();
        twins
    }

    fn config(tombstones: usize) -> Config {
        Config { limits: Limits { tombstones, ..Limits::default() }, ..config() }
    }

    fn reopen(&mut self) {
        for (memory, _) in std::mem::take(&mut self.syncs).into_values() {
            self.memory.abort_sync(&memory);
        }
        self.durable = None;
        let config = Self::config(self.tombstones);
        self.durable = Some(Collection::open_on(&TestDisk::default(), &self.place.path, config).unwrap());
        self.check();
    }

    fn check(&self) {
        let (memory, durable) = (everything(&self.memory), everything(self.durable.as_ref().unwrap()));
        if memory != durable {
            let differs = |(one, other): &(&str, &str)| one != other;
            let first = memory.lines().zip(durable.lines()).position(|pair| differs(&pair)).unwrap_or_default();
            let around = |text: &str| text.lines().skip(first.saturating_sub(3)).take(5).collect::<Vec<_>>().join("\n");
            panic!("in memory:\n{}\non disk:\n{}", around(&memory), around(&durable));
        }
    }

    fn act(&mut self, act: &Act) {
        let Some(durable) = &self.durable else { return };
        match act {
            Act::Write { publisher: who, fence, ops } => {
                let steps = ops.iter().map(|(at, change)| op(*at, change).into()).collect();
                let txn = Txn { publisher: publisher(PUBLISHERS[*who]), fence: *fence, leases: Vec::new(), steps };
                assert_eq!(self.memory.commit(&txn), durable.commit(&txn));
            }
            Act::Begin { publisher: who, fence } => {
                let name = publisher(PUBLISHERS[*who]);
                let memory = self.memory.begin_sync(&name, *fence, [kind()].into());
                let durable = durable.begin_sync(&name, *fence, [kind()].into());
                match (memory, durable) {
                    (Ok(memory), Ok(durable)) => drop(self.syncs.insert(*who, (memory, durable))),
                    (memory, durable) => assert_eq!(memory.unwrap_err(), durable.unwrap_err()),
                }
            }
            Act::Items { publisher: who, ops } => {
                let Some((in_memory, on_disk)) = self.syncs.get(who) else { return };
                let drafts: Vec<_> = ops.iter().filter_map(|(at, change)| draft_of(*at, change)).collect();
                assert_eq!(self.memory.sync_items(in_memory, drafts.clone()), durable.sync_items(on_disk, drafts));
            }
            Act::End { publisher: who } => {
                let Some((in_memory, on_disk)) = self.syncs.remove(who) else { return };
                assert_eq!(self.memory.end_sync(&in_memory), durable.end_sync(&on_disk));
            }
            Act::Trim { back } => {
                let to = Revision(self.memory.state().head.0.saturating_sub(*back));
                self.memory.trim(to);
                durable.trim(to);
            }
            Act::Extra { name, value } => {
                let value = value.map(|value| Bytes::from(vec![value]));
                self.memory.set_extra(&named(*name), value.clone()).wait().unwrap();
                durable.set_extra(&named(*name), value).wait().unwrap();
            }
            Act::Reopen => self.reopen(),
        }
    }
}

fn ops() -> impl Strategy<Value = BTreeMap<usize, Change>> {
    let put = (0..3_u64, 0..7_usize, any::<bool>(), prop::option::weighted(0.2, 0..6_usize))
        .prop_map(|(value, audience, label, refers)| Change::Put { value, audience, label, refers });
    let change = prop_oneof![6 => put, 3 => Just(Change::Delete), 1 => (0..3_u8).prop_map(Change::Status)];
    prop::collection::btree_map(0..6_usize, change, 1..4)
}

fn act() -> impl Strategy<Value = Act> {
    let fence = prop_oneof![8 => Just(2_u64), 1 => Just(3), 1 => Just(0)];
    let who = prop_oneof![4 => Just(0_usize), 1 => Just(1)];
    prop_oneof![
        20 => (who.clone(), fence.clone(), ops())
            .prop_map(|(publisher, fence, ops)| Act::Write { publisher, fence, ops }),
        2 => (who.clone(), fence).prop_map(|(publisher, fence)| Act::Begin { publisher, fence }),
        3 => (who.clone(), ops()).prop_map(|(publisher, ops)| Act::Items { publisher, ops }),
        2 => who.prop_map(|publisher| Act::End { publisher }),
        1 => (0..10_u64).prop_map(|back| Act::Trim { back }),
        1 => (0..3_usize, prop::option::of(0..3_u8)).prop_map(|(name, value)| Act::Extra { name, value }),
        3 => Just(Act::Reopen),
    ]
}

#[test]
fn a_collection_that_is_reopened_is_the_same_to_the_last_tombstone() {
    let tombstones = prop::sample::select(vec![0_usize, 2, 8, 200_000]);
    let config = TestConfig { cases: 100, failure_persistence: None, ..TestConfig::default() };
    let outcome =
        TestRunner::new(config).run(&(tombstones, prop::collection::vec(act(), 1..60)), |(tombstones, acts)| {
            let mut twins = Twins::new(tombstones);
            acts.iter().for_each(|act| twins.act(act));
            twins.check();
            twins.reopen();
            Ok(())
        });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// A controller that watched objects which people write one by one waited for ever: nobody syncs them.
#[test]
fn a_kind_that_nobody_syncs_is_complete_once_it_was_written() {
    let place = place();
    let store = open(&place).unwrap();
    let kind = kind();
    assert!(!store.state().is_complete(&kind), "it may not have been published yet");
    store.commit(&txn(vec![put("a", 1)])).unwrap();
    assert!(store.state().is_complete(&kind));
    store.begin_sync(&publisher("p"), 0, [kind.clone()].into()).unwrap();
    assert!(!store.state().is_complete(&kind), "somebody is about to say what there is");
    drop(store);
    assert!(!open(&place).unwrap().state().is_complete(&kind));
}
