//! `nimbus serve` as a process.

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

/// A bus in a process of its own, which ends with this value.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: String,
    /// Where it tells health and metrics.
    pub(crate) admin: String,
}

/// The command, as `cargo build` leaves it next to the tests.
pub(crate) fn binary() -> PathBuf {
    program("nimbus", "nimbus-cli")
}

/// A program, as `cargo build -p PACKAGE` leaves it next to the tests.
pub(crate) fn program(name: &str, package: &str) -> PathBuf {
    let test = env::current_exe().unwrap();
    let profile = test.parent().and_then(|deps| deps.parent()).expect("tests are in target/PROFILE/deps");
    let binary = profile.join(format!("{name}{}", env::consts::EXE_SUFFIX));
    assert!(binary.exists(), "{} is missing (hint: cargo build -p {package}, or tests/run)", binary.display());
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
        Self::spawn(
            Command::new(binary())
                .args(["serve", "--store", "memory", "--admin", "127.0.0.1:0", "--listen", listen])
                .args(flags),
        )
    }

    /// Starts a bus that keeps its objects in a file.
    pub(crate) fn start_in(file: &Path, flags: &[&str]) -> Self {
        Self::start_in_on("127.0.0.1:0", file, flags)
    }

    /// Starts a bus that keeps its objects in a file, there.
    pub(crate) fn start_in_on(listen: &str, file: &Path, flags: &[&str]) -> Self {
        let store = format!("redb:{}", file.display());
        Self::spawn(
            Command::new(binary())
                .args(["serve", "--listen", listen, "--admin", "127.0.0.1:0", "--store", &store])
                .args(flags),
        )
    }

    /// Starts a bus by a command that says where it listens.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut process = command
            .env("NIMBUS_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        let mut server = Self { process, address: String::new(), admin: String::new() };
        for (address, words) in [(&mut server.address, "listening on "), (&mut server.admin, "admin on ")] {
            let line = lines.next().and_then(Result::ok).unwrap_or_default();
            let said = line.strip_prefix(words);
            *address = said.unwrap_or_else(|| panic!("{line:?} does not begin with {words:?}")).to_owned();
        }
        server
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends it a signal, by the name that `kill` knows it under.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.process.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// Asks it to stop, and waits for it.
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.signal("TERM");
        self.process.wait().unwrap()
    }

    /// Waits for it to end by itself.
    pub(crate) fn wait(mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }

    /// Where it listens, as clients are told.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the process has ended by itself.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
