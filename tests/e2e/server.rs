//! `nimbus serve` as a process.

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

/// A bus in a process of its own, which ends with this value.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: String,
}

/// The command, as `cargo build` leaves it next to the tests.
pub(crate) fn binary() -> PathBuf {
    let test = env::current_exe().unwrap();
    let profile = test.parent().and_then(|deps| deps.parent()).expect("tests are in target/PROFILE/deps");
    let binary = profile.join(format!("nimbus{}", env::consts::EXE_SUFFIX));
    assert!(binary.exists(), "{} is missing (hint: cargo build -p nimbus-cli, or tests/run)", binary.display());
    binary
}

// === impl Server ===

impl Server {
    /// Starts a bus on any free port.
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_on("127.0.0.1:0", flags)
    }

    /// Starts a bus there: where another one was, if it is to be found by those who knew that one.
    pub(crate) fn start_on(listen: &str, flags: &[&str]) -> Self {
        let mut process = Command::new(binary())
            .args(["serve", "--store", "memory", "--listen", listen])
            .args(flags)
            .env("NIMBUS_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = process.stdout.take().expect("it is piped");
        let read = BufReader::new(stdout).read_line(&mut line);
        let address = line.trim().strip_prefix("listening on ").map(str::to_owned);
        let server = Self { process, address: address.clone().unwrap_or_default() };
        assert!(read.is_ok() && address.is_some(), "the first line of output is {line:?}");
        server
    }

    /// Sends it a signal, by the name that `kill` knows it under.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.process.id().to_string()]).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the process has ended by itself.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
