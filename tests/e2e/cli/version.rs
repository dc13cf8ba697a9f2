//! `nimbus version`, `nimbus completion`, `nimbus --help`.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use serde_json::json;

use crate::cli::{World, nimbus, run};

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[tokio::test]
async fn versions_are_those_of_the_command_and_what_the_bus_says() {
    let world = World::start().await;
    let client = format!("client: {VERSION}\n");
    assert_eq!(run(&mut nimbus(&["version", "--client"])).out, client);
    let json = run(&mut nimbus(&["version", "--client", "-o", "json"])).out;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), json!({"client": {"version": VERSION}}));

    let shown = world.run(&["version"]);
    let address = &world.server.address;
    let server = shown.out.strip_prefix(&client).unwrap();
    let epoch = server
        .strip_prefix(&format!("server: reachable at {address}, epoch "))
        .unwrap()
        .get(..16)
        .unwrap();
    let rest = format!("server: reachable at {address}, epoch {epoch}, revision 0, 0 agents connected\n");
    assert_eq!(server, rest);
    let json: serde_json::Value = serde_json::from_str(&world.run(&["version", "-o", "json"]).out).unwrap();
    let server = json!({"address": address, "epoch": epoch, "revision": 0, "agentsConnected": 0});
    assert_eq!(json, json!({"client": {"version": VERSION}, "server": server}));
}

#[test]
fn completion_scripts_name_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&mut nimbus(&["completion", shell]));
        assert_eq!((script.code, &*script.err), (0, ""));
        for word in [
            "get",
            "list",
            "kinds",
            "delete",
            "agents",
            "propagation",
            "wait",
            "explain",
            "watch",
            "describe",
            "top",
            "completion",
            "show-secrets",
        ] {
            assert!(script.out.contains(word), "{shell} does not complete {word}");
        }
    }
    let script = run(&mut nimbus(&["completion", "bash"])).out;
    let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(bash.wait().unwrap().success(), "bash reads it");
}

#[test]
fn the_help_lists_commands_and_exit_codes() {
    let help = run(&mut nimbus(&["--help"])).out;
    for words in [
        "serve",
        "get ",
        "list ",
        "kinds ",
        "delete ",
        "agents ",
        "propagation ",
        "wait ",
        "explain ",
        "watch ",
        "describe ",
        "top ",
        "version ",
        "completion ",
        "Exit codes:",
        "  6    conflict",
    ] {
        assert!(help.contains(words), "{words} is not in\n{help}");
    }
}
