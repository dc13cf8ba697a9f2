//! The agent in `agents/python`, which was written from the document of the protocol alone: a process that is killed,
//! on a bus that is killed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use nimbus_wire::v1::{self, bus_client::BusClient, fleet_client::FleetClient, publisher_client::PublisherClient};
use serde_json::Value;
use tokio::sync::mpsc::{self, Receiver};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};

use crate::{demo, foreign, server::Server, wait};

const PUBLISHER: &str = "controller";
/// Three of these are silence: short enough to wait for, and longer than a busy machine lets anybody wait.
const QUICK: [&str; 2] = ["--bookmark-interval", "1"];

/// What an agent has on disk: its state, and the files that it writes.
struct Home {
    folder: PathBuf,
}

/// The agent as a process, which ends with this value as if it was killed.
struct Agent {
    process: Child,
    lines: Receiver<Value>,
}

/// A controller that numbers its generations itself, as one must whose bus forgets.
struct Controller {
    wanted: BTreeMap<String, v1::Object>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/python")
}

fn python() -> Command {
    let mut command = Command::new(foreign::interpreter());
    command.env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::null());
    command
}

/// The key of a policy, as the trace has it.
fn traced(name: &str) -> String {
    format!("{}/{name}", demo::KIND)
}

fn events<'a>(lines: &'a [Value], event: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

/// The keys in a field of all events of that sort.
fn keys(lines: &[Value], event: &str, field: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in events(lines, event) {
        let names = line[field].as_array().cloned().unwrap_or_else(|| vec![line[field].clone()]);
        for name in names {
            assert!(found.insert(name.as_str().unwrap().to_owned()), "{name} occurs twice in {lines:#?}");
        }
    }
    found
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| traced(name)).collect()
}

async fn channel(server: &Server) -> Channel {
    Endpoint::from_shared(format!("http://{}", server.address))
        .unwrap()
        .connect()
        .await
        .unwrap()
}

async fn publisher(server: &Server) -> PublisherClient<Channel> {
    PublisherClient::new(channel(server).await)
}

/// A bus with the kind of the tests.
async fn bus(listen: &str) -> (Server, PublisherClient<Channel>) {
    let server = Server::start_on(listen, &QUICK);
    let mut publisher = publisher(&server).await;
    let descriptor_set = demo::descriptor_set().into();
    let register = v1::RegisterKindsRequest { descriptor_set, kinds: Vec::new() };
    publisher.register_kinds(register).await.unwrap();
    (server, publisher)
}

// === impl Home ===

impl Home {
    fn new(test: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("python-agent-{test}-{}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    fn state(&self) -> PathBuf {
        self.folder.join("state.db")
    }

    /// Where the policy of that name is written.
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("files/{},/{name}.json", demo::KIND))
    }

    /// The files must be exactly what the controller wants.
    fn assert_is(&self, controller: &Controller) {
        let folder = self.path("any");
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(folder.parent().unwrap()).unwrap() {
            let path = entry.unwrap().path();
            let value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let name = value["name"].as_str().unwrap().to_owned();
            assert_eq!(path, self.path(&name));
            found.insert(name, (value["generation"].as_u64().unwrap(), value["spec"].clone()));
        }
        let wanted = controller.wanted.values().map(|object| {
            let spec: demo::NetworkPolicy =
                prost::Message::decode(object.spec.as_ref().unwrap().value.as_slice()).unwrap();
            let spec = serde_json::json!({ "zone": spec.zone, "priority": spec.priority });
            (object.name.clone(), (object.generation, spec))
        });
        assert_eq!(found, wanted.collect());
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

// === impl Agent ===

impl Agent {
    fn start(home: &Home, address: &str) -> Self {
        let mut process = python()
            .arg(folder().join("example.py"))
            .args(["--bus", address, "--agent", "python-1", "--label", "zone=a", "--kind", demo::KIND, "--trace"])
            .arg("--state")
            .arg(home.state())
            .arg("--directory")
            .arg(home.folder.join("files"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = process.stdout.take().expect("it is piped");
        // When it is full, the agent waits until somebody listens.
        let (sender, lines) = mpsc::channel(4096);
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let line = serde_json::from_str(&line.unwrap()).unwrap();
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self { process, lines }
    }

    /// Everything that it says up to an event of that sort for which the condition holds.
    async fn until(&mut self, event: &str, holds: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut said = Vec::new();
        let read = async {
            loop {
                let Some(line) = self.lines.recv().await else {
                    panic!("the agent has ended before {event}: {said:#?}")
                };
                said.push(line);
                let line = said.last().expect("it was just put there");
                if line["event"] == event && holds(line) {
                    return;
                }
            }
        };
        let waited = tokio::time::timeout(wait::GUARD, read).await;
        assert!(waited.is_ok(), "waited in vain for {event} after {said:#?}");
        said
    }

    /// Everything up to the next time that it holds what the bus holds, with that many objects.
    async fn until_in_sync(&mut self, objects: usize) -> Vec<Value> {
        self.until("in_sync", |line| line["objects"] == objects).await
    }

    /// Everything up to the report that so much is applied.
    async fn until_applied(&mut self, revision: u64) -> Vec<Value> {
        self.until("report", |line| line["applied"].as_u64() >= Some(revision)).await
    }

    /// SIGKILL: nothing is written or said any more.
    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Both fail only if the process has ended by itself.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

// === impl Controller ===

impl Controller {
    fn new(objects: u32) -> Self {
        let mut made = Self { wanted: BTreeMap::new() };
        for number in 0..objects {
            made.put(&format!("p{number}"), "a");
        }
        made
    }

    /// Wants it to be like this from now on.
    fn put(&mut self, name: &str, zone: &str) -> v1::Object {
        let generation = self.wanted.get(name).map_or(0, |object| object.generation) + 1;
        let object = v1::Object { uid: format!("{name}-uid"), generation, ..demo::policy(name, zone, 1) };
        self.wanted.insert(name.to_owned(), object.clone());
        object
    }

    fn objects(&self) -> Vec<v1::Object> {
        self.wanted.values().cloned().collect()
    }

    async fn sync(&self, publisher: &mut PublisherClient<Channel>) -> v1::SyncResponse {
        let steps = tokio_stream::iter(demo::sync(PUBLISHER, self.objects()));
        wait::for_it("a sync", publisher.sync(steps)).await.unwrap().into_inner()
    }
}

async fn apply(publisher: &mut PublisherClient<Channel>, ops: Vec<v1::Op>) -> u64 {
    let response = wait::for_it("a transaction", publisher.apply(demo::apply(PUBLISHER, ops))).await;
    response.unwrap().into_inner().revision
}

/// How far a policy has come, as soon as it is as expected: a report is said before it has arrived.
async fn known(
    fleet: &mut FleetClient<Channel>,
    name: &str,
    expected: impl Fn(&v1::Propagation) -> bool,
) -> v1::Propagation {
    let target = Some(v1::Target { target: Some(v1::target::Target::Object(demo::key(name))) });
    let request = v1::GetPropagationRequest { target, ..v1::GetPropagationRequest::default() };
    let asking = async {
        loop {
            let response = fleet.get_propagation(request.clone()).await.unwrap().into_inner();
            let propagation = response.propagation.unwrap();
            if expected(&propagation) {
                return propagation;
            }
        }
    };
    wait::for_it("what the bus knows", asking).await
}

#[tokio::test]
async fn a_python_agent_that_was_killed_is_sent_what_changed_and_nothing_else() {
    let home = Home::new("killed");
    let (server, mut publisher) = bus("127.0.0.1:0").await;
    let mut controller = Controller::new(100);
    controller.sync(&mut publisher).await;

    let mut agent = Agent::start(&home, &server.address);
    let said = agent.until_applied(1).await;
    assert_eq!(events(&said, "connected")[0]["mode"], "MODE_SNAPSHOT");
    assert_eq!(events(&said, "applied").len(), 100);
    home.assert_is(&controller);
    agent.kill();

    apply(&mut publisher, vec![demo::upsert(controller.put("new", "b"))]).await;
    apply(&mut publisher, vec![demo::upsert(controller.put("p7", "c"))]).await;
    controller.wanted.remove("p9");
    let newest = apply(&mut publisher, vec![demo::delete(demo::key("p9"))]).await;

    let mut agent = Agent::start(&home, &server.address);
    let said = agent.until_applied(newest).await;
    let modes: Vec<_> = events(&said, "connected").iter().map(|line| line["mode"].clone()).collect();
    assert_eq!(modes, ["MODE_DELTA"]);
    assert_eq!(events(&said, "snapshot_begin"), Vec::<&Value>::new(), "a relist");
    assert_eq!(keys(&said, "batch", "puts"), set(&["new", "p7"]));
    assert_eq!(keys(&said, "batch", "deletes"), set(&["p9"]));
    assert_eq!(keys(&said, "applied", "key"), set(&["new", "p7"]));
    assert_eq!(keys(&said, "removed", "key"), set(&["p9"]));
    home.assert_is(&controller);
}

#[tokio::test]
async fn a_python_agent_removes_nothing_while_a_restarted_bus_is_refilled() {
    let home = Home::new("refilled");
    let mut controller = Controller::new(100);
    let (server, mut publisher) = bus("127.0.0.1:0").await;
    let address = server.address.clone();
    controller.sync(&mut publisher).await;
    let newest = apply(&mut publisher, vec![demo::upsert(controller.put("p3", "b"))]).await;
    let mut agent = Agent::start(&home, &address);
    agent.until_applied(newest).await;

    // The bus forgets everything, and the agent finds it empty, then half-full.
    drop((server, publisher));
    let (server, publisher) = bus(&address).await;
    let said = agent.until("connected", |line| line["mode"] == "MODE_WAITING").await;
    let session = said.last().unwrap()["session"].clone();
    let (steps, stream) = mpsc::channel(8);
    let mut client = publisher.clone();
    let syncing = tokio::spawn(async move { client.sync(ReceiverStream::new(stream)).await });
    steps.send(demo::begin(PUBLISHER, &[demo::KIND])).await.unwrap();
    let objects = controller.objects();
    steps.send(demo::items(objects[..50].to_vec())).await.unwrap();
    let mut reader = BusClient::new(channel(&server).await);
    let half = async {
        let mut listed = 0;
        while listed < 50 {
            listed = reader.list(v1::ListRequest::default()).await.unwrap().into_inner().objects.len();
        }
    };
    wait::for_it("half of the objects", half).await;
    home.assert_is(&controller);
    steps.send(demo::items(objects[50..].to_vec())).await.unwrap();
    steps.send(demo::end()).await.unwrap();
    drop(steps);
    let synced = wait::for_it("the sync", syncing).await.unwrap().unwrap().into_inner();
    assert_eq!((synced.created, synced.deleted), (100, 0));

    let said = agent.until_in_sync(100).await;
    let welcome = *events(&said, "connected").last().unwrap();
    assert_eq!((&welcome["mode"], &welcome["session"]), (&"MODE_UNCHANGED".into(), &session));
    for event in ["batch", "snapshot_begin", "applied", "removed"] {
        assert_eq!(events(&said, event), Vec::<&Value>::new(), "nothing has changed, so nothing happens");
    }
    home.assert_is(&controller);

    // Again, and now one object is another one when the bus is full.
    drop((server, publisher));
    let (_server, mut publisher) = bus(&address).await;
    agent.until("connected", |line| line["mode"] == "MODE_WAITING").await;
    controller.put("p5", "changed");
    controller.sync(&mut publisher).await;
    let said = agent.until("applied", |_| true).await;
    assert_eq!(events(&said, "connected").last().unwrap()["mode"], "MODE_DIGEST");
    assert_eq!(keys(&said, "applied", "key"), set(&["p5"]));
    let (puts, buckets) = (keys(&said, "batch", "puts"), &events(&said, "snapshot_begin")[0]["buckets"]);
    assert!(puts.contains(&traced("p5")) && puts.len() < 20, "only what shares a bucket is sent along: {puts:?}");
    assert_eq!(*buckets, 1);
    let said = agent.until_in_sync(100).await;
    assert_eq!(events(&said, "removed"), Vec::<&Value>::new());
    assert_eq!(events(&said, "applied"), Vec::<&Value>::new(), "what was sent along is as it was");
    home.assert_is(&controller);
}

#[tokio::test]
async fn a_python_agent_reports_what_failed_and_what_waits_for_it_and_when_it_is_over() {
    let home = Home::new("failed");
    let (server, mut publisher) = bus("127.0.0.1:0").await;
    let mut controller = Controller::new(3);
    controller.sync(&mut publisher).await;
    let mut agent = Agent::start(&home, &server.address);
    agent.until_in_sync(3).await;

    // A directory where the file should be.
    let obstacle = home.path("blocked");
    fs::create_dir_all(&obstacle).unwrap();
    let mut dependant = controller.put("dependant", "a");
    let v1::Key { kind, namespace, name } = demo::key("blocked");
    dependant.refs.push(v1::Reference { kind, namespace, name, ..v1::Reference::default() });
    let ops = [controller.put("blocked", "a"), dependant, controller.put("free", "a")].map(demo::upsert);
    let newest = apply(&mut publisher, ops.into()).await;
    let said = agent.until_applied(newest).await;
    let failure = events(&said, "failed")[0];
    assert_eq!((&failure["key"], &failure["code"]), (&traced("blocked").into(), &"EISDIR".into()));
    assert_eq!(events(&said, "held")[0]["waits_for"], serde_json::json!([traced("blocked")]));
    assert!(keys(&said, "applied", "key").contains(&traced("free")), "it refers to nothing that failed");
    assert!(!home.path("dependant").exists());
    // One report or several: what failed is said again when it was tried again.
    let reported = events(&said, "report")
        .into_iter()
        .flat_map(|line| line["exceptions"].as_array().unwrap());
    let reported: BTreeSet<_> = reported.map(|key| key.as_str().unwrap().to_owned()).collect();
    assert_eq!(reported, set(&["blocked", "dependant"]));

    // What the bus says to an operator is what the agent said.
    let mut fleet = FleetClient::new(channel(&server).await);
    let propagation = known(&mut fleet, "blocked", |found| found.failed == 1).await;
    assert_eq!((propagation.agents, propagation.applied), (1, 0), "{propagation:?}");
    let failure = &propagation.failures[0];
    assert_eq!(failure.agent, "python-1");
    let exception = failure.exception.as_ref().unwrap();
    assert_eq!((exception.code.as_str(), exception.phase()), ("EISDIR", v1::Phase::Failed));
    assert!(exception.retryable && exception.attempts > 0 && !exception.message.is_empty(), "{exception:?}");
    let request = v1::ExplainRequest { agent: "python-1".to_owned(), object: Some(demo::key("dependant")) };
    let explained = fleet.explain(request).await.unwrap().into_inner();
    assert_eq!(explained.verdict(), v1::Verdict::Held, "{explained:?}");
    assert_eq!(explained.chain.first().and_then(|hop| hop.object.clone()), Some(demo::key("blocked")));
    let propagation = known(&mut fleet, "free", |found| found.applied == 1).await;
    assert_eq!((propagation.failed, propagation.pending), (0, 0), "{propagation:?}");

    fs::remove_dir(&obstacle).unwrap();
    let mut cleared = BTreeSet::new();
    while cleared.len() < 2 {
        let said = agent.until("report", |_| true).await;
        cleared.extend(keys(&said, "report", "cleared"));
    }
    assert_eq!(cleared, set(&["blocked", "dependant"]));
    known(&mut fleet, "dependant", |found| found.applied == 1).await;
    home.assert_is(&controller);
}

#[tokio::test]
async fn a_python_agent_whose_state_is_corrupt_moves_it_aside_and_begins_again() {
    let home = Home::new("corrupt");
    let (server, mut publisher) = bus("127.0.0.1:0").await;
    let controller = Controller::new(10);
    controller.sync(&mut publisher).await;
    fs::write(home.state(), "this is no state at all").unwrap();
    let mut agent = Agent::start(&home, &server.address);
    let said = agent.until_applied(1).await;
    assert_eq!(events(&said, "connected")[0]["mode"], "MODE_SNAPSHOT");
    home.assert_is(&controller);
    assert_eq!(fs::read(home.folder.join("state.db.corrupt-1")).unwrap(), b"this is no state at all");
}

#[tokio::test]
async fn a_python_agent_that_lost_an_object_finds_out_and_is_sent_its_bucket() {
    let home = Home::new("lost");
    let (server, mut publisher) = bus("127.0.0.1:0").await;
    let mut controller = Controller::new(50);
    controller.sync(&mut publisher).await;
    let mut agent = Agent::start(&home, &server.address);
    agent.until_applied(1).await;
    agent.kill();
    // The position stays. After a change, the bus cannot tell from it that anything is missing.
    let lose = r#"
import sqlite3, sys
state = sqlite3.connect(sys.argv[1])
state.execute("DELETE FROM held WHERE name = 'p5'")
state.commit()
"#;
    assert!(python().args(["-c", lose]).arg(home.state()).status().unwrap().success());
    apply(&mut publisher, vec![demo::upsert(controller.put("new", "a"))]).await;

    let mut agent = Agent::start(&home, &server.address);
    let said = agent.until_in_sync(51).await;
    let modes: Vec<_> = events(&said, "connected").iter().map(|line| line["mode"].clone()).collect();
    assert_eq!(modes, ["MODE_DELTA", "MODE_DIGEST"]);
    assert_eq!(events(&said, "mismatch")[0]["count"], 1);
    assert!(keys(&said, "batch", "puts").contains(&traced("p5")));
    if !home.path("p5").exists() {
        agent.until("applied", |line| line["key"] == traced("p5")).await;
    }
    home.assert_is(&controller);
}

#[tokio::test]
async fn a_python_agent_gives_up_a_stream_that_is_silent_and_comes_back() {
    let home = Home::new("silent");
    let (server, mut publisher) = bus("127.0.0.1:0").await;
    let mut controller = Controller::new(10);
    controller.sync(&mut publisher).await;
    let mut agent = Agent::start(&home, &server.address);
    agent.until_applied(1).await;
    // The connection stays open, and nothing comes.
    server.signal("STOP");
    agent.until("silent", |_| true).await;
    server.signal("CONT");
    let newest = apply(&mut publisher, vec![demo::upsert(controller.put("new", "a"))]).await;
    let said = agent.until_applied(newest).await;
    assert_eq!(events(&said, "connected").last().unwrap()["mode"], "MODE_DELTA");
    assert_eq!(keys(&said, "applied", "key"), set(&["new"]));
    home.assert_is(&controller);
}

#[tokio::test]
async fn a_python_agent_whose_name_another_process_takes_says_so_and_stays_away() {
    let (home, other) = (Home::new("superseded"), Home::new("superseding"));
    let (server, mut publisher) = bus("127.0.0.1:0").await;
    let controller = Controller::new(10);
    controller.sync(&mut publisher).await;
    let mut older = Agent::start(&home, &server.address);
    older.until_applied(1).await;
    let mut newer = Agent::start(&other, &server.address);
    newer.until_applied(1).await;
    let said = older.until("reconnecting", |_| true).await;
    assert_eq!(events(&said, "disconnected")[0]["reason"], "SUPERSEDED");
    assert!(said.last().unwrap()["after_ms"].as_u64() >= Some(10_000), "{said:?}");
    home.assert_is(&controller);
    other.assert_is(&controller);
}

#[test]
fn the_unit_tests_of_the_python_agent_pass() {
    let output = python()
        .args(["-m", "unittest", "discover", "--start-directory", "tests", "--top-level-directory", "."])
        .current_dir(folder())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("Ran 0 tests"), "{said}");
}
