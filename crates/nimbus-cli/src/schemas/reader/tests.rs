//! What manifests may leave out.

use protox::file::{File, FileResolver};

use crate::{
    document,
    schemas::{Reader, Schemas},
};

struct Source;

impl FileResolver for Source {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let source =
            r#"syntax = "proto2"; package old; message Old { required string name = 1; optional string text = 2; }"#;
        File::from_source(name, source)
    }
}

fn complaints(text: &str) -> Vec<String> {
    let mut compiler = protox::Compiler::with_file_resolver(Source);
    compiler.open_file("old.proto").unwrap();
    let schemas = Schemas::with(&compiler.encode_file_descriptor_set());
    let documents = document::read(text);
    let mut reader = Reader::new(&schemas, None);
    reader.message(&documents.documents[0], &schemas.message("old.Old").unwrap());
    reader.complaints.into_iter().map(|complaint| complaint.message).collect()
}

/// `name:` with nothing after it is nothing, but counted as given: the manifest was accepted, and the bus then refused an
/// object for want of a field that was there for everybody to see. Fuzzing found it, because such an object was printed
/// without the field, and so was refused when it was read again.
#[test]
fn a_required_field_that_is_nothing_is_missing() {
    assert!(complaints("{name: x, text: }").is_empty());
    assert_eq!(complaints("{text: x}"), ["old.Old needs `name`"]);
    assert_eq!(complaints("{name: , text: x}"), ["old.Old needs `name`"]);
    assert_eq!(complaints("{name: ~}"), ["old.Old needs `name`"]);
}
