//! Documents that people follow step by step, followed step by step: files are written as they are shown, commands are run
//! in the order in which they are shown, and print what is shown.

mod markdown;
mod pattern;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use self::markdown::{Block, Step};
use crate::{
    outside::{self, Turn},
    server::{self, Server},
    wait,
};

/// A person who follows a document, in a project of their own.
pub(crate) struct Walkthrough {
    project: PathBuf,
    bus: Option<Server>,
    programs: Vec<(String, Program)>,
    _turn: Option<Turn>,
}

/// A program that goes on. It ends with this value.
struct Program(Child);

/// Where documents say that the bus is, in the words of those who listen and of those who connect. Tests take any free port.
const BUS: [&str; 2] = ["127.0.0.1:7400", "localhost:7400"];

/// Between two attempts of a command that does not do yet what it should.
const PAUSE: Duration = Duration::from_millis(50);

/// Where documents say that the sources of nimbus are, seen from the project.
const SOURCES: &str = "\"../nimbus/";

// === impl Walkthrough ===

impl Walkthrough {
    /// Begins in that folder, when nobody else builds.
    pub(crate) fn begin(project: &Path) -> Self {
        let turn = Turn::wait();
        fs::create_dir_all(project).unwrap();
        outside::pin(project);
        Self { _turn: Some(turn), ..Self::without_building(project) }
    }

    /// Begins in that folder with a document in which nothing is built.
    pub(crate) fn without_building(folder: &Path) -> Self {
        Self { project: folder.to_owned(), bus: None, programs: Vec::new(), _turn: None }
    }

    /// Does everything that the document says.
    pub(crate) async fn follow(&mut self, document: &str) {
        for block in markdown::blocks(document) {
            match block {
                Block::File { path, text } => self.write(&path, &text),
                Block::Console(steps) => {
                    for step in steps {
                        self.take(&step).await;
                    }
                }
                Block::Other => {}
            }
        }
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.project.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let sources = format!("\"{}/", outside::root().display());
        fs::write(file, text.replace(SOURCES, &sources)).unwrap();
    }

    async fn take(&mut self, step: &Step) {
        let Step { command, output } = step;
        if command.starts_with("nimbus serve") {
            self.serve(command);
        } else if command.starts_with("cargo run") {
            self.start(command);
        } else if command.starts_with("cargo ") {
            let (is_right, printed) = self.attempt(step);
            assert!(is_right, "$ {command}\n{printed}\ninstead of\n{output}");
        } else {
            self.until(step).await;
        }
    }

    /// Starts a bus; where it was, if there was one.
    fn serve(&mut self, command: &str) {
        let listen = match self.bus.take() {
            None => "127.0.0.1:0".to_owned(),
            Some(bus) => {
                let address = bus.address.clone();
                assert!(bus.stop().success());
                address
            }
        };
        let mut serve = Command::new(server::binary());
        let arguments = command.split_whitespace().skip(1);
        serve
            .args(arguments)
            .env("NIMBUS_LISTEN", listen)
            .env("NIMBUS_ADMIN", "127.0.0.1:0")
            .current_dir(&self.project);
        self.bus = Some(Server::spawn(&mut serve));
    }

    /// Starts a program; anew, if it runs. It is built before, because nobody waits for a compiler as long as it may take.
    fn start(&mut self, command: &str) {
        self.programs.retain(|(running, _)| running != command);
        let (built, printed) = self.run("cargo build --quiet");
        assert!(built, "{printed}");
        let program = self.shell(&format!("exec {command}")).stdout(Stdio::null()).spawn().unwrap();
        self.programs.push((command.to_owned(), Program(program)));
    }

    /// Runs a command until it does what it should: agents and controllers need a moment.
    async fn until(&self, step: &Step) {
        let mut last = String::new();
        let attempts = async {
            loop {
                let (is_right, printed) = self.attempt(step);
                if is_right {
                    break;
                }
                last = printed;
                tokio::time::sleep(PAUSE).await;
            }
        };
        let ended = tokio::time::timeout(wait::GUARD, attempts).await;
        assert!(ended.is_ok(), "$ {}\n{last}\ninstead of\n{}", step.command, step.output);
    }

    /// Whether a command does what it should, and what it prints. If nothing is shown of that, it has to end well.
    fn attempt(&self, Step { command, output }: &Step) -> (bool, String) {
        let (worked, printed) = self.run(command);
        let printed = self.local(&printed);
        (if output.is_empty() { worked } else { pattern::matches(output, &printed) }, printed)
    }

    fn run(&self, command: &str) -> (bool, String) {
        let output = self.shell(&format!("{{ {command}\n}} 2>&1")).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    }

    fn shell(&self, command: &str) -> Command {
        let address = self.bus.as_ref().map(|bus| bus.address.as_str()).unwrap_or_default();
        let command = BUS.iter().fold(command.to_owned(), |command, bus| command.replace(bus, address));
        let mut shell = Command::new("bash");
        outside::surround(&mut shell).args(["-c", &command]).current_dir(&self.project);
        shell.env("NIMBUS_SERVER", address).stdin(Stdio::null());
        shell
    }

    /// What is printed, with the address as documents have it.
    fn local(&self, printed: &str) -> String {
        match &self.bus {
            Some(bus) => printed.replace(&bus.address, BUS[0]),
            None => printed.to_owned(),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail only if the process has ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
