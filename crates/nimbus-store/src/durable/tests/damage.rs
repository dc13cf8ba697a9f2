//! Files that are cut short or changed under us. Whatever happened to one, it is refused by name, or it is right.

use std::fs;

use bytes::Bytes;
use nimbus_core::{Audience, Revision};
use nimbus_disk::beside;
use parking_lot::Mutex;

use crate::{
    durable::{
        error::OpenError,
        tests::{Place, agents, contents, delete, draft, open, place, publisher, put, selected, txn},
    },
    txn::Op,
};

type Everything = (Vec<(String, Bytes)>, Revision, Revision, Vec<(String, Bytes)>, String);

#[derive(Clone, Copy, PartialEq)]
enum End {
    /// It was closed.
    Closed,
    /// It was killed.
    Killed,
}

/// A file, and what is in it.
struct Sample {
    bytes: Vec<u8>,
    /// The log beside it.
    log: Vec<u8>,
    /// What is noted beside it.
    note: Vec<u8>,
    everything: Everything,
}

/// Panics of redb are caught, but reported, by the thousand.
static QUIET: Mutex<()> = Mutex::new(());

fn everything(place: &Place) -> Result<Everything, OpenError> {
    let store = open(place)?;
    let state = store.state();
    let views = state
        .kinds()
        .map(|(kind, of)| format!("{kind} {:?} {:?}", of.all, of.publishers))
        .collect();
    Ok((contents(&store), state.head(), state.horizon(), store.extras(""), views))
}

fn sample(end: End) -> Sample {
    let place = place();
    let store = open(&place).unwrap();
    store.commit(&txn((0..12).map(|at| put(&format!("object-{at}"), at)).collect())).unwrap();
    let audiences = [agents(&["x", "y"]), selected("a=b"), Audience::Everyone];
    for (at, audience) in audiences.into_iter().enumerate() {
        store.commit(&txn(vec![Op::Upsert(draft("moving", at as u64, audience)).into()])).unwrap();
    }
    store.commit(&txn((0..4).map(|at| delete(&format!("object-{at}"))).collect())).unwrap();
    let sync = store.begin_sync(&publisher("q"), 3, [super::kind()].into()).unwrap();
    store.end_sync(&sync).unwrap();
    store.set_extra("name", Some(Bytes::from_static(b"value"))).wait().unwrap();
    let files = || (fs::read(&place.path).unwrap(), fs::read(beside(&place.path, ".log")).unwrap());
    let killed = files();
    drop(store);
    let (bytes, mut log) = if end == End::Killed { killed } else { files() };
    // Behind the last entry there are zeros, in large numbers.
    log.truncate(log.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 64));
    fs::write(&place.path, &bytes).unwrap();
    fs::write(beside(&place.path, ".log"), &log).unwrap();
    let note = fs::read(beside(&place.path, ".lock")).unwrap();
    let everything = everything(&place).unwrap();
    Sample { bytes, log, note, everything }
}

impl Sample {
    /// Opens a damaged copy. Says whether it was refused.
    fn check(&self, place: &Place, bytes: &[u8], what: &str) -> bool {
        self.check_both(place, bytes, &self.log, what)
    }

    fn check_both(&self, place: &Place, bytes: &[u8], log: &[u8], what: &str) -> bool {
        fs::write(&place.path, bytes).unwrap();
        fs::write(beside(&place.path, ".log"), log).unwrap();
        fs::write(beside(&place.path, ".lock"), &self.note).unwrap();
        match everything(place) {
            Ok(everything) => {
                assert!(everything == self.everything, "{what}: something else is there");
                false
            }
            Err(OpenError::Corrupt { .. } | OpenError::NotACollection { .. }) => {
                assert_eq!(fs::read(&place.path).unwrap(), bytes, "{what}: it is refused, but was changed");
                assert_eq!(fs::read(beside(&place.path, ".log")).unwrap(), log, "{what}: its log was changed");
                true
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
}

/// redb's panics would fill the screen.
fn quietly(work: impl FnOnce()) {
    let _quiet = QUIET.lock();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    std::panic::set_hook(before);
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn a_file_with_bytes_changed_anywhere_is_refused_or_right() {
    quietly(|| {
        for end in [End::Closed, End::Killed] {
            let (sample, place) = (sample(end), place());
            let (mut refused, mut tried) = (0, 0);
            // Every byte of the header, then only where there is something, and here and there where there is nothing.
            let places = (0..320).chain((320..sample.bytes.len()).step_by(61));
            for at in places.filter(|at| *at < 320 || sample.bytes[*at] != 0 || at % 1009 == 0) {
                let mut bytes = sample.bytes.clone();
                bytes[at] ^= 1 << (at % 8);
                tried += 1;
                refused += usize::from(sample.check(&place, &bytes, &format!("byte {at}")));
            }
            assert!(refused > 50 && tried - refused > 50, "{refused} of {tried}");
        }
    });
}

#[test]
fn an_old_copy_is_refused_until_somebody_says_that_it_may_be_used() {
    let place = place();
    let store = open(&place).unwrap();
    store.commit(&txn(vec![put("a", 1)])).unwrap();
    drop(store);
    let old = fs::read(&place.path).unwrap();
    let store = open(&place).unwrap();
    store.commit(&txn(vec![put("a", 2)])).unwrap();
    drop(store);
    fs::write(&place.path, &old).unwrap();
    let error = open(&place).unwrap_err();
    assert!(error.to_string().contains("commit 3 was acknowledged"), "{error}");
    fs::remove_file(beside(&place.path, ".lock")).unwrap();
    assert_eq!(open(&place).unwrap().state().head(), Revision(1));
}

#[test]
fn a_file_that_was_cut_anywhere_is_refused() {
    quietly(|| {
        for end in [End::Closed, End::Killed] {
            let (sample, place) = (sample(end), place());
            for len in (0..sample.bytes.len()).step_by(4999).chain([sample.bytes.len() - 1]) {
                assert!(sample.check(&place, &sample.bytes[..len], &format!("length {len}")), "length {len}");
            }
        }
    });
}

#[test]
fn a_log_with_bytes_changed_or_cut_anywhere_is_refused_or_right() {
    quietly(|| {
        let (sample, place) = (sample(End::Killed), place());
        let (mut refused, mut tried) = (0, 0);
        for at in (0..sample.log.len()).step_by(7) {
            let mut log = sample.log.clone();
            log[at] ^= 1 << (at % 8);
            tried += 2;
            refused += usize::from(sample.check_both(&place, &sample.bytes, &log, &format!("byte {at}")));
            let cut = sample.check_both(&place, &sample.bytes, &sample.log[..at], &format!("length {at}"));
            refused += usize::from(cut);
        }
        assert!(refused > tried / 2 && refused < tried, "{refused} of {tried}");
    });
}
