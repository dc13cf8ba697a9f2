//! `nimbus register`.

use std::fs;

use prost::Message as _;

use crate::cli::{World, files::Desk, nimbus, run};

const ZONE: &str =
    "syntax = \"proto3\";\npackage net.v1;\nmessage Zone { string name = 1; }\nmessage Rack { string row = 1; }\n";

/// A bus that knows nothing, and an empty directory.
async fn desk() -> Desk {
    Desk { world: World::start().await, folder: tempfile::tempdir().unwrap() }
}

#[tokio::test]
async fn a_file_is_enough_for_kinds_that_can_be_written() {
    let desk = desk().await;
    desk.write("zone.proto", ZONE);
    let ended = desk.run(&["register", "zone.proto"]);
    assert_eq!((ended.code, &*ended.err), (0, ""));
    assert_eq!(ended.out, "net.v1.Rack registered\nnet.v1.Zone registered\n");
    desk.write("a.yaml", "kind: net.v1.Zone\nname: a\nspec: {name: north}\n");
    assert_eq!(desk.run(&["apply", "-f", "a.yaml"]).code, 0);

    // The same again is fine, and so is a newer version that reads the old one.
    assert_eq!(desk.run(&["register", "zone.proto"]).code, 0);
    desk.write("zone.proto", &ZONE.replace("string name = 1;", "string name = 1; uint32 racks = 2;"));
    assert_eq!(desk.run(&["register", "zone.proto"]).code, 0);
    desk.write("a.yaml", "kind: net.v1.Zone\nname: a\nspec: {name: north, racks: 2}\n");
    let ended = desk.run(&["apply", "-f", "a.yaml"]);
    assert_eq!(&*ended.out, "net.v1.Zone/a changed\n0 created, 1 changed, 0 unchanged\n", "{}", ended.err);

    // One that does not is refused.
    desk.write("zone.proto", &ZONE.replace("string name = 1;", "uint32 name = 1;"));
    let ended = desk.run(&["register", "zone.proto"]);
    assert_eq!((ended.code, &*ended.out), (5, ""), "{}", ended.err);
    assert!(ended.err.contains("net.v1.Zone"), "{}", ended.err);
}

#[tokio::test]
async fn kinds_can_be_chosen_and_files_can_import_others() {
    let desk = desk().await;
    desk.write("proto/net/v1/zone.proto", ZONE);
    let site = "syntax = \"proto3\";\npackage site.v1;\nimport \"net/v1/zone.proto\";\nmessage Site { net.v1.Zone zone = 1; }\n";
    desk.write("proto/site/v1/site.proto", site);
    let arguments = ["register", "-I", "proto", "proto/site/v1/site.proto", "--kind", "site.v1.Site"];
    let ended = desk.run(&arguments);
    assert_eq!((ended.code, &*ended.out, &*ended.err), (0, "site.v1.Site registered\n", ""));

    let ended = desk.run(&["register", "proto/site/v1/site.proto"]);
    let said = "nimbus: site.proto:3:1: import 'net/v1/zone.proto' not found (hint: -I names the folder in which imports begin)\n";
    assert_eq!((ended.code, &*ended.out, &*ended.err), (5, "", said));
}

#[tokio::test]
async fn a_descriptor_set_is_as_good_as_its_sources() {
    let desk = desk().await;
    desk.write("zone.proto", ZONE);
    let set = protox::compile([desk.folder.path().join("zone.proto")], [desk.folder.path()]).unwrap();
    fs::write(desk.folder.path().join("zone.binpb"), set.encode_to_vec()).unwrap();
    let ended = desk.run(&["register", "zone.binpb", "--kind", "net.v1.Zone"]);
    assert_eq!((ended.code, &*ended.out, &*ended.err), (0, "net.v1.Zone registered\n", ""));
}

#[tokio::test]
async fn what_cannot_be_registered_is_said_with_its_place() {
    let desk = desk().await;
    let fails = |arguments: &[&str], code: i32, said: &str| {
        let ended = desk.run(arguments);
        assert_eq!((ended.code, &*ended.out, &*ended.err), (code, "", &*format!("nimbus: {said}\n")), "{arguments:?}");
    };
    fails(&["register", "none.proto"], 1, "cannot read none.proto: No such file or directory (os error 2)");
    fails(&["register", "none.binpb"], 1, "cannot read none.binpb: No such file or directory (os error 2)");
    desk.write("bad.proto", "syntax = \"proto3\";\nmessage Zone { string name }\n");
    fails(&["register", "bad.proto"], 5, "bad.proto:2:28: expected '=', but found '}'");
    desk.write("unknown.proto", "syntax = \"proto3\";\npackage a.v1;\nmessage Zone { Rack rack = 1; }\n");
    fails(&["register", "unknown.proto"], 5, "unknown.proto:3:16: name 'Rack' is not defined");
    desk.write("text.binpb", "hello");
    fails(
        &["register", "text.binpb"],
        5,
        "text.binpb: neither a .proto file nor a descriptor set \
         (hint: protoc --include_imports --descriptor_set_out=FILE writes descriptor sets)",
    );
    desk.write("zone.proto", ZONE);
    let ended = desk.run(&["register", "zone.proto", "--kind", "net.v1.Zoen"]);
    assert_eq!((ended.code, &*ended.out), (5, ""));
    assert!(ended.err.contains("net.v1.Zoen"), "{}", ended.err);
    assert_eq!(run(&mut nimbus(&["register"])).code, 2);
}
