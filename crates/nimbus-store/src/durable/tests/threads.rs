//! Many threads at once.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use nimbus_core::Revision;

use crate::durable::tests::{contents, key, open, place, put, spec, txn};

#[test]
fn sixteen_writers_lose_nothing_and_readers_see_revisions_only_rise() {
    const WRITERS: u64 = 16;
    const ROUNDS: u64 = 50;
    let place = place();
    let store = open(&place).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut last = (Revision::ZERO, 0);
            while !done.load(Relaxed) {
                let state = store.state();
                assert!((state.head(), state.version()) >= last, "a reader goes back");
                last = (state.head(), state.version());
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let store = &store;
                scope.spawn(move || {
                    for round in 1..=ROUNDS {
                        let name = format!("object-{writer}");
                        let committed = store.commit(&txn(vec![put(&name, round)])).unwrap();
                        let state = store.state();
                        assert!(state.head() >= committed.revision, "it is visible");
                        assert_eq!(state.get(&key(&name)).unwrap().spec(), spec(round, 8));
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Relaxed);
        reader.join().unwrap();
    });
    assert_eq!(store.state().head(), Revision(WRITERS * ROUNDS));
    let before = contents(&store);
    drop(store);
    let store = open(&place).unwrap();
    assert_eq!(contents(&store), before);
    assert_eq!(store.state().head(), Revision(WRITERS * ROUNDS));
}

#[test]
fn what_was_submitted_is_written_although_nobody_waits() {
    let place = place();
    let store = open(&place).unwrap();
    let tickets: Vec<_> = (0..100)
        .map(|at| store.submit(&txn(vec![put(&format!("object-{at}"), at)])).unwrap())
        .collect();
    drop(store);
    tickets.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
    assert_eq!(contents(&open(&place).unwrap()).len(), 100);
}
