//! References that schemas declare, from a .proto file to an agent that waits.

use std::{fs, os::unix::fs::PermissionsExt as _};

use crate::{
    cli::{World, files::Desk, run, sim::Sim},
    server::Server,
};

/// Nothing but this file, which imports one that is nowhere in the folder.
const NET: &str = r#"syntax = "proto3";
package net.v1;
import "nimbus/v1/options.proto";
message Gate {
  string zone = 1 [(nimbus.v1.refers) = {kind: "net.v1.Zone"}];
  repeated string others = 2 [(nimbus.v1.refers) = {kind: "net.v1.Gate", weak: true}];
}
message Zone { string text = 1; }
"#;

fn gate(zone: &str) -> String {
    format!("kind: net.v1.Gate\nname: west\nspec:\n  zone: {zone}\n")
}

/// A bus that knows these kinds, and a folder with a gate that needs a zone.
async fn desk() -> Desk {
    desk_with(World::start().await)
}

fn desk_with(world: World) -> Desk {
    let desk = Desk { world, folder: tempfile::tempdir().unwrap() };
    desk.write("net.proto", NET);
    desk.prints(&["register", "net.proto"], "net.v1.Gate registered\nnet.v1.Zone registered\n");
    desk.write("gate.yaml", &gate("a"));
    desk
}

#[tokio::test]
async fn what_a_schema_says_to_refer_to_others_orders_their_delivery() {
    let desk = desk().await;
    let _agent = Sim::start(&desk.world, &["--agents", "1", "--kind", "net.v1.Gate", "--kind", "net.v1.Zone"]);
    desk.world.agents("it", |agents| agents.len() == 1).await;
    desk.prints(&["apply", "-f", "gate.yaml"], "net.v1.Gate/west created\n1 created, 0 changed, 0 unchanged\n");
    desk.world.agents("one that waits", |agents| agents[0].pending == 1).await;
    let out = desk.run(&["explain", "sim-0", "gate", "west"]).out;
    let told: Vec<&str> = out.lines().take_while(|line| !line.is_empty()).collect();
    let expected = [
        "net.v1.Gate/west at sim-0: held",
        "  net.v1.Gate/west waits for net.v1.Zone/a: WAITING: needs net.v1.Zone/a",
        "  because net.v1.Zone/a does not exist (no such object)",
    ];
    assert_eq!(told, expected);
    desk.write("zone.yaml", "kind: net.v1.Zone\nname: a\nspec: {}\n");
    desk.prints(&["apply", "-f", "zone.yaml"], "net.v1.Zone/a created\n1 created, 0 changed, 0 unchanged\n");
    desk.world.settled(1).await;
}

#[tokio::test]
async fn what_only_a_spec_says_is_shown_apart_and_is_no_difference() {
    let desk = desk().await;
    desk.run(&["apply", "-f", "gate.yaml"]);
    desk.prints(&["apply", "-f", "gate.yaml"], "net.v1.Gate/west unchanged\n0 created, 0 changed, 1 unchanged\n");
    desk.prints(&["diff", "-f", "gate.yaml"], "");
    let shown = desk.run(&["get", "gate/west", "-o", "yaml"]).out;
    assert!(shown.starts_with(&gate("a")), "{shown}");
    assert!(shown.ends_with("  refs:\n    - kind: net.v1.Zone\n      name: a\n"), "{shown}");
    let described = desk.run(&["describe", "gate", "west"]).out;
    assert!(described.contains("net.v1.Zone/a (by its spec)"), "{described}");
    // What was read can be applied as it is, and changed.
    desk.write("read.yaml", &shown);
    desk.prints(&["apply", "-f", "read.yaml"], "net.v1.Gate/west unchanged\n0 created, 0 changed, 1 unchanged\n");
    desk.write("read.yaml", &shown.replacen("zone: a", "zone: b", 1));
    desk.prints(&["apply", "-f", "read.yaml"], "net.v1.Gate/west changed\n0 created, 1 changed, 0 unchanged\n");
    let shown = desk.run(&["get", "gate/west", "-o", "yaml"]).out;
    assert!(shown.ends_with("  refs:\n    - kind: net.v1.Zone\n      name: b\n"), "nothing is left of a: {shown}");
    // In an editor as well.
    let editor = desk.folder.path().join("editor");
    fs::write(&editor, "#!/bin/sh\ncp \"$1\" seen; sed -i 's/zone: b/zone: c/' \"$1\"\n").unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = desk.command(&["edit", "gate", "west"]);
    command
        .env("EDITOR", "./editor")
        .env("TMPDIR", desk.folder.path())
        .env("PATH", std::env::var_os("PATH").unwrap());
    assert_eq!(run(&mut command).out, "net.v1.Gate/west changed\n");
    let seen = fs::read_to_string(desk.folder.path().join("seen")).unwrap();
    assert!(seen.ends_with(&gate("b")), "{seen}");
    let shown = desk.run(&["get", "gate/west", "-o", "yaml"]).out;
    assert!(shown.ends_with("  refs:\n    - kind: net.v1.Zone\n      name: c\n"), "{shown}");
}

#[tokio::test]
async fn what_a_field_cannot_refer_to_is_said_with_the_field() {
    let desk = desk().await;
    desk.write("gate.yaml", &gate("two words"));
    let ended = desk.run(&["apply", "-f", "gate.yaml"]);
    assert!(ended.code != 0 && ended.err.contains("spec.zone: name \"two words\": expected"), "{}", ended.err);
    // A cycle needs something that can refer to its own kind, and means it.
    desk.write("net.proto", &NET.replace(", weak: true", ""));
    assert_eq!(desk.run(&["register", "net.proto"]).code, 0);
    desk.write("gate.yaml", &format!("{}  others: [west]\n", gate("a")));
    let ended = desk.run(&["apply", "-f", "gate.yaml"]);
    let said = "spec.others[0]: net.v1.Gate/west: its references form a cycle: net.v1.Gate/west -> net.v1.Gate/west";
    assert!(ended.code != 0 && ended.err.contains(said), "{}", ended.err);
}

#[tokio::test]
async fn a_restart_changes_nothing_of_what_specs_refer_to() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("nimbus.redb");
    let desk = desk_with(World::on(Server::start_in(&file, &[])).await);
    desk.run(&["apply", "-f", "gate.yaml"]);
    let shown = desk.run(&["get", "gate/west", "-o", "yaml"]).out;
    assert!(shown.ends_with("  refs:\n    - kind: net.v1.Zone\n      name: a\n"), "{shown}");
    let Desk { world, folder } = desk;
    // Killed.
    drop(world);
    let desk = Desk { world: World::on(Server::start_in(&file, &[])).await, folder };
    desk.prints(&["get", "gate/west", "-o", "yaml"], &shown);
    desk.prints(&["apply", "-f", "gate.yaml"], "net.v1.Gate/west unchanged\n0 created, 0 changed, 1 unchanged\n");
    // The kinds are known, with what they refer to.
    desk.write("gate.yaml", &gate("b"));
    desk.prints(&["apply", "-f", "gate.yaml"], "net.v1.Gate/west changed\n0 created, 1 changed, 0 unchanged\n");
    let shown = desk.run(&["get", "gate/west", "-o", "yaml"]).out;
    assert!(shown.ends_with("  refs:\n    - kind: net.v1.Zone\n      name: b\n"), "{shown}");
}
