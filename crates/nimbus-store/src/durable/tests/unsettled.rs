//! What is accepted and not durable yet.

use std::{
    future::Future as _,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};

use nimbus_core::{Audience, Labels, Revision};
use nimbus_wire::v1;

use crate::{
    collection::{Collection, Config},
    cursor::{Cursor, Piece},
    durable::tests::{Place, config, contents, delete, disk::TestDisk, draft, place, put, spec, txn},
    filter::Filter,
    interest::Signal,
    limits::Limits,
    scope::{Scope, Viewer},
    txn::{Draft, Op, Refused, Step},
};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn stalled(limits: Limits) -> (Place, TestDisk, Collection) {
    let (place, disk) = (place(), TestDisk::default());
    let store = Collection::open_on(&disk, &place.path, Config { limits, assume_complete: true, ..config() }).unwrap();
    store.commit(&txn(vec![put("first", 1)])).unwrap();
    disk.stall(true);
    (place, disk, store)
}

#[test]
fn nothing_is_shown_before_it_is_durable_and_everything_builds_on_it() {
    let (_place, disk, store) = stalled(Limits::default());
    let first = store.submit(&txn(vec![put("a", 1)])).unwrap();
    let second = store.submit(&txn(vec![put("b", 1), delete("a")])).unwrap();
    let unchanged = store.submit(&txn(vec![put("b", 1)])).unwrap();
    assert_eq!(contents(&store).len(), 1);
    assert_eq!(store.plan(&txn(vec![put("b", 1)])).unwrap().revision, Revision(3));
    let mut unchanged = pin!(unchanged);
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    assert!(unchanged.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(unchanged.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());

    disk.stall(false);
    assert_eq!(first.wait().unwrap().revision, Revision(2));
    assert_eq!(second.wait().unwrap().revision, Revision(3));
    let names: Vec<_> = contents(&store).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["b", "first"]);
    // The committer tells those who wait one after the other.
    while count.0.load(Relaxed) == 0 {
        std::thread::yield_now();
    }
    let Poll::Ready(Ok(committed)) = unchanged.poll(&mut Context::from_waker(&waker)) else { panic!("it is settled") };
    assert_eq!(committed.revision, Revision(3));
    assert_eq!(count.0.load(Relaxed), 1);
}

#[test]
fn what_gathers_is_written_at_once() {
    let (_place, disk, store) = stalled(Limits::default());
    let before = disk.syncs();
    let tickets: Vec<_> = (0..1000).map(|at| store.submit(&txn(vec![put("a", at)])).unwrap()).collect();
    disk.stall(false);
    tickets.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
    // The first one alone, then all others.
    assert!(disk.syncs() - before <= 6, "{}", disk.syncs() - before);
    assert_eq!(store.state().head(), Revision(1001));
}

#[test]
fn writers_are_refused_while_the_disk_is_too_far_behind() {
    let (_place, disk, store) = stalled(Limits { unsettled: 3, ..Limits::default() });
    let tickets: Vec<_> = (0..3).map(|at| store.submit(&txn(vec![put("a", at)])).unwrap()).collect();
    let refused = store.submit(&txn(vec![put("a", 9)])).unwrap_err();
    assert_eq!(refused, Refused::Full { limit: "unsettled", max: 3 });
    disk.stall(false);
    tickets.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
    store.commit(&txn(vec![put("a", 9)])).unwrap();

    let (_place, disk, store) = stalled(Limits { unsettled_bytes: 100, ..Limits::default() });
    let large = Op::Upsert(Draft { spec: spec(1, 1000), ..draft("large", 1, Audience::Everyone) });
    let ticket = store.submit(&txn(vec![large.into()])).unwrap();
    let refused = store.submit(&txn(vec![put("a", 9)])).unwrap_err();
    assert_eq!(refused, Refused::Full { limit: "unsettled_bytes", max: 100 });
    disk.stall(false);
    ticket.wait().unwrap();
}

fn labelled(name: &str, value: u64, app: &str) -> Step {
    let labels = Labels::new(&[("app".to_owned(), app.to_owned())].into()).unwrap();
    Op::Upsert(Draft { labels, ..draft(name, value, Audience::Everyone) }).into()
}

/// How many puts and removals a reader is sent.
fn drain(cursor: &mut Cursor) -> (usize, usize) {
    let (mut puts, mut removals) = (0, 0);
    while let Some(piece) = cursor.next() {
        if let Piece::Frame(bytes) = piece {
            let response = <v1::Frame as prost::Message>::decode(&bytes[5..]).unwrap();
            let Some(v1::frame::Frame::Batch(batch)) = response.frame else { continue };
            for event in batch.events {
                match event.change.unwrap() {
                    v1::event::Change::Put(_) => puts += 1,
                    v1::event::Change::Delete(_) => removals += 1,
                }
            }
        }
    }
    (puts, removals)
}

/// A reader whose filter nobody used before comes while writes wait for the disk: it sees what is durable at once, and
/// is woken and told of the rest.
#[test]
fn a_new_filter_waits_for_no_disk_and_misses_nothing() {
    let (_place, disk, store) = stalled(Limits::default());
    disk.stall(false);
    let first = ["gone", "moved", "kept"].map(|name| labelled(name, 1, "web"));
    store.commit(&txn(first.into_iter().collect())).unwrap();
    disk.stall(true);
    // One of them is being written, the others gather.
    let tickets = [
        store.submit(&txn(vec![delete("gone")])).unwrap(),
        store.submit(&txn(vec![labelled("moved", 2, "api")])).unwrap(),
        store.submit(&txn(vec![labelled("new", 1, "web"), labelled("other", 1, "api")])).unwrap(),
    ];
    let filter = v1::Filter { selector: "app=web".into(), ..v1::Filter::default() };
    let filter = Filter::compile(Some(&filter)).unwrap().map(Arc::new);
    let (signal, waker) = (Signal::default(), Waker::noop());
    let scope = Scope { kinds: None, filter, viewer: Viewer::Observer };
    let mut cursor = store.cursor(scope, signal.clone());
    cursor.begin_snapshot(None, Vec::new());
    assert_eq!(drain(&mut cursor), (3, 0));
    signal.poll(waker);
    disk.stall(false);
    let (mut puts, mut removals) = (0, 0);
    for ticket in tickets {
        ticket.wait().unwrap();
        if signal.poll(waker) {
            let (more_puts, more_removals) = drain(&mut cursor);
            (puts, removals) = (puts + more_puts, removals + more_removals);
        }
    }
    assert_eq!((puts, removals), (1, 2));
}

/// A list showed a lease that was being written. The bus was killed, and gave the same token to somebody else.
#[test]
fn a_lease_is_not_listed_before_it_is_durable() {
    let (_place, disk, store) = stalled(Limits::default());
    #[allow(clippy::disallowed_methods, reason = "there is no other way to make one; it stands for zero")]
    let now = Instant::now();
    let acquired = store.submit_acquire("leader", "a", Duration::from_secs(60), now).unwrap();
    let mut listed = pin!(store.leases("", now));
    assert!(listed.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    disk.stall(false);
    assert_eq!(acquired.wait().unwrap().lease.token, 1);
    let Poll::Ready(Ok(leases)) = listed.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("it is durable")
    };
    assert_eq!(leases.len(), 1);
}
