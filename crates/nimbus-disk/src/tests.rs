//! The overlay behaves like a file, and leaves the file under it alone.

use std::fs::{self, OpenOptions};

use proptest::{prelude::*, test_runner::TestCaseError};
use redb::{StorageBackend, backends::FileBackend};

use crate::Overlay;

#[derive(Debug, Clone)]
enum Op {
    Write(u64, Vec<u8>),
    Read(u64, usize),
    SetLen(u64),
}

fn any_op() -> impl Strategy<Value = Op> {
    // Three blocks and a bit, so that most ranges cross a border.
    let offset = || 0..13_000_u64;
    prop_oneof![
        (offset(), any::<u8>(), 0..9_000_usize).prop_map(|(at, byte, len)| Op::Write(at, vec![byte; len])),
        (offset(), 0..9_000_usize).prop_map(|(at, len)| Op::Read(at, len)),
        offset().prop_map(Op::SetLen),
    ]
}

proptest! {
    #[test]
    fn an_overlay_reads_like_a_file_that_was_written(len in 0..13_000_usize, ops in proptest::collection::vec(any_op(), 1..40)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let before: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        fs::write(&path, &before).unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let overlay = Overlay::new(FileBackend::new(file).unwrap()).unwrap();
        let mut model = before.clone();
        for op in ops {
            match op {
                Op::Write(at, data) => {
                    let range = at as usize..at as usize + data.len();
                    prop_assert_eq!(overlay.write(at, &data).is_ok(), range.end <= model.len());
                    if range.end <= model.len() {
                        model[range].copy_from_slice(&data);
                    }
                }
                Op::Read(at, len) => {
                    let mut out = vec![0xEE; len];
                    let range = at as usize..at as usize + len;
                    prop_assert_eq!(overlay.read(at, &mut out).is_ok(), range.end <= model.len());
                    if range.end <= model.len() {
                        prop_assert!(out == model[range]);
                    }
                }
                Op::SetLen(len) => {
                    overlay.set_len(len).unwrap();
                    model.resize(len as usize, 0);
                }
            }
            prop_assert_eq!(overlay.len().unwrap(), model.len() as u64);
        }
        prop_assert!(fs::read(&path).unwrap() == before);
        Ok::<_, TestCaseError>(())?;
    }
}
