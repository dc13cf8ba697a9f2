//! A client in another language, which knows nothing of nimbus but what reflection tells it: `foreign.py`.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{demo, server};

/// Runs one scenario of `foreign.py`, which starts and stops its servers itself. It says `ok: …` for everything that
/// it has seen.
fn python(scenario: &str) {
    let output = Command::new(interpreter())
        .arg(demo::folder().join("foreign.py"))
        .arg(server::binary())
        .arg(scenario)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{scenario} failed:\n{out}\n{complaint}");
    assert!(out.lines().any(|line| line.starts_with("ok: ")), "{scenario} has seen nothing:\n{out}\n{complaint}");
}

/// Python, with what the tests need.
pub(crate) fn interpreter() -> PathBuf {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cache/venv/bin/python");
    let interpreter = env::var_os("NIMBUS_PYTHON").map_or(installed, PathBuf::from);
    let missing = "Python with grpcio is missing";
    assert!(interpreter.exists(), "{missing}: {} (hint: tests/run installs it)", interpreter.display());
    interpreter
}

#[test]
fn a_python_client_with_reflection_alone_publishes_and_reads() {
    python("publishes_and_reads");
}

#[test]
fn a_python_client_resumes_and_is_sent_exactly_what_changed() {
    python("resumes_and_is_sent_what_changed");
}

#[test]
fn a_python_client_keeps_everything_while_a_restarted_bus_is_refilled() {
    python("keeps_everything_while_the_bus_is_refilled");
}

#[test]
fn a_python_client_syncs_and_what_it_does_not_name_is_swept() {
    python("syncs_and_sweeps");
}

#[test]
fn a_python_client_reads_the_details_of_errors() {
    python("reads_the_details_of_errors");
}

#[test]
fn a_python_client_gets_a_kind_that_nobody_registered_as_bytes() {
    python("gets_unregistered_kinds_as_bytes");
}

#[test]
fn a_python_client_is_told_that_a_newer_session_took_over() {
    python("is_told_of_a_newer_session");
}
