//! New versions of files: which replace the older one, and which are refused.

use crate::schemas::{
    SchemaError, Schemas,
    tests::{COMMON, POLICY, compile, named, refused},
};

fn version(body: &str) -> Vec<u8> {
    compile(&[("demo.proto", &format!("syntax = \"proto3\"; package demo; {body}"))])
}

fn registered(body: &str) -> Schemas {
    let schemas = Schemas::default();
    schemas.register(&version(body), &[]).unwrap();
    schemas
}

#[test]
fn a_new_version_replaces_the_older_one() {
    let schemas = registered("message A { string name = 1; int32 size = 2; }");
    assert!(!schemas.has_field("demo.A", &["zone"]));
    let next = version("message A { string name = 1; string zone = 3; } message B {}");
    assert_eq!(schemas.register(&next, &[]).unwrap(), ["demo.A", "demo.B"]);
    assert!(schemas.has_field("demo.A", &["zone"]));
    assert!(!schemas.has_field("demo.A", &["size"]), "removed fields are gone");
    assert_eq!(schemas.field("demo.A", b"\x1a\x01x", &["zone"]).as_deref(), Some("x"));
}

#[test]
fn a_new_version_of_an_import_reaches_the_files_that_import_it() {
    let schemas = Schemas::default();
    schemas.register(&compile(&[POLICY, COMMON]), &[]).unwrap();
    let next = COMMON.1.replace("TIER_WEB = 1;", "TIER_WEB = 1; TIER_API = 2;");
    schemas.register(&compile(&[(COMMON.0, &next)]), &[]).unwrap();
    assert_eq!(schemas.field("demo.v1.NetworkPolicy", b"\x18\x02", &["tier"]).as_deref(), Some("TIER_API"));
}

#[test]
fn a_registered_kind_does_not_vanish() {
    let schemas = registered("message A {} message B {}");
    let error =
        refused(&schemas, &version("message B {}"), &[], "kind demo.A of demo.proto is registered and would vanish");
    assert!(matches!(error, SchemaError::KindVanishes { .. }));

    // A message that is no kind may.
    let schemas = Schemas::default();
    schemas.register(&version("message A {} message B {}"), &named(&["demo.B"])).unwrap();
    schemas.register(&version("message B {}"), &[]).unwrap();
}

#[test]
fn a_change_that_breaks_an_importer_is_refused() {
    let schemas = Schemas::default();
    schemas.register(&compile(&[POLICY, COMMON]), &named(&["demo.v1.NetworkPolicy"])).unwrap();
    let next = compile(&[(COMMON.0, &COMMON.1.replace("message Port", "message Door"))]);
    let error = schemas.register(&next, &[]).unwrap_err();
    assert!(matches!(&error, SchemaError::BadFile { file, .. } if file == "demo/v1/policy.proto"), "{error}");
    assert!(error.to_string().contains("demo.v1.Port"), "{error}");
}

#[test]
fn only_types_that_read_each_other_may_change() {
    #[track_caller]
    fn check(was: &str, now: &str, compatible: bool) {
        let schemas = registered(&format!("message A {{ {was} value = 1; }} message M {{}} enum E {{ ZERO = 0; }}"));
        let next = version(&format!("message A {{ {now} value = 1; }} message M {{}} enum E {{ ZERO = 0; }}"));
        let result = schemas.register(&next, &[]);
        assert_eq!(result.is_ok(), compatible, "{was} to {now}: {result:?}");
        if let Err(error) = result {
            assert!(error.to_string().starts_with("kind demo.A: field value"), "{error}");
        }
    }
    for (was, now) in [("int32", "uint64"), ("int64", "bool"), ("E", "int32"), ("sint32", "sint64")] {
        check(was, now, true);
        check(now, was, true);
    }
    check("fixed32", "sfixed32", true);
    check("fixed64", "sfixed64", true);
    check("string", "bytes", true);
    check("string", "repeated string", true);
    check("repeated M", "M", true);

    check("bytes", "string", false);
    check("string", "int32", false);
    check("int32", "sint32", false);
    check("int32", "fixed32", false);
    check("fixed32", "float", false);
    check("fixed64", "double", false);
    check("M", "string", false);
    check("string", "M", false);
    check("int32", "repeated int32", false);
    check("repeated int32", "int32", false);
    check("map<string, string>", "map<string, int32>", false);
}

#[test]
fn an_incompatible_field_is_named_with_its_path() {
    let schemas = registered(
        "message A { repeated B items = 4; } message B { A again = 1; C c = 2; } message C { int32 x = 7; }",
    );
    let next =
        version("message A { repeated B items = 4; } message B { A again = 1; C c = 2; } message C { string x = 7; }");
    let expected = "kind demo.A: field items.c.x (number 7) changes from int32 to string; use a new number instead";
    let error = refused(&schemas, &next, &[], expected);
    assert!(matches!(error, SchemaError::Incompatible { .. }));
}

#[test]
fn a_field_does_not_become_required() {
    let proto2 =
        |body: &str| compile(&[("old.proto", &format!("syntax = \"proto2\"; package old; message A {{ {body} }}"))]);
    let schemas = Schemas::default();
    schemas.register(&proto2("optional int32 x = 1; required int32 y = 2;"), &[]).unwrap();
    let expected = "kind old.A: field x (number 1) changes from int32 to required int32; use a new number instead";
    refused(&schemas, &proto2("required int32 x = 1; required int32 y = 2;"), &[], expected);
    let expected = "kind old.A: field z (number 3) changes from absent to required int32; use a new number instead";
    refused(&schemas, &proto2("optional int32 x = 1; required int32 y = 2; required int32 z = 3;"), &[], expected);
    schemas.register(&proto2("optional int32 x = 1; optional int32 y = 2;"), &[]).unwrap();
}

#[test]
fn a_file_under_another_name_takes_the_place_of_the_one_it_repeats() {
    // Two controllers compile the same file with different include roots.
    let schemas = registered("message A { string name = 1; }");
    let moved = "syntax = \"proto3\"; package demo; message A { string name = 1; string zone = 2; }";
    let moved = compile(&[("protos/demo.proto", moved)]);
    assert_eq!(schemas.register(&moved, &[]).unwrap(), ["demo.A"]);
    assert!(schemas.has_field("demo.A", &["zone"]));
    let files = &schemas.snapshot().files;
    assert!(!files.contains_key("demo.proto") && files.contains_key("protos/demo.proto"));
}

#[test]
fn a_file_that_others_import_is_not_taken_over() {
    let schemas = Schemas::default();
    schemas.register(&compile(&[POLICY, COMMON]), &[]).unwrap();
    let expected = "common.proto: it defines demo.v1.Port, and so does demo/v1/common.proto, \
                    which demo/v1/policy.proto imports";
    refused(&schemas, &compile(&[("common.proto", COMMON.1)]), &[], expected);
}

#[test]
fn copies_of_built_in_files_are_ignored_unless_they_contradict() {
    let schemas = Schemas::default();
    let ours = schemas.snapshot().files["nimbus/v1/object.proto"].bytes.clone();
    let key = |body: &str| {
        let object = format!("syntax = \"proto3\"; package nimbus.v1; message Key {{ {body} }}");
        let user =
            "syntax = \"proto3\"; package demo; import \"nimbus/v1/object.proto\"; message A { nimbus.v1.Key k = 1; }";
        compile(&[("demo.proto", user), ("nimbus/v1/object.proto", &object)])
    };
    // Another release of nimbus: fewer fields, more fields.
    assert_eq!(schemas.register(&key("string kind = 1; string more = 99;"), &[]).unwrap(), ["demo.A"]);
    assert_eq!(schemas.snapshot().files["nimbus/v1/object.proto"].bytes, ours);
    assert!(schemas.has_field("demo.A", &["k", "namespace"]));

    let expected = "nimbus/v1/object.proto: field nimbus.v1.Key.kind differs from that of the bus, \
                    which is built in and cannot be replaced";
    let error = refused(&schemas, &key("int32 kind = 1;"), &[], expected);
    assert!(matches!(error, SchemaError::BuiltIn { .. }));
    let fake = compile(&[("google/protobuf/any.proto", "syntax = \"proto3\"; package mine; message Any {}")]);
    assert!(matches!(schemas.register(&fake, &[]), Err(SchemaError::BuiltIn { .. })));
    let fake = compile(&[("any.proto", "syntax = \"proto3\"; package google.protobuf; message Any {}")]);
    let expected = "any.proto: it defines google.protobuf.Any of google/protobuf/any.proto, \
                    which is built in and cannot be replaced";
    refused(&schemas, &fake, &[], expected);
}
