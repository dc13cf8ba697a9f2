//! The file of a bus: its rows, and the whole of it.

use nimbus_store::fuzzing::{self, Row};

use crate::{
    files::{self, COMMITS, EPOCH},
    hush::hushed,
    script,
};

const ROWS: [Row; 4] = [Row::Object, Row::Tombstone, Row::Kind, Row::Meta];

/// Part of a log: these bytes as they are. Everything else is a group of writes, and comes with its checksum.
pub(crate) const RAW: u8 = 0;

/// Two parts: the key of a row, and its body. What is read is written so that the same is read again.
pub(crate) fn rows(bytes: &[u8]) {
    let parts = script::read(bytes);
    let [key, body, ..] = &parts[..] else { return };
    let row = ROWS[usize::from(key.tag) % ROWS.len()];
    match fuzzing::rewrite(row, key.body, body.body) {
        Err(reason) => assert!(!reason.is_empty(), "a {row:?} was refused without a reason"),
        // An end that left no tombstones has no row.
        Ok(written) if row == Row::Tombstone && written.is_empty() => {}
        Ok(written) => {
            let again = fuzzing::rewrite(row, key.body, &written);
            assert_eq!(again.as_ref(), Ok(&written), "a {row:?} that was read is written differently the next time");
        }
    }
}

/// What is different in a file from one that was written. What is accepted is a collection.
pub(crate) fn file(input: &[u8]) {
    collection(&files::damaged(&files::STORE, input), &[]);
}

/// Groups of writes in the log beside a file that was written, and bytes between them.
pub(crate) fn log(input: &[u8]) {
    let (mut log, mut commit) = (Vec::new(), *COMMITS);
    for part in script::read(input) {
        match part.tag {
            RAW => log.extend(part.body),
            _ => {
                commit += 1;
                log.extend(fuzzing::log_entry(EPOCH, commit, part.body));
            }
        }
    }
    collection(&files::STORE, &log);
}

fn collection(file: &[u8], log: &[u8]) {
    match hushed(|| fuzzing::load(file, log)) {
        Err(reason) => assert!(!reason.is_empty(), "a file was refused without a reason"),
        Ok(contents) => {
            for record in &contents.records {
                assert!(record.revision() <= contents.head, "{} is newer than its collection", record.key());
                assert_eq!(record.to_wire().revision, record.revision().0);
            }
            let again = hushed(|| fuzzing::load(file, log)).map(|again| again.records.len());
            assert_eq!(again, Ok(contents.records.len()), "a file is read differently the next time");
        }
    }
}
