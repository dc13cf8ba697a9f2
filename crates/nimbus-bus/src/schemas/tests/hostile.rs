//! Descriptors that no compiler writes: refused, quickly and without a panic.

use std::fmt::Write as _;

use proptest::prelude::*;
use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet, MessageOptions,
    field_descriptor_proto::{Label, Type},
};

use crate::schemas::{
    SchemaError, Schemas,
    tests::{COMMON, POLICY, compile, observed, refused},
};

fn file(name: &str, imports: &[&str], public: &[i32]) -> FileDescriptorProto {
    FileDescriptorProto {
        name: Some(name.to_owned()),
        syntax: Some("proto3".to_owned()),
        dependency: imports.iter().map(|import| (*import).to_owned()).collect(),
        public_dependency: public.to_vec(),
        ..Default::default()
    }
}

fn message(name: &str) -> DescriptorProto {
    DescriptorProto { name: Some(name.to_owned()), ..Default::default() }
}

fn field(name: &str, number: i32, of: Type) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(of.into()),
        ..Default::default()
    }
}

fn set(file: Vec<FileDescriptorProto>) -> Vec<u8> {
    FileDescriptorSet { file }.encode_to_vec()
}

#[test]
fn files_do_not_import_each_other_in_a_circle() {
    // Prost-reflect overflows its stack on a circle of public imports.
    let circle = set(vec![file("a.proto", &["b.proto"], &[0]), file("b.proto", &["a.proto"], &[0])]);
    let expected = "a.proto: it imports itself, or files that import each other in a circle";
    refused(&Schemas::default(), &circle, &[], expected);
    refused(&Schemas::default(), &set(vec![file("a.proto", &["a.proto"], &[])]), &[], expected);
    let expected = "a.proto: public import 3 does not exist";
    refused(&Schemas::default(), &set(vec![file("a.proto", &[], &[3])]), &[], expected);
}

#[test]
fn public_imports_are_seen_through_several_files() {
    // Prost-reflect looks through one of them only; protox links with it, so this set is written by hand.
    let mut user = message("A");
    user.field
        .push(FieldDescriptorProto { type_name: Some(".D".into()), ..field("d", 1, Type::Message) });
    let files = vec![
        FileDescriptorProto { message_type: vec![user], ..file("a.proto", &["b.proto"], &[]) },
        file("b.proto", &["c.proto"], &[0]),
        file("c.proto", &["d.proto"], &[0]),
        FileDescriptorProto { message_type: vec![message("D")], ..file("d.proto", &[], &[]) },
    ];
    assert_eq!(Schemas::default().register(&set(files), &[]).unwrap(), ["A", "D"]);
}

#[test]
fn many_ways_through_public_imports_take_no_longer_than_one() {
    // Sixty layers of two files that import both files of the next layer: 2^60 paths. Prost-reflect follows all of them
    // for a file that imports every layer, the last one first.
    let name = |layer: usize, side: &str| format!("{layer}{side}.proto");
    let layers = (0..60).flat_map(|layer| {
        let next = [name(layer + 1, "l"), name(layer + 1, "r")];
        ["l", "r"].map(|side| file(&name(layer, side), &[&next[0], &next[1]], &[0, 1]))
    });
    let last = ["l", "r"].map(|side| file(&name(60, side), &[], &[]));
    let mut files: Vec<_> = layers.chain(last).collect();
    let all: Vec<_> = files.iter().rev().map(|file| file.name().to_owned()).collect();
    files.push(file("all.proto", &all.iter().map(String::as_str).collect::<Vec<_>>(), &[]));
    Schemas::default().register(&set(files), &[]).unwrap();
}

#[test]
fn malformed_files_are_refused() {
    let check = |change: fn(&mut FileDescriptorProto), expected: &str| {
        let mut changed = file("a.proto", &[], &[]);
        changed.message_type.push(message("A"));
        change(&mut changed);
        let error = refused(&Schemas::default(), &set(vec![changed]), &[], expected);
        assert!(matches!(error, SchemaError::BadFile { .. }));
    };
    check(|f| f.name = None, "a file without a name: the name of a file has 1 to 512 bytes");
    check(|f| f.syntax = Some("editions".into()), "a.proto: editions are not supported (hint: use syntax proto3)");
    check(|f| f.syntax = Some("proto9".into()), "a.proto: unknown syntax \"proto9\"");
    check(|f| f.package = Some("a..b".into()), "a.proto: \"\" is not an identifier");
    check(|f| f.message_type[0].name = None, "a.proto: \"\" is not an identifier");
    check(|f| f.message_type[0].name = Some("9".into()), "a.proto: \"9\" is not an identifier");
    check(
        |f| f.message_type[0].field = vec![field("x", 1, Type::Int32), field("y", 1, Type::Int32)],
        "a.proto: field number '1' is already used",
    );
    check(
        |f| f.message_type[0].options = Some(MessageOptions { map_entry: Some(true), ..Default::default() }),
        "a.proto: map entry A has not exactly two fields",
    );
    check(|f| f.package = Some("p".repeat(512)), "a.proto: a full name has more than 512 bytes");
    check(
        |f| {
            let value =
                |n: i32| EnumValueDescriptorProto { name: Some(format!("V{n}")), number: Some(n), options: None };
            let value = (0..5_001).map(value).collect();
            f.enum_type
                .push(EnumDescriptorProto { name: Some("E".into()), value, ..Default::default() });
        },
        "a.proto: E has 5001 members of one sort, the limit is 5000",
    );
    check(
        |f| {
            f.message_type[0].field =
                vec![FieldDescriptorProto { type_name: Some(".q.Missing".into()), ..field("x", 1, Type::Message) }];
        },
        "a.proto: name '.q.Missing' is not defined",
    );
}

#[test]
fn one_file_has_one_content() {
    let other = FileDescriptorProto { package: Some("p".into()), ..file("a.proto", &[], &[]) };
    let same = file("a.proto", &[], &[]);
    let expected = "a.proto: it is in the set twice, with different content";
    refused(&Schemas::default(), &set(vec![same.clone(), other]), &[], expected);
    Schemas::default().register(&set(vec![same.clone(), same]), &[]).unwrap();
}

#[test]
fn extensions_are_limited_across_files() {
    let extensions = |file: usize| {
        let mut source = format!("syntax = \"proto2\"; package p{file}; import \"google/protobuf/descriptor.proto\";");
        source.push_str("extend google.protobuf.FieldOptions {");
        for number in 0..1_001 {
            write!(source, "optional int32 x{number} = {};", 50_000 + file * 2_000 + number).unwrap();
        }
        source.push('}');
        compile(&[(&format!("{file}.proto"), &source)])
    };
    let schemas = Schemas::default();
    schemas.register(&extensions(0), &[]).unwrap();
    let expected = "extensions in all registered files: 2002 is more than the limit of 2000";
    refused(&schemas, &extensions(1), &[], expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_sets_never_panic_and_never_half_register(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        thread_local!(static SET: Vec<u8> = compile(&[POLICY, COMMON]));
        let mut damaged = SET.with(Clone::clone);
        for (index, byte) in damage {
            let at = index.index(damaged.len());
            damaged[at] = byte;
        }
        if let Some(cut) = cut {
            let at = cut.index(damaged.len());
            damaged.truncate(at);
        }
        let schemas = Schemas::default();
        let before = observed(&schemas);
        if schemas.register(&damaged, &[]).is_err() {
            prop_assert_eq!(observed(&schemas), before);
        }
    }
}
