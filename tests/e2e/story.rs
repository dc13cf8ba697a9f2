//! `nimbus demo`: the story that it tells, and how it ends.

use std::{
    fs,
    io::{BufRead as _, BufReader, Lines},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio},
};

use tempfile::TempDir;

use crate::{grpcurl, server::binary, wait};

/// What must be on the screen, in this order.
const STEPS: [&str; 7] = [
    "1. A policy is applied",
    "2. It reaches every agent",
    "3. One agent rejects",
    "4. One agent is cut off",
    "5. The controller is restarted",
    "6. The bus is killed",
    "That was the story; every step of it was seen to happen.",
];

/// A demo that runs, with temporary files of its own. It ends with this value.
struct Demo {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    files: TempDir,
    said: Vec<String>,
}

/// What a demo has said.
struct Told(String);

fn command(files: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.arg("demo").args(flags).env("TMPDIR", files).env_remove("NIMBUS_LOG");
    command.stdin(Stdio::null());
    command
}

/// Whether nothing is left in a folder.
fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

// === impl Demo ===

impl Demo {
    fn start(flags: &[&str]) -> Self {
        let files = tempfile::tempdir().unwrap();
        let mut command = command(files.path(), &["--listen", "127.0.0.1:0"]);
        let mut process = command.args(flags).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines, files, said: Vec::new() }
    }

    /// Reads until a line has these words in it, and gives that line.
    fn until(&mut self, words: &str) -> String {
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            self.said.push(line.clone());
            if line.contains(words) {
                return line;
            }
        }
        panic!("it never said {words:?}, but:\n{}", self.said.join("\n"));
    }

    /// Where its bus listens.
    fn address(&mut self) -> String {
        let line = self.until("the bus listens at");
        line.split("http://").nth(1).and_then(|rest| rest.split(": ").next()).unwrap().to_owned()
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.process.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// Waits until it has ended and nothing of it is left.
    async fn ended(mut self, address: &str) -> ExitStatus {
        let status = self.process.wait().unwrap();
        wait::until("the end of the bus", || TcpStream::connect(address).is_err()).await;
        assert!(is_empty(self.files.path()), "files are left");
        status
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Both fail only if the process has ended by itself.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

// === impl Told ===

impl Told {
    fn new(output: &Output) -> Self {
        let told = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "nothing went wrong");
        Self(told)
    }

    /// The number that comes after these words.
    fn number_after(&self, words: &str) -> f64 {
        let (_, rest) = self.0.split_once(words).unwrap_or_else(|| panic!("{words:?} is not in:\n{}", self.0));
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end]
            .parse()
            .unwrap_or_else(|_| panic!("no number after {words:?} in:\n{}", self.0))
    }

    /// Events and bytes that were sent, after these words.
    fn sent(&self, words: &str) -> (u64, f64) {
        let (_, rest) = self.0.split_once(words).unwrap_or_else(|| panic!("{words:?} is not in:\n{}", self.0));
        let of = Self(rest.lines().next().unwrap().to_owned());
        let unit = if of.0.contains("kB") { 1e3 } else { 1.0 };
        (of.number_after("") as u64, of.number_after("events, ") * unit)
    }
}

fn check_story(agents: u64) {
    let files = tempfile::tempdir().unwrap();
    let flags = ["--once", "--listen", "127.0.0.1:0", "--agents", &agents.to_string()];
    let told = Told::new(&command(files.path(), &flags).output().unwrap());
    let text = &told.0;
    assert!(is_empty(files.path()), "files are left");
    assert!(!text.contains('\x1b'), "colour without a terminal:\n{text}");

    let at: Vec<_> = STEPS
        .iter()
        .map(|step| text.find(step).unwrap_or_else(|| panic!("no {step:?}:\n{text}")))
        .collect();
    assert!(at.is_sorted(), "{text}");
    assert!(text.contains(&format!("{agents} of {agents} agents have applied it: 100 %")), "{text}");
    let latencies = ["p50 ", "p99 ", "all within "].map(|words| told.number_after(words));
    assert!(latencies.is_sorted(), "{text}");
    let rejected = "south-1 has not: TABLE_FULL: 6 statements, but there is room for 4 only";
    assert!(text.contains(&format!("{} of {agents} agents have applied it; {rejected}", agents - 1)), "{text}");

    let (difference, full) = (told.sent("sent to it: "), told.sent("a newcomer in its zone was sent it: "));
    // Three were edited, one was deleted, one is new; forty everyday policies and the one of the story were there.
    assert_eq!((difference.0, full.0), (5, 41), "{text}");
    assert!(difference.1 > 0.0 && difference.1 < full.1 / 2.0, "{text}");
    assert_eq!(told.sent(&format!("sent to {agents} agents: ")).0, 0, "{text}");
    let revision = told.number_after("revision unchanged: ");
    assert!(text.contains(&format!("{revision} before, {revision} after")), "{text}");
    assert!(
        text.contains(&format!("{agents} of {agents} agents are back, all of them where they were: 0 events")),
        "{text}"
    );
}

#[test]
fn the_demo_tells_its_story_and_every_step_of_it_happens() {
    check_story(6);
}

#[test]
fn the_demo_tells_its_story_with_a_hundred_agents() {
    check_story(100);
}

#[tokio::test]
async fn a_demo_that_is_interrupted_in_the_middle_leaves_nothing_behind() {
    for (signal, words, code) in [("INT", "the bus listens at", 130), ("INT", STEPS[2], 130), ("TERM", STEPS[4], 143)] {
        let mut demo = Demo::start(&[]);
        let address = demo.address();
        if !words.starts_with("the bus") {
            demo.until(words);
        }
        demo.signal(signal);
        assert_eq!(demo.ended(&address).await.code(), Some(code), "{signal} at {words:?}");
    }
}

#[tokio::test]
async fn after_the_story_the_demo_goes_on_and_what_it_tells_people_to_type_works() {
    let mut demo = Demo::start(&[]);
    let address = demo.address();
    let edit = demo.until("edit 1: ");
    assert!(edit.contains("6 of 6 agents have applied it"), "{edit}");
    let folder = Path::new(grpcurl::command().get_program()).parent().unwrap().to_owned();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let commands: Vec<_> = demo.said.iter().filter_map(|line| line.trim().strip_prefix("$ ")).collect();
    let count = |what: &str| commands.iter().filter(|command| command.contains(what)).count();
    assert!(count("grpcurl ") >= 6 && count("nimbus ") >= 8, "{commands:?}");
    let goes_on = |command: &str| ["Subscribe", "watch networkpolicy", "top"].iter().any(|end| command.ends_with(end));
    let mut answers = String::new();
    for command in commands.into_iter().filter(|command| !goes_on(command)) {
        let output = Command::new("sh")
            .args(["-c", command])
            .env("PATH", &path)
            .env("NIMBUS_SERVER", &address)
            .output()
            .unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        answers.push_str(&String::from_utf8(output.stdout).unwrap());
    }
    for words in [
        "nimbus.v1.Fleet",
        "nimbus.v1.Standing",
        "tcp dport 443 accept",
        "VERDICT_APPLIED",
        "south-1",
        "RESULT_CREATED",
        "demo.v1.ZoneRules       ",
        "100%: 2 of 2 agents have applied it",
        "at south-1: applied",
    ] {
        assert!(answers.contains(words), "{words:?} is not in:\n{answers}");
    }
    demo.signal("INT");
    assert_eq!(demo.ended(&address).await.code(), Some(0), "the story was told");
}

#[tokio::test]
async fn a_demo_that_is_killed_takes_its_bus_along() {
    let mut demo = Demo::start(&[]);
    let address = demo.address();
    demo.signal("KILL");
    wait::until("the end of the bus", || TcpStream::connect(&address).is_err()).await;
}

#[test]
fn the_store_of_a_demo_is_kept_if_it_is_wanted() {
    let (files, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = kept.path().join("demo.redb");
    let store = format!("redb:{}", file.display());
    let flags = ["--once", "--listen", "127.0.0.1:0", "--store", &store];
    Told::new(&command(files.path(), &flags).output().unwrap());
    assert!(is_empty(files.path()) && file.exists());

    let again = command(files.path(), &flags).output().unwrap();
    let said = String::from_utf8(again.stderr).unwrap();
    assert_eq!(again.status.code(), Some(1), "{said}");
    assert!(said.contains("exists already (hint: the demo begins with an empty store"), "{said}");
    assert!(is_empty(files.path()));
}

#[test]
fn a_demo_that_cannot_begin_says_why_with_a_hint() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let files = tempfile::tempdir().unwrap();
    let cases: [(&[&str], i32, &str); 4] = [
        (
            &["--listen", &taken],
            1,
            "(hint: is a bus running there? Stop it, or listen elsewhere: nimbus demo --listen 127.0.0.1:0)",
        ),
        (&["--agents", "2"], 2, "2 is not in 3..=20000"),
        (&["--store", "memory"], 2, "expected redb:PATH"),
        (&["--speed", "0"], 2, "expected a factor between 0.1 and 100"),
    ];
    for (flags, code, words) in cases {
        let output = command(files.path(), flags).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{flags:?}: {said}");
        assert!(said.contains(words), "{flags:?}: {said}");
        assert!(is_empty(files.path()), "{flags:?}");
    }
}
