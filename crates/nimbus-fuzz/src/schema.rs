//! The kinds that all targets know: every type of field that protobuf has.

use std::sync::LazyLock;

use nimbus_bus::Schemas;
use nimbus_wire::v1;
use prost_reflect::DescriptorPool;
use protox::{
    Compiler,
    file::{ChainFileResolver, DescriptorSetFileResolver, File, FileResolver, GoogleFileResolver},
};

/// Their names.
pub(crate) const KINDS: [&str; 3] = ["fuzz.Policy", "fuzz.Everything", "fuzz.Old"];

const FILES: [(&str, &str); 2] = [
    (
        "fuzz.proto",
        r#"
        syntax = "proto3";
        package fuzz;
        import "google/protobuf/any.proto";
        import "google/protobuf/duration.proto";
        import "google/protobuf/field_mask.proto";
        import "google/protobuf/struct.proto";
        import "google/protobuf/timestamp.proto";
        import "google/protobuf/wrappers.proto";
        import "nimbus/v1/options.proto";

        message Policy { string zone = 1; uint32 priority = 2; repeated string rules = 3; }
        enum Tier { TIER_UNSPECIFIED = 0; TIER_WEB = 1; TIER_LOW = -1; }
        message Everything {
          string text = 1;
          bytes raw = 2;
          bool flag = 3;
          int32 i32 = 4;
          sint64 s64 = 5;
          fixed32 f32 = 6;
          sfixed64 sf64 = 7;
          uint64 u64 = 8;
          float single = 9;
          double twice = 10;
          Tier tier = 11;
          repeated int32 numbers = 12;
          repeated Tier tiers = 13;
          repeated string texts = 14;
          map<string, int64> by_name = 15;
          map<int32, Everything> nested = 16;
          map<bool, bytes> raws = 17;
          optional string maybe = 18;
          Everything inner = 19;
          repeated Everything many = 20;
          oneof choice { string left = 21; Policy right = 22; Tier third = 23; }
          google.protobuf.Any packed = 24;
          google.protobuf.Struct free = 25;
          google.protobuf.Value value = 26;
          google.protobuf.Timestamp at = 27;
          google.protobuf.Duration took = 28;
          google.protobuf.FieldMask mask = 29;
          google.protobuf.StringValue wrapped = 30;
          google.protobuf.UInt64Value count = 31;
          string secret = 32 [debug_redact = true];
          google.protobuf.ListValue list = 33;
          string policy = 34 [(nimbus.v1.refers) = {kind: "fuzz.Policy"}];
          repeated string zones = 35 [(nimbus.v1.refers) = {kind: "fuzz.Zone", weak: true}];
          string peers = 36 [(nimbus.v1.refers) = {kind: "fuzz.Everything", selector: true}];
        }
        "#,
    ),
    (
        "old.proto",
        r#"
        syntax = "proto2";
        package fuzz;
        message Old {
          required string name = 1;
          optional int32 number = 2 [default = 7];
          repeated group Part = 3 { required uint32 size = 1; optional string text = 2; }
          repeated sint32 packed = 4 [packed = true];
          enum State { NEW = 1; DONE = 2; }
          optional State state = 5;
          extensions 100 to 199;
        }
        extend Old { optional string more = 100; }
        "#,
    ),
];

struct Sources;

impl FileResolver for Sources {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let found = FILES.iter().find(|(file, _)| *file == name);
        let (_, source) = found.ok_or_else(|| protox::Error::file_not_found(name))?;
        File::from_source(name, source)
    }
}

/// The encoded descriptor set, with imports.
pub(crate) static SET: LazyLock<Vec<u8>> = LazyLock::new(|| compile(&FILES.map(|(name, _)| name)));

/// The same, for those who decode with descriptors.
pub(crate) static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| DescriptorPool::decode(&**SET).unwrap());

/// As a bus knows them.
pub(crate) static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| {
    let schemas = Schemas::default();
    schemas.register(&SET, &KINDS.map(str::to_owned)).unwrap();
    schemas
});

/// An encoded descriptor set of some of the files, with imports.
pub(crate) fn compile(names: &[&str]) -> Vec<u8> {
    let mut resolver = ChainFileResolver::new();
    resolver.add(Sources);
    resolver.add(GoogleFileResolver::new());
    resolver.add(DescriptorSetFileResolver::decode(v1::FILE_DESCRIPTOR_SET).unwrap());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).include_source_info(false).open_files(names).unwrap();
    compiler.encode_file_descriptor_set()
}
