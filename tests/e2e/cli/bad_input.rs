//! What makes no sense is refused with a hint, by every command.

use std::{fs, net::TcpListener};

use crate::{
    cli::{World, nimbus, run},
    demo,
};

#[test]
fn no_bus_is_said_by_every_command() {
    // The port was free a moment ago, and nobody is told of it.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let said = format!(
        "nimbus: cannot reach a bus at {address}: connection refused \
         (hint: start one with `nimbus serve`, or name another with --server)\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    fs::write(&file, "kind: demo.v1.NetworkPolicy\nname: web\nspec: {}\n").unwrap();
    let file = file.to_str().unwrap();
    let proto = folder.path().join("a.proto");
    fs::write(&proto, "syntax = \"proto3\";\nmessage A {}\n").unwrap();
    let proto = proto.to_str().unwrap();
    let commands: [&[&str]; 19] = [
        &["apply", "-f", file],
        &["diff", "-f", file],
        &["edit", "policy", "web"],
        &["delete", "-f", file],
        &["get", "policy"],
        &["get", "policy", "web"],
        &["list", "--all-kinds"],
        &["kinds"],
        &["register", proto],
        &["delete", "policy", "web"],
        &["version", "-o", "json"],
        &["agents"],
        &["propagation", "policy", "web"],
        &["wait", "policy", "web"],
        &["explain", "web-1", "policy", "web"],
        &["watch", "policy"],
        &["describe", "policy", "web"],
        &["top"],
        &["top", "--once"],
    ];
    for arguments in commands {
        for server in [address.clone(), format!("http://{address}")] {
            let ended = run(nimbus(arguments).args(["--server", &server]));
            assert_eq!((ended.code, &*ended.out, &*ended.err), (4, "", &*said), "{arguments:?}");
        }
    }
}

#[tokio::test]
async fn unknown_and_ambiguous_kinds_are_refused_by_every_command() {
    let mut world = World::start().await;
    world
        .register(&["demo/v1/network_policy.proto", "demo/v1/account.proto", "other/v1/network_policy.proto"])
        .await;
    for command in [&["get"][..], &["list"], &["watch"]] {
        let with = |kind| [command, &[kind]].concat();
        world.fails(
            &with("networkpolicy"),
            5,
            "kind \"networkpolicy\" is ambiguous: demo.v1.NetworkPolicy, other.v1.NetworkPolicy \
             (hint: write more of the name you mean)",
        );
        world.fails(
            &with("acount"),
            5,
            "kind \"acount\" is not known to the bus (hint: did you mean demo.v1.Account?)",
        );
        world.fails(&with("x"), 5, "kind \"x\" is not known to the bus (hint: `nimbus kinds` lists them)");
    }
    for command in ["get", "delete", "propagation", "wait", "describe"] {
        world.fails(
            &[command, "demo.v1.Acount", "a"],
            5,
            "kind \"demo.v1.Acount\" is not known to the bus (hint: did you mean demo.v1.Account?)",
        );
        world.fails(
            &[command, "account/a/b/c"],
            5,
            "\"account/a/b/c\" names no object (hint: write KIND NAME..., or KIND/NAME, or KIND/NAMESPACE/NAME)",
        );
        world.fails(
            &[command, "account", "a b"],
            5,
            "name \"a b\": expected 1 to 253 of the characters A-Z a-z 0-9 - _ . : @ + ~ =",
        );
    }
    world.fails(&["get", "account", "nix"], 3, "demo.v1.Account/nix does not exist at revision 0");
    world.fails(
        &["delete", "account"],
        5,
        "account is named, but no object of it (hint: write KIND NAME..., or KIND/NAME, or KIND/NAMESPACE/NAME)",
    );
}

#[tokio::test]
async fn selections_that_make_no_sense_are_refused() {
    let mut world = World::start().await;
    world.register(&["demo/v1/network_policy.proto"]).await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    let selector = "expected a selector such as `zone in (a,b),role=edge,tier!=db,gpu,!canary`";
    for command in ["get", "list"] {
        let fails = |flags: &[&str], said: &str| world.fails(&[&[command, "networkpolicy"], flags].concat(), 5, said);
        fails(&["-l", "zone in a"], &format!("selector \"zone in a\": {selector}"));
        fails(&["--filter", "spec.zoen=a"], "demo.v1.NetworkPolicy has no field zoen (did you mean zone?)");
        fails(
            &["--filter", "spec.rules=a"],
            "field demo.v1.NetworkPolicy.rules is repeated, only single values can be compared",
        );
    }
    world.fails(
        &["get", "networkpolicy", "web", "-l", "a=b"],
        5,
        "objects that are named are not selected by --selector, --filter, --limit or --require-complete",
    );
}

#[test]
fn wrong_usage_is_told_by_its_code() {
    let cases: [(&[&str], &str); 8] = [
        (&["get"], "required arguments were not provided"),
        (&["list"], "required arguments were not provided"),
        (&["list", "a", "--all-kinds"], "cannot be used with"),
        (&["get", "a", "-o", "xml"], "[possible values: table, wide, json, yaml, name]"),
        (&["get", "a", "--limit", "0"], "invalid value '0' for '--limit <N>'"),
        (&["kinds", "--server", "ftp://x"], "expected one such as http://127.0.0.1:7400"),
        (&["kinds", "--timeout", "never"], "expected seconds between 0.001 and 86400"),
        (&["completion", "basic"], "[possible values: bash, elvish, fish, powershell, zsh]"),
    ];
    for (arguments, words) in cases {
        let ended = run(&mut nimbus(arguments));
        assert_eq!((ended.code, &*ended.out), (2, ""), "{arguments:?}");
        assert!(ended.err.contains(words), "{arguments:?}: {}", ended.err);
    }
}
