//! Threads that take turns in every way that chance comes up with: nobody is told of what cannot be seen yet, and nobody who
//! waits is forgotten.
//!
//! `cargo nextest run -p nimbus-store --features shuttle --lib interleavings`. A schedule that fails is printed, and
//! `shuttle::replay` repeats it. A thread that is never woken is found as a deadlock.

use std::{future::poll_fn, path::Path, sync::Arc, task::Poll};

use nimbus_core::{AgentId, Epoch, Labels, Revision};
use nimbus_wire::v1;
use shuttle::{future::block_on, rand::Rng as _, thread};

use crate::{
    collection::{Collection, Config},
    core::Core,
    cursor::{Cursor, Piece},
    durable::{
        Committer, Lost, Writing,
        tests::{agents, draft, key, txn},
    },
    filter::Filter,
    interest::Signal,
    limits::Limits,
    queue::Queue,
    scope::{Scope, Viewer},
    state::State,
    ticket::Ticket,
    txn::{Op, Txn},
    unsaved::Changes,
    writer::Writer,
};

/// A disk that takes a moment, and fails at the write of this number.
struct Disk {
    fails_at: Option<usize>,
    writes: usize,
}

/// Schedules that are tried of each scene.
const SCHEDULES: usize = 300;

/// Whom everything is for.
const AGENT: &str = "a";

// === impl Disk ===

impl Writing for Disk {
    fn write(&mut self, _: State, _: Changes, _: usize) -> Result<(), Lost> {
        thread::yield_now();
        self.writes += 1;
        if self.fails_at == Some(self.writes) {
            return Err(Lost::for_test(Path::new("disk"), "it is full"));
        }
        Ok(())
    }

    fn close(&mut self, _: &State) {}
}

/// Tries schedules at random, and such with few changes of turn, which find what takes an unlucky moment.
fn try_out(scene: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(scene.clone(), SCHEDULES);
    shuttle::check_pct(scene, SCHEDULES, 3);
}

fn config() -> Config {
    Config { assume_complete: true, ..Config::new(Epoch(7)) }
}

fn durable(fails_at: Option<usize>) -> Collection {
    let Config { epoch, fields, last_token, .. } = config();
    let mut writer = Writer::new(Limits::default(), fields, last_token);
    writer.queue = Some(Queue::default());
    let core = Arc::new(Core::new(State::new(epoch, true), writer));
    let committer = Committer::writing_to(core.clone(), Disk { fails_at, writes: 0 });
    Collection::from_parts(core, committer)
}

fn put(name: &str, value: u64) -> Txn {
    txn(vec![Op::Upsert(draft(name, value, agents(&[AGENT]))).into()])
}

fn scope(filter: Option<Arc<Filter>>) -> Scope {
    let viewer = Viewer::Agent { id: AgentId::new(AGENT).unwrap(), labels: Labels::default() };
    Scope { kinds: None, filter, viewer }
}

fn filter(name: &str) -> Arc<Filter> {
    let filter = v1::Filter { names: vec![name.to_owned()], ..v1::Filter::default() };
    Arc::new(Filter::compile(Some(&filter)).unwrap().unwrap())
}

/// Reads as a stream does, until it has seen everything up to `last`.
fn read_until(cursor: &mut Cursor, signal: &Signal, last: Revision) {
    block_on(poll_fn(|cx| {
        signal.poll(cx.waker());
        while let Some(piece) = cursor.next() {
            assert!(matches!(piece, Piece::Frame(_) | Piece::SnapshotEnd(_)), "{piece:?}");
        }
        if cursor.last_read() >= last { Poll::Ready(()) } else { Poll::Pending }
    }));
    assert!(cursor.last_read() <= last);
}

fn reader(store: &Collection, filter: Option<Arc<Filter>>, last: Revision) -> impl FnOnce() + Send + 'static {
    let store = store.clone();
    move || {
        let signal = Signal::default();
        let mut cursor = store.cursor(scope(filter), signal.clone());
        drop(cursor.begin_snapshot(None, Vec::new()));
        read_until(&mut cursor, &signal, last);
    }
}

#[test]
fn whoever_waits_is_woken_for_everything_that_is_written() {
    try_out(|| {
        let store = Collection::new(config());
        let readers =
            [thread::spawn(reader(&store, None, Revision(4))), thread::spawn(reader(&store, None, Revision(4)))];
        let writers = ["one", "two"].map(|name| {
            let store = store.clone();
            thread::spawn(move || {
                for value in 0..2 {
                    let committed = store.commit(&put(name, value)).unwrap();
                    assert!(store.state().head() >= committed.revision, "it was acknowledged before it could be seen");
                }
            })
        });
        writers.into_iter().chain(readers).for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn what_is_acknowledged_can_be_seen_and_whoever_waits_for_it_is_told() {
    try_out(|| {
        let store = durable(None);
        let through = filter("one");
        let readers =
            [thread::spawn(reader(&store, None, Revision(4))), thread::spawn(reader(&store, None, Revision(4)))];
        let writers = ["one", "two"].map(|name| {
            let store = store.clone();
            thread::spawn(move || {
                for value in 0..2 {
                    let ticket = store.submit(&put(name, value)).unwrap();
                    let committed = settled(ticket).unwrap();
                    assert!(store.state().head() >= committed.revision, "it was acknowledged before it could be seen");
                    // What is there already is settled with what it was judged by.
                    let same = settled(store.submit(&put(name, value)).unwrap()).unwrap();
                    assert!(same.revision >= committed.revision && store.state().head() >= same.revision);
                }
            })
        });
        // A view of a filter is built while states wait for the disk.
        let last = {
            let signal = Signal::default();
            let mut cursor = store.cursor(scope(Some(through)), signal.clone());
            drop(cursor.begin_snapshot(None, Vec::new()));
            writers.into_iter().for_each(|thread| thread.join().unwrap());
            let last = store.state().get(&key("one")).unwrap().revision();
            read_until(&mut cursor, &signal, last);
            last
        };
        assert!(last >= Revision(2));
        readers.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn when_the_disk_fails_everybody_learns_it_and_nobody_waits_for_ever() {
    try_out(|| {
        let fails_at = shuttle::rand::thread_rng().gen_range(1..4);
        let store = durable(Some(fails_at));
        let writers = ["one", "two"].map(|name| {
            let store = store.clone();
            thread::spawn(move || {
                let mut acknowledged = Revision::ZERO;
                for value in 0..3 {
                    match store.submit(&put(name, value)).map(settled) {
                        Ok(Ok(committed)) => acknowledged = committed.revision,
                        Ok(Err(_)) | Err(_) => break,
                    }
                }
                assert!(store.state().head() >= acknowledged);
                acknowledged
            })
        });
        let acknowledged = writers.map(|thread| thread.join().unwrap());
        assert!(acknowledged.iter().all(|revision| store.state().head() >= *revision));
        // The thread of the disk ends, or this waits for ever.
        drop(store);
    });
}

/// Waits as an asynchronous caller, or as a thread.
fn settled<T>(ticket: Ticket<T>) -> Result<T, Lost> {
    if shuttle::rand::thread_rng().r#gen() { block_on(ticket) } else { ticket.wait() }
}
