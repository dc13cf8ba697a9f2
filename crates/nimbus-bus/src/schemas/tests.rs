//! Registering kinds: what is accepted, what is refused, and that nothing happens by halves.

mod evolution;
mod fields;
mod hostile;
mod values;

use std::collections::HashMap;

use prost::Message as _;
use prost_types::FileDescriptorSet;
use protox::{
    Compiler,
    file::{ChainFileResolver, DescriptorSetFileResolver, File, FileResolver, GoogleFileResolver},
};

use crate::schemas::{SchemaError, SchemaLimits, Schemas};

/// Proto sources by file name.
struct Sources(HashMap<String, String>);

impl FileResolver for Sources {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let source = self.0.get(name).ok_or_else(|| protox::Error::file_not_found(name))?;
        File::from_source(name, source)
    }
}

/// What protoc writes for these files with `--include_imports`.
pub(crate) fn compile(files: &[(&str, &str)]) -> Vec<u8> {
    let sources = files.iter().map(|(name, source)| (String::from(*name), String::from(*source))).collect();
    let mut resolver = ChainFileResolver::new();
    resolver.add(Sources(sources));
    resolver.add(GoogleFileResolver::new());
    resolver.add(DescriptorSetFileResolver::decode(nimbus_wire::v1::FILE_DESCRIPTOR_SET).unwrap());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).include_source_info(false);
    compiler.open_files(files.iter().map(|(name, _)| name)).unwrap();
    compiler.encode_file_descriptor_set()
}

/// The file `name` of a set, as the set has it.
pub(crate) fn bytes_of(set: &[u8], name: &str) -> Vec<u8> {
    let files = crate::schemas::file::split(set).unwrap();
    files.into_iter().find(|(_, proto)| proto.name() == name).unwrap().0.to_vec()
}

/// A set without the files named.
fn without(set: &[u8], names: &[&str]) -> Vec<u8> {
    let mut set = FileDescriptorSet::decode(set).unwrap();
    set.file.retain(|file| !names.contains(&file.name()));
    set.encode_to_vec()
}

pub(crate) const POLICY: (&str, &str) = (
    "demo/v1/policy.proto",
    r#"syntax = "proto3";
    package demo.v1;
    import "demo/v1/common.proto";
    message NetworkPolicy {
      string zone = 1;
      repeated Rule rules = 2;
      Tier tier = 3;
      message Rule { Port port = 1; }
    }"#,
);

pub(crate) const COMMON: (&str, &str) = (
    "demo/v1/common.proto",
    r#"syntax = "proto3";
    package demo.v1;
    import "google/protobuf/duration.proto";
    message Port { uint32 number = 1; google.protobuf.Duration idle = 2; }
    enum Tier { TIER_UNSPECIFIED = 0; TIER_WEB = 1; }"#,
);

fn named(kinds: &[&str]) -> Vec<String> {
    kinds.iter().map(|kind| (*kind).to_owned()).collect()
}

/// What a caller can see of the schemas; equal before and after a refused registration.
fn observed(schemas: &Schemas) -> (u64, Vec<String>, HashMap<String, Vec<u8>>) {
    let snapshot = schemas.snapshot();
    let files = snapshot.files.values().map(|file| (file.name.to_string(), file.bytes.to_vec())).collect();
    (snapshot.version, schemas.kinds(), files)
}

#[track_caller]
fn refused(schemas: &Schemas, set: &[u8], kinds: &[&str], expected: &str) -> SchemaError {
    let before = observed(schemas);
    let error = schemas.register(set, &named(kinds)).unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert_eq!(observed(schemas), before, "a refused registration changed something");
    error
}

#[test]
fn what_is_built_in_is_known_and_is_no_kind() {
    let schemas = Schemas::default();
    let files: Vec<_> = schemas.snapshot().files.keys().map(ToString::to_string).collect();
    for name in [
        "nimbus/v1/bus.proto",
        "nimbus/v1/publisher.proto",
        "nimbus/v1/fleet.proto",
        "nimbus/v1/object.proto",
        "grpc/health/v1/health.proto",
        "grpc/reflection/v1/reflection.proto",
        "grpc/reflection/v1alpha/reflection.proto",
        "google/protobuf/descriptor.proto",
        "google/protobuf/struct.proto",
        "google/protobuf/timestamp.proto",
        "google/rpc/status.proto",
        "google/rpc/error_details.proto",
    ] {
        assert!(files.iter().any(|file| file == name), "{name} is not in {files:?}");
    }
    assert!(schemas.kinds().is_empty());
    assert!(!schemas.is_registered("nimbus.v1.Object"));
}

#[test]
fn without_names_every_top_level_message_of_new_files_becomes_a_kind() {
    let schemas = Schemas::default();
    let registered = schemas.register(&compile(&[POLICY, COMMON]), &[]).unwrap();
    assert_eq!(registered, ["demo.v1.NetworkPolicy", "demo.v1.Port"]);
    assert_eq!(schemas.kinds(), registered);
    assert!(schemas.is_registered("demo.v1.NetworkPolicy"));
    assert!(!schemas.is_registered("demo.v1.NetworkPolicy.Rule"));
    assert!(!schemas.is_registered("google.protobuf.Duration"));
}

#[test]
fn with_names_only_those_become_kinds() {
    let schemas = Schemas::default();
    let set = compile(&[POLICY, COMMON]);
    assert_eq!(schemas.register(&set, &named(&["demo.v1.NetworkPolicy"])).unwrap(), ["demo.v1.NetworkPolicy"]);
    assert_eq!(schemas.kinds(), ["demo.v1.NetworkPolicy"]);

    // Others can follow, nested ones and well-known ones too, even without sending the files again.
    schemas
        .register(&[], &named(&["demo.v1.NetworkPolicy.Rule", "google.protobuf.Struct"]))
        .unwrap();
    assert_eq!(schemas.kinds(), ["demo.v1.NetworkPolicy", "demo.v1.NetworkPolicy.Rule", "google.protobuf.Struct"]);
}

#[test]
fn files_that_are_known_already_do_not_make_kinds_by_themselves() {
    let schemas = Schemas::default();
    schemas.register(&compile(&[POLICY, COMMON]), &named(&["demo.v1.NetworkPolicy"])).unwrap();
    let other =
        r#"syntax = "proto3"; package demo.v1; import "demo/v1/common.proto"; message Route { Port port = 1; }"#;
    let registered = schemas.register(&compile(&[("demo/v1/route.proto", other), COMMON]), &[]).unwrap();
    assert_eq!(registered, ["demo.v1.Route"], "demo.v1.Port is of a file that did not change");
}

#[test]
fn registering_again_changes_nothing_and_answers_the_same() {
    let schemas = Schemas::default();
    let set = compile(&[POLICY, COMMON]);
    let first = schemas.register(&set, &[]).unwrap();
    let before = observed(&schemas);
    assert_eq!(schemas.register(&set, &[]).unwrap(), first);
    assert_eq!(schemas.register(&set, &named(&["demo.v1.Port"])).unwrap(), ["demo.v1.Port"]);
    assert_eq!(observed(&schemas), before);
}

#[test]
fn clones_share_what_is_registered() {
    let schemas = Schemas::default();
    let clone = schemas.clone();
    schemas.register(&compile(&[POLICY, COMMON]), &[]).unwrap();
    assert!(clone.is_registered("demo.v1.NetworkPolicy"));
}

#[test]
fn custom_options_survive_in_the_bytes_of_a_file() {
    let source = r#"syntax = "proto3";
    package demo.v1;
    import "google/protobuf/descriptor.proto";
    extend google.protobuf.FieldOptions { string unit = 50001; }
    message Limit { uint64 rate = 1 [(unit) = "packets per fortnight"]; }"#;
    let set = compile(&[("demo/v1/limit.proto", source)]);
    let schemas = Schemas::default();
    schemas.register(&set, &[]).unwrap();

    let stored = schemas.snapshot().files["demo/v1/limit.proto"].bytes.to_vec();
    assert_eq!(stored, bytes_of(&set, "demo/v1/limit.proto"));
    assert!(stored.windows(21).any(|bytes| bytes == b"packets per fortnight"));
}

#[test]
fn a_missing_import_is_named() {
    let schemas = Schemas::default();
    let set = without(&compile(&[POLICY, COMMON]), &["demo/v1/common.proto"]);
    let expected = "demo/v1/policy.proto: import demo/v1/common.proto is missing \
                    (hint: write the descriptor set with --include_imports)";
    let error = refused(&schemas, &set, &[], expected);
    assert!(matches!(error, SchemaError::MissingImport { .. }));

    // Well-known imports may be left out, and so may those that are registered already.
    schemas
        .register(&without(&compile(&[COMMON]), &["google/protobuf/duration.proto"]), &[])
        .unwrap();
    schemas.register(&set, &[]).unwrap();
    assert!(schemas.is_registered("demo.v1.NetworkPolicy"));
}

#[test]
fn an_unknown_kind_is_answered_with_the_nearest_name() {
    let schemas = Schemas::default();
    let set = compile(&[POLICY, COMMON]);
    let expected = "kind demo.v1.NetworkPolice is not a message of the descriptor set \
                    (did you mean demo.v1.NetworkPolicy?)";
    refused(&schemas, &set, &["demo.v1.Port", "demo.v1.NetworkPolice"], expected);
    let expected = "kind NetworkPolicy is not a message of the descriptor set (did you mean demo.v1.NetworkPolicy?)";
    refused(&schemas, &set, &["NetworkPolicy"], expected);
    refused(
        &schemas,
        &set,
        &["demo.v1.Tier"],
        "kind demo.v1.Tier is not a message of the descriptor set (did you mean demo.v1.Port?)",
    );
    refused(&schemas, &set, &["x"], "kind x is not a message of the descriptor set");
}

#[test]
fn garbage_is_not_a_descriptor_set() {
    let schemas = Schemas::default();
    let expected = "not a google.protobuf.FileDescriptorSet: at byte 0: expected 127 bytes, 1 are left";
    refused(&schemas, b"\x0a\x7fx", &[], expected);
    let error = schemas.register(b"\x0a\x02\x08\x01", &[]).unwrap_err();
    assert!(matches!(error, SchemaError::NotADescriptorSet { .. }), "{error}");
}

#[test]
fn every_limit_is_refused_by_name() {
    let set = compile(&[POLICY, COMMON]);
    let users = without(&set, &["google/protobuf/duration.proto"]);
    let check = |limits, expected: &str| {
        let error = refused(&Schemas::new(limits), &set, &[], expected);
        assert!(matches!(error, SchemaError::TooLarge { .. }));
    };
    let len = set.len();
    let limits = SchemaLimits::default;
    check(
        SchemaLimits { max_set_bytes: len - 1, ..limits() },
        &format!("bytes of the descriptor set: {len} is more than the limit of {}", len - 1),
    );
    check(SchemaLimits { max_files: 1, ..limits() }, "registered files: 2 is more than the limit of 1");
    check(SchemaLimits { max_kinds: 1, ..limits() }, "registered kinds: 2 is more than the limit of 1");
    // Each of the two files has a tag and a length around it in the set.
    let total = bytes_of(&set, POLICY.0).len() + bytes_of(&set, COMMON.0).len();
    assert!(total < users.len());
    check(
        SchemaLimits { max_total_bytes: total - 1, ..limits() },
        &format!("bytes of all registered files: {total} is more than the limit of {}", total - 1),
    );

    let exact = SchemaLimits { max_set_bytes: len, max_total_bytes: total, max_files: 2, max_kinds: 2 };
    Schemas::new(exact).register(&set, &[]).unwrap();
}
