//! The file of a bus: its rows, and the whole of it.

use nimbus_store::fuzzing::{self, Row};

use crate::{files, hush::hushed, script};

const ROWS: [Row; 4] = [Row::Object, Row::Tombstone, Row::Kind, Row::Meta];

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
    let bytes = &files::damaged(&files::STORE, input);
    match hushed(|| fuzzing::load(bytes)) {
        Err(reason) => assert!(!reason.is_empty(), "a file was refused without a reason"),
        Ok(contents) => {
            for record in &contents.records {
                assert!(record.revision() <= contents.head, "{} is newer than its collection", record.key());
                assert_eq!(record.to_wire().revision, record.revision().0);
            }
            let again = hushed(|| fuzzing::load(bytes)).map(|again| again.records.len());
            assert_eq!(again, Ok(contents.records.len()), "a file is read differently the next time");
        }
    }
}
