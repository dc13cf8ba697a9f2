//! Files for commands to read.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use crate::cli::{Ended, World, run};

/// A directory with files in it, and a bus.
pub(super) struct Desk {
    pub(super) world: World,
    pub(super) folder: tempfile::TempDir,
}

/// The kinds of these tests.
const KINDS: &[&str] = &["demo/v1/network_policy.proto", "demo/v1/account.proto", "demo/v1/gateway.proto"];

/// A policy as a manifest.
pub(super) fn policy(name: &str, zone: &str) -> String {
    format!("kind: demo.v1.NetworkPolicy\nname: {name}\nspec:\n  zone: {zone}\n")
}

/// Ten thousand policies, in a hundred files in ten directories.
pub(super) fn ten_thousand(folder: &Path) {
    for file in 0..100 {
        let directory = folder.join(format!("many/{}", file / 10));
        fs::create_dir_all(&directory).unwrap();
        let documents: Vec<String> = (0..100).map(|n| policy(&format!("p{}", file * 100 + n), "a")).collect();
        fs::write(directory.join(format!("{file}.yaml")), documents.join("---\n")).unwrap();
    }
}

// === impl Desk ===

impl Desk {
    /// A bus that knows the kinds, and an empty directory.
    pub(super) async fn new() -> Self {
        Self::on(World::start().await).await
    }

    pub(super) async fn on(mut world: World) -> Self {
        world.register(KINDS).await;
        Self { world, folder: tempfile::tempdir().unwrap() }
    }

    /// Writes a file.
    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The command, in this directory.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.world.command(arguments);
        command.current_dir(self.folder.path());
        command
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Ended {
        run(&mut self.command(arguments))
    }

    /// It ends with this code, having printed and said exactly this.
    pub(super) fn ends(&self, arguments: &[&str], code: i32, out: &str, err: &str) {
        let ended = self.run(arguments);
        let expected = Ended { code, out: out.to_owned(), err: err.to_owned() };
        assert_eq!(ended, expected, "{arguments:?} prints\n{}\nand says\n{}", ended.out, ended.err);
    }

    /// It succeeds, and prints exactly this.
    pub(super) fn prints(&self, arguments: &[&str], out: &str) {
        self.ends(arguments, 0, out, "");
    }

    /// Runs it with this on its standard input.
    pub(super) fn run_with_input(&self, arguments: &[&str], input: &str) -> Ended {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = process.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ended { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }
}
