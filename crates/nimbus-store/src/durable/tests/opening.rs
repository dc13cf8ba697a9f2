//! Paths that are not what they should be.

use std::{fs, io};

use bytes::Bytes;
use nimbus_core::{Epoch, Revision};
use nimbus_disk::beside;
use redb::ReadableTable as _;

use crate::{
    collection::{Collection, Config},
    durable::{
        error::OpenError,
        file::open_database,
        meta::{FORMAT, Meta},
        table::{META, META_KEY, Table},
        tests::{Place, config, contents, open, place, put, txn},
    },
};

fn refusal(place: &Place) -> OpenError {
    let error = open(place).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&*place.path.to_string_lossy()) && text.contains("hint"), "{text}");
    error
}

fn written() -> Place {
    let place = place();
    let store = open(&place).unwrap();
    store.commit(&txn(vec![put("a", 1), put("b", 2)])).unwrap();
    place
}

#[test]
fn a_collection_is_as_it_was_left() {
    let place = place();
    let store = open(&place).unwrap();
    assert!(store.is_durable());
    store.commit(&txn(vec![put("a", 1), put("b", 2)])).unwrap();
    store.set_extra("schema/a", Some(Bytes::from_static(b"one"))).wait().unwrap();
    store.set_extra("schema/b", Some(Bytes::from_static(b"two"))).wait().unwrap();
    store.set_extra("lease/a", Some(Bytes::from_static(b"three"))).wait().unwrap();
    store.set_extra("schema/a", None).wait().unwrap();
    let before = (contents(&store), store.extras(""));
    drop(store);
    let config = Config::new(Epoch(99));
    let store = Collection::open(&place.path, config).unwrap();
    assert_eq!((contents(&store), store.extras("")), before);
    assert_eq!(store.extras("schema/"), [("schema/b".to_owned(), Bytes::from_static(b"two"))]);
    assert_eq!((store.state().epoch(), store.state().head()), (Epoch(7), Revision(1)));
}

#[test]
fn a_collection_in_memory_is_not_durable_and_keeps_extras_all_the_same() {
    let store = Collection::new(config());
    assert!(!store.is_durable() && store.failure().is_none());
    store.set_extra("name", Some(Bytes::from_static(b"value"))).wait().unwrap();
    assert_eq!(store.extras("na").len(), 1);
    assert_eq!(store.extras("nb").len(), 0);
}

#[test]
fn a_file_is_used_by_one_collection_at_a_time() {
    let place = written();
    let store = open(&place).unwrap();
    assert!(matches!(refusal(&place), OpenError::Locked { .. }));
    drop(store);
    let store = open(&place).unwrap();
    // Somebody who comes by another name finds redb's own lock.
    let other = Place { path: beside(&place.path, ".link"), directory: tempfile::tempdir().unwrap() };
    fs::hard_link(&place.path, &other.path).unwrap();
    assert!(matches!(refusal(&other), OpenError::Locked { .. }));
    drop(store);
    open(&place).unwrap();
}

/// Changes what a file says of its format, as if another version had written it. Says what it was.
fn set_format(place: &Place, format: u32) -> u32 {
    let file = fs::OpenOptions::new().read(true).write(true).open(&place.path).unwrap();
    let database = open_database(redb::backends::FileBackend::new(file).unwrap()).unwrap();
    let transaction = database.begin_write().unwrap();
    let before = {
        let mut table = transaction.open_table(META).unwrap();
        let row = table.get(META_KEY).unwrap().unwrap().value().to_vec();
        let mut meta = Meta::from_row(&row).unwrap();
        let before = std::mem::replace(&mut meta.format, format);
        table.insert(META_KEY, &*meta.to_row()).unwrap();
        before
    };
    transaction.commit().unwrap();
    before
}

#[test]
fn a_newer_format_is_named() {
    let place = written();
    assert_eq!(set_format(&place, FORMAT + 1), FORMAT);
    let error = refusal(&place);
    assert!(matches!(error, OpenError::Newer { found, supported, .. } if (found, supported) == (FORMAT + 1, FORMAT)));
}

/// A version that knows of no log would take the file for all that there is.
#[test]
fn a_file_from_before_there_were_logs_is_opened_and_has_the_new_format_before_anything_is_in_the_log() {
    let place = written();
    set_format(&place, 1);
    fs::remove_file(beside(&place.path, ".log")).unwrap();
    let store = open(&place).unwrap();
    assert_eq!((contents(&store).len(), store.state().head()), (2, Revision(1)));
    let copy = Place { path: place.path.with_extension("copy"), directory: tempfile::tempdir().unwrap() };
    fs::copy(&place.path, &copy.path).unwrap();
    assert_eq!(set_format(&copy, FORMAT), FORMAT);
    store.commit(&txn(vec![put("c", 3)])).unwrap();
    drop(store);
    assert_eq!(contents(&open(&place).unwrap()).len(), 3);
}

#[test]
fn a_row_that_is_missing_or_changed_or_moved_is_named() {
    let check = |change: fn(&mut redb::Table<'_, &[u8], &[u8]>), name: &str| {
        let place = written();
        let file = fs::OpenOptions::new().read(true).write(true).open(&place.path).unwrap();
        let database = open_database(redb::backends::FileBackend::new(file).unwrap()).unwrap();
        let transaction = database.begin_write().unwrap();
        change(&mut transaction.open_table(Table::Objects.definition()).unwrap());
        transaction.commit().unwrap();
        drop(database);
        let error = refusal(&place);
        let OpenError::Corrupt { what, .. } = &error else { panic!("{error}") };
        assert_eq!(what, name);
        assert!(matches!(refusal(&place), OpenError::Corrupt { .. }), "nobody repairs it");
    };
    let a = "test.v1.Alpha\0\0a";
    assert_eq!(a.len(), 16);
    check(
        |table| drop(table.remove(b"test.v1.Alpha\0\0a".as_slice()).unwrap()),
        "objects: the 1 rows are not the 2 that were written",
    );
    check(
        |table| {
            let mut row = table.get(b"test.v1.Alpha\0\0a".as_slice()).unwrap().unwrap().value().to_vec();
            row[40] ^= 1;
            table.insert(b"test.v1.Alpha\0\0a".as_slice(), &*row).unwrap();
        },
        "objects, test.v1.Alpha//a: the row does not match its checksum",
    );
    check(
        |table| {
            let row = table.get(b"test.v1.Alpha\0\0a".as_slice()).unwrap().unwrap().value().to_vec();
            table.insert(b"test.v1.Alpha\0\0b".as_slice(), &*row).unwrap();
        },
        "objects, test.v1.Alpha//b: the row does not match its checksum",
    );
}

#[test]
fn what_is_no_collection_is_refused_and_stays_as_it_is() {
    for garbage in [Vec::new(), b"{}".to_vec(), vec![0; 10_000], b"SQLite format 3\0".repeat(1000)] {
        let place = place();
        fs::write(&place.path, &garbage).unwrap();
        assert!(matches!(refusal(&place), OpenError::NotACollection { .. }));
        assert_eq!(fs::read(&place.path).unwrap(), garbage);
    }
    let other = place();
    let database = redb::Database::create(&other.path).unwrap();
    drop(database);
    assert!(matches!(refusal(&other), OpenError::NotACollection { .. }));

    let directory = place();
    fs::create_dir(&directory.path).unwrap();
    assert!(matches!(refusal(&directory), OpenError::NotACollection { .. }));
}

#[test]
fn a_path_that_cannot_be_is_named() {
    let Place { directory, path } = place();
    let nowhere = Place { path: path.join("deeper"), directory };
    let error = refusal(&nowhere);
    assert!(matches!(error, OpenError::Io { ref source, .. } if source.kind() == io::ErrorKind::NotFound), "{error}");
}

/// Whoever died while it made the file has left one beside it that nobody needs.
#[test]
fn a_file_that_was_never_finished_is_begun_again() {
    let place = place();
    fs::write(beside(&place.path, ".new"), vec![1; 5000]).unwrap();
    drop(open(&place).unwrap());
    open(&place).unwrap();
    assert!(!beside(&place.path, ".new").exists());
}
