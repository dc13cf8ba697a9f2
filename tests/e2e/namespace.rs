//! Namespaces of the kernel: mounts and networks that only some processes see.

use std::{
    ffi::OsStr,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

/// A process that holds namespaces, which go with it. It takes no rights that a developer does not have, where the kernel lets
/// users have namespaces.
pub(crate) struct Namespace(Child);

// === impl Namespace ===

impl Namespace {
    /// New namespaces of these sorts, such as `--mount` or `--net`, with a user who may do everything in them.
    pub(crate) fn new(sorts: &[&str]) -> Self {
        Self::hold(Command::new("unshare").args(["--user", "--map-root-user"]).args(sorts))
    }

    /// More of them, inside of these.
    pub(crate) fn inner(&self, sorts: &[&str]) -> Self {
        Self::hold(self.command("unshare").args(sorts))
    }

    fn hold(command: &mut Command) -> Self {
        // It ends when nobody holds its input any more, however the test ends.
        let script = "echo ready && exec cat";
        command.args(["sh", "-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", hint(command)));
        let mut line = String::new();
        let said = BufReader::new(process.stdout.take().expect("it is piped")).read_line(&mut line);
        assert!(said.is_ok() && line == "ready\n", "{}", hint(command));
        Self(process)
    }

    /// A program in these namespaces.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        let pid = self.0.id().to_string();
        command
            .args(["--user", "--mount", "--net", "--preserve-credentials", "--target", &pid])
            .arg(program);
        // Where the tools for networks are, which users need not have on their path.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
        command
    }

    /// Runs a line of shell in these namespaces, which must succeed.
    pub(crate) fn sh(&self, line: &str) {
        let output = self.command("sh").args(["-c", line]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {said} (hint: tests/run --install)");
    }

    /// Mounts a disk of this size there.
    pub(crate) fn mount(&self, size: &str, at: &Path) {
        self.sh(&format!("mount -t tmpfs -o size={size} tmpfs {}", at.display()));
    }

    /// The process that holds them.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Both fail only if the process has ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn hint(command: &Command) -> String {
    let hint =
        "this takes root, or a kernel that lets users have namespaces, as containers seldom do: see user_namespaces(7)";
    format!("this machine cannot make namespaces by {command:?} (hint: {hint})")
}
