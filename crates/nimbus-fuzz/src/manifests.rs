//! Manifests, in JSON and YAML.

use std::sync::LazyLock;

use nimbus_cli::fuzzing::{Language, Manifests};
use nimbus_wire::v1;

use crate::schema::{KINDS, SET};

thread_local! {
    static READER: LazyLock<Manifests> = LazyLock::new(|| Manifests::new(&SET, &KINDS));
}

/// All that is wrong has a place and words; what is right is printed so that it is read again as the same.
pub(crate) fn check(bytes: &[u8]) {
    READER.with(|reader| check_with(reader, bytes));
}

fn check_with(reader: &Manifests, bytes: &[u8]) {
    let objects = match reader.read(bytes) {
        Ok(objects) => objects,
        Err(complaints) => {
            let lines = bytes.split(|byte| *byte == b'\n' || *byte == b'\r').count();
            for complaint in complaints {
                assert!(!complaint.message.is_empty(), "{complaint:?} says nothing");
                let place = complaint.at.unwrap_or((1, 1));
                let inside = (1..=lines + 1).contains(&place.0) && (1..=bytes.len() + 1).contains(&place.1);
                assert!(inside, "{complaint:?} is not in a file of {lines} lines and {} bytes", bytes.len());
            }
            return;
        }
    };
    let bytes_are_given = bytes.windows(9).any(|part| part == b"specBytes");
    assert!(!objects.is_empty(), "nothing was read, and nothing was wrong");
    for object in objects {
        for language in [Language::Json, Language::Yaml] {
            let printed = reader.print(&object, language);
            let again = match reader.read(printed.as_bytes()).as_deref() {
                Ok([again]) => again.clone(),
                other => panic!("{object:?} is printed as\n{printed}\nand read as {other:?}"),
            };
            if bytes_are_given {
                // A spec that is given as bytes may be written in another order, or have more than its schema knows.
                let without = |object: &v1::Object| v1::Object { spec: None, ..object.clone() };
                assert_eq!(without(&again), without(&object), "as {language:?}:\n{printed}");
            } else {
                assert_eq!(again, object, "as {language:?}:\n{printed}");
            }
            assert_eq!(reader.print(&again, language), printed, "what is printed is printed differently the next time");
        }
    }
}
