//! A disk that refuses writes.

use std::collections::BTreeSet;

use bytes::Bytes;
use nimbus_core::Revision;

use crate::{
    collection::Collection,
    durable::tests::{config, contents, disk::TestDisk, kind, open, place, publisher, put, txn},
    txn::Refused,
};

#[test]
fn when_the_disk_fails_readers_go_on_and_writers_are_refused() {
    let (place, disk) = (place(), TestDisk::default());
    let store = Collection::open_on(&disk, &place.path, config()).unwrap();
    store.commit(&txn(vec![put("a", 1)])).unwrap();
    let sync = store.begin_sync(&publisher("p"), 0, BTreeSet::from([kind()])).unwrap();
    let before = contents(&store);
    disk.fail();

    let ticket = store.submit(&txn(vec![put("a", 2)])).unwrap();
    let lost = ticket.wait().unwrap_err();
    assert!(lost.to_string().contains("the disk is broken") && lost.to_string().contains("hint"), "{lost}");
    assert_eq!(store.failure().as_deref(), Some(&lost));
    assert_eq!(contents(&store), before);
    assert_eq!(store.state().head(), Revision(1));
    let refused = |refused: Refused| assert_eq!(refused, Refused::Lost(lost.clone()));
    refused(store.commit(&txn(vec![put("b", 1)])).unwrap_err());
    refused(store.plan(&txn(vec![put("b", 1)])).unwrap_err());
    refused(store.sync_items(&sync, Vec::new()).unwrap_err());
    refused(store.end_sync(&sync).unwrap_err());
    refused(store.begin_sync(&publisher("q"), 0, BTreeSet::new()).unwrap_err());
    assert_eq!(store.set_extra("name", Some(Bytes::from_static(b"value"))).wait(), Err(lost.clone()));
    assert_eq!(store.extras(""), Vec::new());
    store.trim(Revision(1));
    assert_eq!(store.state().horizon(), Revision::ZERO);
    assert_eq!(contents(&store), before);

    drop(store);
    let store = open(&place).unwrap();
    assert_eq!(contents(&store), before);
    assert_eq!(store.failure(), None);
}

#[test]
fn all_that_waits_for_a_disk_that_fails_is_told() {
    let (place, disk) = (place(), TestDisk::default());
    let store = Collection::open_on(&disk, &place.path, config()).unwrap();
    disk.stall(true);
    let tickets: Vec<_> = (0..20).map(|at| store.submit(&txn(vec![put("a", at)])).unwrap()).collect();
    // It changes nothing compared with what is not durable.
    let unchanged = store.submit(&txn(vec![put("a", 19)])).unwrap();
    disk.fail();
    disk.stall(false);
    for ticket in tickets.into_iter().chain([unchanged]) {
        assert!(ticket.wait().is_err());
    }
    assert_eq!(contents(&store), []);
}
