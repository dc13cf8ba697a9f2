//! What is read from a log, whatever became of it.

use std::fs;

use nimbus_core::Epoch;
use nimbus_disk::beside;

use crate::{
    collection::{Collection, Config},
    durable::{
        error::OpenError,
        log::{Entry, Group, Logged, entry::HEADER},
        tests::{Place, config, contents, delete, disk::TestDisk, open, place, put, txn},
    },
};

const EPOCH: Epoch = Epoch(7);

/// An entry whose group has that revision.
fn entry(epoch: Epoch, commit: u64, head: u64) -> Vec<u8> {
    let group = prost::Message::encode_to_vec(&Group { head, ..Group::default() });
    Entry { epoch, commit, group: &group }.encode()
}

/// The revisions of what is read after commit 10.
fn check(bytes: &[u8], expected: Result<&[u64], &str>) {
    match (Logged::from_bytes(bytes, EPOCH, 10), expected) {
        (Ok(logged), Ok(heads)) => {
            assert_eq!(logged.groups.iter().map(|group| group.head).collect::<Vec<_>>(), heads);
        }
        (Err(flaw), Err(text)) => assert!(flaw.to_string().contains(text), "{flaw}"),
        (found, expected) => panic!("{found:?} in place of {expected:?}"),
    }
}

fn run(commits: std::ops::RangeInclusive<u64>) -> Vec<u8> {
    commits.flat_map(|commit| entry(EPOCH, commit, commit)).collect()
}

#[test]
fn a_log_is_read_from_where_the_file_ends() {
    check(&[], Ok(&[]));
    check(&[0; 5000], Ok(&[]));
    check(&run(11..=13), Ok(&[11, 12, 13]));
    check(&run(9..=12), Ok(&[11, 12]));
    check(&run(7..=10), Ok(&[]));
    check(&[run(11..=12), vec![0; 4096]].concat(), Ok(&[11, 12]));
}

#[test]
fn what_is_left_from_before_is_passed_over() {
    // It was begun again, and old entries lie behind the new ones, whole or not.
    check(&[run(11..=12), run(8..=10)].concat(), Ok(&[11, 12]));
    check(&[run(11..=12), run(8..=10).split_off(16)].concat(), Ok(&[11, 12]));
    // The file was made anew.
    check(&entry(Epoch(8), 11, 1), Ok(&[]));
    check(&[run(11..=11), entry(Epoch(8), 12, 1)].concat(), Ok(&[11]));
}

#[test]
fn an_end_that_is_not_whole_was_never_acknowledged() {
    let (whole, last) = (run(11..=12), entry(EPOCH, 13, 13));
    for len in 0..last.len() {
        let expected: &[u64] = if len < HEADER + 2 { &[11, 12] } else { &[11, 12, 13] };
        check(&[whole.as_slice(), &last[..len]].concat(), Ok(expected));
    }
    // Its blocks came in another order.
    let mut torn = [whole, last].concat();
    let at = torn.len() - 8;
    torn[at - 8] ^= 1;
    check(&torn, Ok(&[11, 12]));
}

#[test]
fn damage_before_something_newer_is_named() {
    let len = entry(EPOCH, 11, 11).len();
    let whole = run(11..=13);
    // Every byte of an entry but the padding behind it.
    for at in len..len + HEADER + 2 {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        check(&bytes, Err("commit 13 is there, and what lies between it and commit 11 is not"));
    }
    check(&run(12..=13), Err("commit 12 is there, and what lies between it and commit 10 is not"));
    check(&[run(11..=11), run(13..=13)].concat(), Err("commit 13 is there"));
}

/// As after a kill: what was synced is there, and nobody has closed anything.
fn killed(place: &Place, store: Collection) -> (Vec<u8>, Vec<u8>) {
    let log = beside(&place.path, ".log");
    let left = (fs::read(&place.path).unwrap(), fs::read(&log).unwrap());
    drop(store);
    fs::write(&place.path, &left.0).unwrap();
    fs::write(&log, &left.1).unwrap();
    left
}

#[test]
fn what_is_only_in_the_log_is_there_after_a_kill() {
    let place = place();
    let store = open(&place).unwrap();
    let before = fs::read(&place.path).unwrap();
    store.commit(&txn(vec![put("a", 1), put("b", 1)])).unwrap();
    store.commit(&txn(vec![put("a", 2), delete("b")])).unwrap();
    let (head, all) = (store.state().head(), contents(&store));
    let left = killed(&place, store);
    assert_eq!(left.0, before, "the file was not written");
    // Killed again before anything was written, and again after that.
    for _ in 0..2 {
        let store = open(&place).unwrap();
        assert_eq!((store.state().head(), contents(&store)), (head, all.clone()));
        killed(&place, store);
    }
    let store = open(&place).unwrap();
    store.commit(&txn(vec![put("c", 1)])).unwrap();
    let all = contents(&store);
    killed(&place, store);
    assert_eq!(contents(&open(&place).unwrap()), all);
}

#[test]
fn a_log_whose_middle_is_damaged_is_refused_and_stays_as_it_is() {
    let place = place();
    let store = open(&place).unwrap();
    for value in 0..3 {
        store.commit(&txn(vec![put("a", value)])).unwrap();
    }
    let (file, mut log) = killed(&place, store);
    log[HEADER + 4] ^= 1;
    fs::write(beside(&place.path, ".log"), &log).unwrap();
    for _ in 0..2 {
        let error = open(&place).unwrap_err();
        let OpenError::Corrupt { what, .. } = &error else { panic!("{error}") };
        assert_eq!(what, "its log is damaged: commit 3 is there, and what lies between it and commit 1 is not");
        assert!(fs::read(&place.path).unwrap() == file && fs::read(beside(&place.path, ".log")).unwrap() == log);
    }
}

#[test]
fn a_file_without_the_log_that_it_had_is_refused() {
    let place = place();
    let store = open(&place).unwrap();
    store.commit(&txn(vec![put("a", 1)])).unwrap();
    killed(&place, store);
    fs::remove_file(beside(&place.path, ".log")).unwrap();
    let error = open(&place).unwrap_err();
    assert!(error.to_string().contains("commit 2 was acknowledged"), "{error}");
}

#[test]
fn a_log_whose_file_is_gone_is_kept_for_whoever_looks_for_it() {
    let place = place();
    let store = open(&place).unwrap();
    store.commit(&txn(vec![put("a", 1)])).unwrap();
    let (_, log) = killed(&place, store);
    fs::remove_file(&place.path).unwrap();
    assert_eq!(contents(&open(&place).unwrap()), []);
    assert_eq!(fs::read(beside(&place.path, ".log.old")).unwrap(), log);
}

#[test]
fn a_log_that_is_full_goes_into_the_file() {
    let (place, disk) = (place(), TestDisk::default());
    let config = || Config { log_bytes: 1500, ..config() };
    let store = Collection::open_on(&disk, &place.path, config()).unwrap();
    let log = || fs::metadata(beside(&place.path, ".log")).unwrap().len();
    for value in 0..100 {
        store.commit(&txn(vec![put(&format!("object-{}", value % 7), value)])).unwrap();
        if value % 10 == 3 {
            store.commit(&txn(vec![delete(&format!("object-{}", value % 7))])).unwrap();
        }
    }
    assert!(log() <= 1 << 20, "{}", log());
    let all = contents(&store);
    killed(&place, store);
    let store = Collection::open_on(&disk, &place.path, config()).unwrap();
    assert_eq!(contents(&store), all);
    drop(store);
    assert_eq!(log(), 0, "nothing is left in it when it is closed");
    assert_eq!(contents(&open(&place).unwrap()), all);
}
