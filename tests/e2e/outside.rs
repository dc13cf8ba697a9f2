//! Projects outside of this one, as users have them: built with what is on this machine, beside what is built here.

use std::{
    env, fs,
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{grpcurl, server};

/// The right to build, which one test at a time has: they share what they depend on, and have it compiled once.
pub(crate) struct Turn {
    _lock: File,
}

/// The top of this project.
pub(crate) fn root() -> PathBuf {
    fs::canonicalize(env!("CARGO_MANIFEST_DIR")).unwrap()
}

/// What outside projects are built into: a folder beside those of this project, so that it is kept from run to run.
fn target() -> PathBuf {
    let binary = server::binary();
    let profile = binary.parent().expect("the command is in target/PROFILE");
    profile.with_file_name("outside")
}

/// Makes cargo work with what is there, and finds the programs that people are told to call.
pub(crate) fn surround(command: &mut Command) -> &mut Command {
    let tools = [server::binary(), PathBuf::from(grpcurl::command().get_program())];
    let folders = tools.iter().filter_map(|tool| tool.parent()).map(Path::to_owned);
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(folders.chain(env::split_paths(&path))).unwrap();
    command
        .env("PATH", path)
        .env("CARGO_TARGET_DIR", target())
        .env("CARGO_NET_OFFLINE", "true")
        .env("CARGO_TERM_COLOR", "never")
        // Nobody looks into these programs with a debugger, and nobody builds them twice.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_INCREMENTAL", "0")
}

/// Without a lock file, cargo would look for the newest versions, and this machine has those of this project only.
pub(crate) fn pin(project: &Path) {
    fs::copy(root().join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
}

// === impl Turn ===

impl Turn {
    /// Waits until nobody else builds.
    pub(crate) fn wait() -> Self {
        fs::create_dir_all(target()).unwrap();
        let lock = File::create(target().join("turn.lock")).unwrap();
        lock.lock().unwrap();
        Self { _lock: lock }
    }
}
