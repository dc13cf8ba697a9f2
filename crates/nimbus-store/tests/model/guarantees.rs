//! Single guarantees of the store, each with a number or a story.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
    thread,
};

use bytes::Bytes;
use nimbus_core::{
    AgentId, Audience, BucketSet, Buckets, Digest, Epoch, Kind, Labels, ObjectKey, PublisherId, Reference, Revision,
    Selector,
};
use nimbus_store::{
    Collection, Config, Cursor, Draft, Filter, Limits, Op, Origin, Piece, Precondition, Scope, Signal, Step, Txn,
    Viewer,
};
use nimbus_wire::v1::{self, event::Change};
use tempfile::TempDir;

use crate::{reader::decode, world::spec};

pub(crate) fn kind() -> Kind {
    Kind::new("test.v1.Alpha").unwrap()
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::new(kind(), "", name).unwrap()
}

pub(crate) fn publisher() -> PublisherId {
    PublisherId::new("p0").unwrap()
}

pub(crate) fn agent(name: &str, labels: &[(&str, &str)]) -> Scope {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let viewer = Viewer::Agent { id: AgentId::new(name).unwrap(), labels: Labels::new(&labels).unwrap() };
    Scope { kinds: None, filter: None, viewer }
}

pub(crate) fn named(names: &[&str]) -> Audience {
    Audience::Agents(Arc::new(names.iter().map(|name| AgentId::new(name).unwrap()).collect()))
}

pub(crate) fn draft(name: &str, first: u8, audience: Audience) -> Draft {
    let (uid, generation, labels, refs, owner) = (None, None, Labels::default(), Arc::default(), None);
    let annotations = nimbus_core::Annotations::default();
    Draft { key: key(name), uid, generation, labels, refs, owner, annotations, audience, spec: spec(&kind(), first, 8) }
}

pub(crate) fn put(name: &str, first: u8, audience: Audience) -> Step {
    Op::Upsert(draft(name, first, audience)).into()
}

pub(crate) fn delete(name: &str) -> Step {
    Op::Delete(key(name)).into()
}

pub(crate) fn txn(steps: Vec<Step>) -> Txn {
    Txn { publisher: publisher(), fence: 0, leases: Vec::new(), steps }
}

pub(crate) fn collection(change: impl FnOnce(&mut Config)) -> Collection {
    let mut config = Config { assume_complete: true, ..Config::new(Epoch(1)) };
    change(&mut config);
    Collection::new(config)
}

/// What a reader holds: name, first byte of the spec and digest.
#[derive(Debug, Default)]
struct Holder {
    held: BTreeMap<String, (Bytes, Digest)>,
    staged: Vec<(String, Option<(Bytes, Digest)>)>,
    seen: Option<BTreeSet<String>>,
    events: usize,
    restarts: usize,
}

impl Holder {
    /// Reads until there is nothing more.
    fn drain(&mut self, cursor: &mut Cursor) {
        while let Some(piece) = cursor.next() {
            self.take(piece);
        }
    }

    fn take(&mut self, piece: Piece) {
        match piece {
            Piece::SnapshotBegin { .. } => self.seen = Some(BTreeSet::new()),
            Piece::Restarted => {
                self.staged.clear();
                self.restarts += 1;
            }
            Piece::SnapshotEnd(_) => {
                let seen = self.seen.take().unwrap();
                self.commit();
                self.held.retain(|name, _| seen.contains(name));
            }
            Piece::Frame(bytes) => {
                let batch = decode(&bytes);
                self.events += batch.events.len();
                for event in batch.events {
                    let digest = Digest::from_slice(&event.digest).unwrap_or_default();
                    let (name, value) = match event.change.unwrap() {
                        Change::Put(object) => (object.name, Some((object.spec.unwrap().value.into(), digest))),
                        Change::Delete(removal) => (removal.name, None),
                    };
                    if let Some(seen) = &mut self.seen {
                        if value.is_some() {
                            seen.insert(name.clone())
                        } else {
                            seen.remove(&name)
                        };
                    }
                    self.staged.push((name, value));
                }
                if batch.revision != 0 || self.seen.is_some() {
                    self.commit();
                }
            }
            _ => {}
        }
    }

    fn commit(&mut self) {
        for (name, value) in self.staged.drain(..) {
            match value {
                Some(value) => self.held.insert(name, value),
                None => self.held.remove(&name),
            };
        }
    }

    fn root(&self) -> Digest {
        self.held.values().map(|(_, digest)| *digest).collect()
    }

    fn names(&self) -> Vec<&str> {
        self.held.keys().map(String::as_str).collect()
    }
}

#[test]
fn a_transaction_with_one_failing_step_changes_nothing() {
    let store = collection(|_| {});
    store
        .commit(&txn(vec![put("a", 1, Audience::Everyone), put("b", 1, Audience::Everyone)]))
        .unwrap();
    let signal = Signal::default();
    let mut cursor = store.cursor(Scope::everything(), signal.clone());
    Holder::default().drain(&mut cursor);
    let _ = signal.poll(Waker::noop());

    let wrong = Precondition { revision: Some(Revision(7)), ..Precondition::default() };
    let failing = Step { precondition: wrong, ..delete("b") };
    let before = store.state();
    let steps = vec![put("a", 2, Audience::Everyone), put("c", 1, Audience::Everyone), failing, delete("a")];
    for at in 0..4 {
        let mut steps = steps.clone();
        steps.swap(2, at);
        steps.dedup_by_key(|step| step.op.key().clone());
        assert!(store.commit(&txn(steps)).is_err());
        assert!(Arc::ptr_eq(&before, &store.state()));
        assert!(!signal.poll(Waker::noop()), "nobody is woken");
        assert_eq!(cursor.next(), None);
    }
}

#[test]
fn a_reader_that_never_reads_ends_exact_with_at_most_one_event_per_object() {
    let store = collection(|config| config.limits.tombstones = 1000);
    let names: Vec<String> = (0..100).map(|at| format!("n{at}")).collect();
    let mut cursor = store.cursor(Scope::everything(), Signal::default());
    let mut holder = Holder::default();
    for round in 0..1000_usize {
        for part in names.chunks(20) {
            let write = |name: &String| match (round, name.len() == 2) {
                // Ten of them come and go.
                (500.., true) if round % 3 == 1 => delete(name),
                _ => put(name, u8::try_from(round % 251).unwrap(), Audience::Everyone),
            };
            store.commit(&txn(part.iter().map(write).collect())).unwrap();
        }
        if round == 10 {
            holder.drain(&mut cursor);
            holder.events = 0;
        }
    }
    holder.drain(&mut cursor);
    assert!(holder.events <= 100, "{} events", holder.events);
    let state = store.state();
    let mark = cursor.bookmark().unwrap();
    assert_eq!((mark.digest, mark.objects), (holder.root(), state.objects() as u64));
    assert_eq!(mark.revision, state.head());
}

#[test]
fn equal_subscriptions_share_the_same_bytes() {
    let store = collection(|config| config.frame_bytes = 300);
    let scopes = [agent("a0", &[("z", "1")]), agent("a1", &[("z", "1"), ("r", "x")])];
    let mut cursors: Vec<Cursor> = scopes.into_iter().map(|scope| store.cursor(scope, Signal::default())).collect();
    let zone = Audience::Selector(Selector::parse("z=1").unwrap());
    for round in 0..3 {
        let steps = (0..10).map(|at| put(&format!("n{at}"), round, zone.clone())).collect();
        store.commit(&txn(steps)).unwrap();
        let mut frames = cursors.iter_mut().map(|cursor| {
            let pieces = std::iter::from_fn(|| cursor.next());
            pieces
                .map(|piece| match piece {
                    Piece::Frame(bytes) => bytes,
                    other => panic!("{other:?}"),
                })
                .collect::<Vec<_>>()
        });
        let (ours, theirs) = (frames.next().unwrap(), frames.next().unwrap());
        assert!(ours.len() > 1, "several frames");
        assert_eq!(ours.len(), theirs.len());
        assert!(ours.iter().zip(&theirs).all(|(ours, theirs)| ours.as_ptr() == theirs.as_ptr()));
    }
}

#[test]
fn a_publish_to_one_named_agent_wakes_only_that_agent_among_10_000() {
    let store = collection(|_| {});
    let steps: Vec<Step> = (0..10_000)
        .map(|at| put(&format!("n{at}"), 0, named(&[&format!("agent-{at}")])))
        .collect();
    store.commit(&txn(steps)).unwrap();
    let mut cursors: Vec<(Cursor, Signal)> = (0..10_000)
        .map(|at| {
            let (signal, scope) = (Signal::default(), agent(&format!("agent-{at}"), &[("z", "1")]));
            (store.cursor(scope, signal.clone()), signal)
        })
        .collect();
    for (cursor, signal) in &mut cursors {
        while cursor.next().is_some() {}
        let _ = signal.poll(Waker::noop());
    }
    store.commit(&txn(vec![put("n77", 1, named(&["agent-77"]))])).unwrap();
    let raised = |cursors: &[(Cursor, Signal)]| -> Vec<usize> {
        cursors
            .iter()
            .enumerate()
            .filter(|(_, (_, signal))| signal.poll(Waker::noop()))
            .map(|(at, _)| at)
            .collect()
    };
    assert_eq!(raised(&cursors), [77]);
    // One more is named: who was named before has nothing new to see.
    store.commit(&txn(vec![put("n77", 1, named(&["agent-77", "agent-78"]))])).unwrap();
    assert_eq!(raised(&cursors), [78]);
    // It moves on: one loses it, one keeps it.
    store.commit(&txn(vec![put("n77", 1, named(&["agent-78"]))])).unwrap();
    assert_eq!(raised(&cursors), [77]);
    store.commit(&txn(vec![delete("n77")])).unwrap();
    assert_eq!(raised(&cursors), [78]);
    store.commit(&txn(vec![put("all", 1, Audience::Everyone)])).unwrap();
    assert_eq!(raised(&cursors).len(), 10_000);
}

#[test]
fn digests_that_are_kept_equal_those_that_are_computed() {
    // More objects than a lane sums up on demand, then fewer, then more again.
    let store = collection(|_| {});
    let zone = || Audience::Selector(Selector::parse("z=1").unwrap());
    let mut scopes = vec![agent("a0", &[("z", "1")]), agent("a0", &[]), Scope::everything()];
    for round in 0..12_usize {
        let steps = (0..900_usize).filter(|at| (at * 7 + round) % 5 < 2).map(|at| {
            let name = format!("n{at}");
            match (at + round) % 7 {
                0 | 1 => delete(&name),
                2 => put(&name, u8::try_from(round).unwrap(), named(&["a0"])),
                3 => put(&name, u8::try_from(round).unwrap(), zone()),
                _ => put(&name, u8::try_from(round).unwrap(), Audience::Everyone),
            }
        });
        store.commit(&txn(steps.collect())).unwrap();
        let state = store.state();
        for scope in &mut scopes {
            let mut buckets = Buckets::default();
            let records = state.kinds().flat_map(|(_, kind)| kind.all().iter(None));
            let seen: Vec<_> = records.filter(|record| scope.admits(record, |_| true)).collect();
            seen.iter().for_each(|record| buckets.toggle(record.leaf(scope.is_observer())));
            let root: Digest = seen.iter().map(|record| record.leaf(scope.is_observer())).collect();
            assert_eq!(root, buckets.root());

            let cursor = || store.cursor(scope.clone(), Signal::default());
            assert!(cursor().is_equal(root), "the root of {} objects", seen.len());
            let begin = |offer: &Buckets| match cursor().begin_snapshot(Some(offer), Vec::new()) {
                Piece::SnapshotBegin { buckets, objects, .. } => (buckets, objects),
                other => panic!("{other:?}"),
            };
            assert_eq!(begin(&buckets), (BucketSet::NONE, 0), "all buckets are equal");
            let missing = seen[round % seen.len()].leaf(scope.is_observer());
            buckets.toggle(missing);
            let (differing, objects) = begin(&buckets);
            assert_eq!((differing.len(), differing.contains(missing.bucket())), (1, true));
            let inside = seen.iter().filter(|record| record.leaf(false).bucket() == missing.bucket()).count();
            assert_eq!(objects, inside as u64);
        }
    }
}

/// A change of scope whose group was revoked went on with the changes of the new scope only: the difference was lost.
#[test]
fn a_change_of_scope_that_is_revoked_still_leads_to_the_new_scope() {
    let store = collection(|config| (config.frame_bytes, config.group_bytes) = (80, 512));
    let steps = (0..6).map(|at| put(&format!("n{at}"), 1, if at < 3 { named(&["a0"]) } else { named(&["a1"]) }));
    store.commit(&txn(steps.collect())).unwrap();
    let (mut cursor, mut holder) = (store.cursor(agent("a0", &[]), Signal::default()), Holder::default());
    holder.drain(&mut cursor);
    cursor.rescope(Scope::everything());
    holder.take(cursor.next().unwrap());
    holder.take(cursor.next().unwrap());
    // It stalls while others take all that groups may have.
    for _ in 0..2 {
        let _ = store.cursor(Scope::everything(), Signal::default()).next();
    }
    holder.drain(&mut cursor);
    assert_eq!(holder.restarts, 1);
    assert_eq!(holder.names(), ["n0", "n1", "n2", "n3", "n4", "n5"]);
}

/// Two parts of one reader, each larger than all groups may be, revoked each other for ever.
#[test]
fn a_reader_of_two_large_parts_is_not_in_its_own_way() {
    let store = collection(|config| (config.frame_bytes, config.group_bytes) = (80, 512));
    let steps =
        (0..20).map(|at| put(&format!("n{at}"), 1, if at % 2 == 0 { named(&["a0"]) } else { Audience::Everyone }));
    store.commit(&txn(steps.collect())).unwrap();
    let (mut cursor, mut holder) = (store.cursor(agent("a0", &[]), Signal::default()), Holder::default());
    holder.drain(&mut cursor);
    assert_eq!((holder.held.len(), holder.restarts), (20, 0));
}

/// A group that was revoked, but whose reader had not noticed yet, still counted: every new group revoked all others.
#[test]
fn a_reader_that_is_stalled_in_a_revoked_group_takes_nothing_from_others() {
    let store = collection(|config| (config.frame_bytes, config.group_bytes) = (80, 4096));
    let name = |at: usize| format!("n{at:02}");
    store
        .commit(&txn((0..25).map(|at| put(&name(at), 1, Audience::Everyone)).collect()))
        .unwrap();
    let scope = |at: usize| agent(&format!("a{at}"), &[]);
    let mut stalled = store.cursor(scope(0), Signal::default());
    let _ = stalled.next();
    store.commit(&txn(vec![put(&name(0), 2, Audience::Everyone)])).unwrap();
    let mut second = store.cursor(Scope::everything(), Signal::default());
    let _ = second.next();
    let mut second_holder = Holder::default();
    store.commit(&txn((1..5).map(|at| put(&name(at), 2, named(&["a1"]))).collect())).unwrap();
    let (mut third, mut third_holder) = (store.cursor(agent("a1", &[]), Signal::default()), Holder::default());
    third.resume(Revision(2), None);
    third_holder.drain(&mut third);
    second_holder.drain(&mut second);
    assert_eq!((second_holder.restarts, third_holder.restarts), (0, 0));
    assert_eq!(stalled.next(), Some(Piece::Restarted));
}

/// Two readers, each with a group of more than half of what all groups may have, took theirs from one another for ever.
#[test]
fn readers_that_read_on_do_not_take_their_groups_from_one_another() {
    let store = collection(|config| (config.frame_bytes, config.group_bytes) = (80, 512));
    let steps = (0..40).map(|at| put(&format!("n{at}"), 1, named(&[if at % 2 == 0 { "a0" } else { "a1" }])));
    store.commit(&txn(steps.collect())).unwrap();
    let mut readers = ["a0", "a1"].map(|name| (store.cursor(agent(name, &[]), Signal::default()), Holder::default()));
    for _ in 0..100 {
        for (cursor, holder) in &mut readers {
            cursor.next().into_iter().for_each(|piece| holder.take(piece));
        }
    }
    for (_, holder) in &readers {
        assert_eq!((holder.held.len(), holder.restarts), (20, 0));
    }
}

/// A publisher may sync its kinds one after the other. After the first, it counted as back with all it has, and a reader
/// of both kinds lost its objects of the second as soon as somebody else had completed that one.
#[test]
fn a_reader_waits_for_each_kind_of_each_publisher_that_it_holds_objects_of() {
    let store = Collection::new(Config::new(Epoch(1)));
    let kinds = ["t.v1.Alpha", "t.v1.Beta"].map(|kind| Kind::new(kind).unwrap());
    let [p0, p1] = ["p0", "p1"].map(|name| PublisherId::new(name).unwrap());
    let origins = kinds.clone().map(|kind| Origin { manager: p0.clone(), kind });
    let sync = |publisher: &PublisherId, kind: &Kind| {
        let id = store.begin_sync(publisher, 0, BTreeSet::from([kind.clone()])).unwrap();
        store.end_sync(&id).unwrap();
    };
    let both = Scope { kinds: Some(Arc::new(kinds.iter().cloned().collect())), ..Scope::everything() };
    let readers = [both, Scope::everything()].map(|scope| store.cursor(scope, Signal::default()));
    let settled = |origins: &[Origin]| readers.each_ref().map(|reader| reader.is_settled(origins));
    sync(&p0, &kinds[0]);
    assert_eq!(settled(&origins), [false; 2]);
    sync(&p1, &kinds[1]);
    assert_eq!(settled(&[]), [true; 2], "who holds nothing waits for nobody else");
    assert_eq!(settled(&origins), [false; 2], "p0 has not said yet what it has of the second kind");
    sync(&p0, &kinds[1]);
    assert_eq!(settled(&origins), [true; 2]);
}

/// A kind may be complete as soon as it is there: in a durable collection if nobody syncs it, and everywhere if it is one of
/// nimbus itself. Only those were woken whom its first object was for; the snapshots of all others stayed open.
#[test]
fn whoever_waits_for_a_kind_is_woken_when_it_is_complete_although_nothing_of_it_is_for_them() {
    fn check(store: &Collection, scopes: &[Scope], write: impl FnOnce(&Collection), ends: bool) {
        let waiting = scopes.iter().map(|scope| {
            let signal = Signal::default();
            let mut cursor = store.cursor(scope.clone(), signal.clone());
            cursor.begin_snapshot(None, Vec::new());
            assert_eq!(cursor.next(), None, "{scope:?}: the snapshot cannot end");
            let _ = signal.poll(Waker::noop());
            (scope, cursor, signal)
        });
        let waiting: Vec<_> = waiting.collect();
        write(store);
        for (scope, mut cursor, signal) in waiting {
            assert_eq!(signal.poll(Waker::noop()), ends, "{scope:?}: it is woken if the snapshot can end");
            assert_eq!(matches!(cursor.next(), Some(Piece::SnapshotEnd(_))), ends, "{scope:?}: the snapshot ends");
        }
    }
    let own = Kind::new("nimbus.v1.Acknowledged").unwrap();
    let put_to = |store: &Collection, kind: &Kind, name: &str| {
        let key = ObjectKey::new(kind.clone(), "", name).unwrap();
        let draft = Draft { key, ..draft(name, 1, named(&["me"])) };
        store.commit(&txn(vec![Op::Upsert(draft).into()])).unwrap();
    };
    let sync_of = |store: &Collection, kind: &Kind| {
        store.begin_sync(&publisher(), 0, BTreeSet::from([kind.clone()])).unwrap();
    };
    let filter = v1::Filter { names: vec!["other".into()], ..v1::Filter::default() };
    let filter = Filter::compile(Some(&filter)).unwrap().map(Arc::new);
    let all = [agent("other", &[]), Scope { filter, ..Scope::everything() }];
    let kinds = Some(Arc::new(BTreeSet::from([kind()])));
    let of_kind = all.clone().map(|scope| Scope { kinds: kinds.clone(), ..scope });

    let memory = || Collection::new(Config::new(Epoch(1)));
    check(&memory(), &[all.clone(), of_kind.clone()].concat(), |store| put_to(store, &kind(), "one"), false);
    check(&memory(), &all, |store| put_to(store, &own, "one"), true);
    check(&memory(), &all, |store| sync_of(store, &own), true);
    check(&memory(), &all, |store| sync_of(store, &kind()), false);

    let directory = TempDir::new().unwrap();
    let durable = |name| Collection::open(&directory.path().join(name), Config::new(Epoch(1))).unwrap();
    check(&durable("a"), &[all.clone(), of_kind.clone()].concat(), |store| put_to(store, &kind(), "one"), true);
    let store = durable("b");
    put_to(&store, &own, "one");
    check(&store, &of_kind, |store| put_to(store, &own, "two"), false);
    check(&store, &of_kind, |store| put_to(store, &kind(), "one"), true);
    check(&durable("c"), &all, |store| sync_of(store, &kind()), false);
}

/// The last change of a feed stays the same when an object ends and its tombstone is forgotten before anybody looks; a
/// group that was kept under it was sent again.
#[test]
fn a_group_is_not_sent_again_after_a_tombstone_that_nobody_saw() {
    let store = collection(|config| config.limits.tombstones = 0);
    store.commit(&txn(vec![put("a", 1, named(&["a0"]))])).unwrap();
    let snapshot = |holder: &mut Holder| {
        let mut cursor = store.cursor(agent("a0", &[]), Signal::default());
        holder.take(cursor.begin_snapshot(None, Vec::new()));
        holder.drain(&mut cursor);
        cursor
    };
    let mut holder = Holder::default();
    let _first = snapshot(&mut holder);
    assert_eq!(holder.names(), ["a"]);
    store.commit(&txn(vec![delete("a")])).unwrap();
    let _second = snapshot(&mut holder);
    assert_eq!(holder.names(), Vec::<&str>::new());
}

/// A reader that offers no digest was taken for one that holds nothing.
#[test]
fn a_reader_that_resumed_without_a_digest_and_fell_behind_the_horizon_gets_a_snapshot() {
    let store = collection(|_| {});
    store.commit(&txn(vec![put("a", 1, Audience::Everyone)])).unwrap();
    let (mut cursor, mut holder) = (store.cursor(agent("a0", &[]), Signal::default()), Holder::default());
    holder.drain(&mut cursor);
    let mut again = store.cursor(agent("a0", &[]), Signal::default());
    store.commit(&txn(vec![delete("a")])).unwrap();
    assert!(again.resume(Revision(1), None));
    store.commit(&txn(vec![put("b", 1, Audience::Everyone)])).unwrap();
    store.commit(&txn(vec![delete("b")])).unwrap();
    store.trim(store.state().head());
    holder.drain(&mut again);
    assert_eq!(holder.names(), Vec::<&str>::new());
}

/// An instance that was replaced ended its sync, and swept what the newer instance was about to name.
#[test]
fn a_fenced_publisher_does_not_end_its_sync() {
    let store = collection(|_| {});
    store
        .commit(&txn(vec![put("a", 1, Audience::Everyone), put("b", 1, Audience::Everyone)]))
        .unwrap();
    let sync = store.begin_sync(&publisher(), 1, BTreeSet::from([kind()])).unwrap();
    store.commit(&Txn { fence: 2, ..txn(vec![put("a", 2, Audience::Everyone)]) }).unwrap();
    assert!(store.end_sync(&sync).is_err());
    assert_eq!(store.state().objects(), 2);
}

/// F65: what somebody keeps for their own use, beside what they publish, must not go when that is synced: objects of
/// another manager, and of kinds that the sync does not name.
#[test]
fn a_sweep_takes_only_what_its_publisher_has_published_of_the_kinds_that_it_names() {
    let store = collection(|_| {});
    let internal = Kind::new("test.v1.Internal").unwrap();
    let mut own = draft("own", 1, Audience::Everyone);
    (own.key, own.spec) = (ObjectKey::new(internal.clone(), "", "own").unwrap(), spec(&internal, 1, 8));
    store.commit(&txn(vec![put("a", 1, Audience::Everyone), Op::Upsert(own).into()])).unwrap();
    let kit = PublisherId::new("kit").unwrap();
    let of_kit = txn(vec![put("kept", 1, Audience::Everyone)]);
    store.commit(&Txn { publisher: kit, ..of_kit }).unwrap();

    let sync = store.begin_sync(&publisher(), 0, BTreeSet::from([kind()])).unwrap();
    store.end_sync(&sync).unwrap();
    let state = store.state();
    assert!(state.get(&key("a")).is_none(), "it was not named");
    assert!(state.get(&key("kept")).is_some(), "it is somebody else's");
    assert!(state.get(&ObjectKey::new(internal, "", "own").unwrap()).is_some(), "it is of another kind");
}

/// A filter was written without quotes: one test on a value with a space looked like two tests.
#[test]
fn filters_that_look_alike_are_different_scopes() {
    let hash = |fields: &[&str]| {
        let fields = fields.iter().map(ToString::to_string).collect();
        let wire = nimbus_wire::v1::Filter { fields, ..Default::default() };
        let filter = nimbus_store::Filter::compile(Some(&wire)).unwrap().map(Arc::new);
        Scope { filter, ..Scope::everything() }.hash()
    };
    assert_ne!(hash(&["spec.a=1", "spec.b=2"]), hash(&["spec.a=1 spec.b=2"]));
    assert_eq!(hash(&["spec.a=1", "spec.b=2"]), hash(&["spec.b=2", "spec.a = 1"]));
}

/// An object came and went after the last change that was still to be seen: the commit named that change, but the
/// reader held what there was later.
#[test]
fn a_group_below_the_horizon_leads_to_the_head() {
    let store = collection(|config| config.limits.tombstones = 0);
    let zone = || Audience::Selector(Selector::parse("z=1").unwrap());
    store.commit(&txn(vec![put("a", 1, Audience::Everyone)])).unwrap();
    let (mut cursor, mut holder) = (store.cursor(agent("a0", &[("z", "1")]), Signal::default()), Holder::default());
    holder.drain(&mut cursor);
    store.commit(&txn(vec![put("a", 1, zone()), put("b", 1, Audience::Everyone)])).unwrap();
    store.commit(&txn(vec![delete("b")])).unwrap();
    let frames = std::iter::from_fn(|| cursor.next()).filter_map(|piece| match piece {
        Piece::Frame(bytes) => Some(decode(&bytes).revision),
        _ => None,
    });
    assert_eq!(frames.last(), Some(3), "at 2 there was one more");
}

#[test]
fn readers_in_other_threads_end_exact_while_a_writer_goes_on() {
    const ROUNDS: usize = 1500;
    let store = collection(|config| {
        (config.frame_bytes, config.group_bytes) = (400, 64 << 10);
        config.limits = Limits { tombstones: 40, idle_filters: 0, ..Limits::default() };
    });
    let done = AtomicBool::new(false);
    let write = {
        let (store, done) = (store.clone(), &done);
        move || {
            let mut dice = 7_u64;
            for round in 0..ROUNDS {
                let steps = (0..3).map(|part| {
                    dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let (at, choice) = ((dice >> 33) % 10 + part * 10, (dice >> 50) % 8);
                    let (name, first) = (format!("n{at}"), u8::try_from(round % 200).unwrap());
                    match choice {
                        0 | 1 => delete(&name),
                        2 => put(&name, first, named(&["a0", "a1"])),
                        3 => put(&name, first, named(&["a1"])),
                        4 => put(&name, first, Audience::Selector(Selector::parse("z=1").unwrap())),
                        _ => {
                            let mut draft = draft(&name, first, Audience::Everyone);
                            draft.refs = Arc::new([Reference::strong(key(&format!("n{}", at + 10)))]);
                            Op::Upsert(draft).into()
                        }
                    }
                });
                store.commit(&txn(steps.collect())).unwrap();
            }
            done.store(true, Ordering::Release);
        }
    };
    let read = |scopes: Vec<Scope>| {
        let (store, done) = (store.clone(), &done);
        move || {
            for lap in 0.. {
                let scope = scopes[lap % scopes.len()].clone();
                let (mut cursor, mut holder) = (store.cursor(scope, Signal::default()), Holder::default());
                holder.take(cursor.begin_snapshot(None, Vec::new()));
                let until = store.state().head().0 + 100;
                while cursor.position().0 < until {
                    if let Some(piece) = cursor.next() {
                        holder.take(piece);
                    } else if let Some(mark) = cursor.bookmark() {
                        assert_eq!(mark.digest, holder.root(), "at {}", mark.revision);
                    }
                    if done.load(Ordering::Acquire) {
                        holder.drain(&mut cursor);
                        let mark = cursor.bookmark().unwrap();
                        assert_eq!((mark.digest, mark.objects), (holder.root(), holder.held.len() as u64));
                        return;
                    }
                }
            }
        }
    };
    let filter = |text: &str| {
        let wire = nimbus_wire::v1::Filter { names: vec![text.to_owned()], ..Default::default() };
        nimbus_store::Filter::compile(Some(&wire)).unwrap().map(Arc::new)
    };
    let readers = vec![
        read(vec![Scope::everything(), agent("a1", &[("z", "1")])]),
        read(vec![agent("a0", &[("z", "1")]), agent("a1", &[])]),
        read(
            (0..10)
                .map(|at| Scope { filter: filter(&format!("n{at}")), ..agent("a1", &[("z", "1")]) })
                .collect(),
        ),
    ];
    thread::scope(|scope| {
        scope.spawn(write);
        readers.into_iter().for_each(|reader| {
            scope.spawn(reader);
        });
    });
}
