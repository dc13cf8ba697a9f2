//! Commands on a terminal, with somebody at it.

use std::process::Command;

use serde_json::Value;

use crate::{cli::World, demo, foreign, server::binary};

/// How a command on a terminal ended.
pub(super) struct Seen {
    pub(super) code: i64,
    /// Everything that was drawn.
    pub(super) drawn: String,
    /// The terminal is as it was before.
    pub(super) restored: bool,
}

/// Runs a command against that bus on a terminal; `terminal.py` says what the steps mean.
pub(super) fn at_terminal(world: &World, steps: &[&str], arguments: &[&str]) -> Seen {
    let output = Command::new(foreign::interpreter())
        .arg(demo::folder().join("cli/terminal.py"))
        .args(steps)
        .arg("--")
        .arg(binary())
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("NIMBUS_SERVER", &world.server.address)
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    Seen {
        code: seen["code"].as_i64().unwrap(),
        drawn: seen["drawn"].as_str().unwrap().to_owned(),
        restored: seen["restored"].as_bool().unwrap(),
    }
}
