//! The agent in `agents/file-agent` as a process, and files as controllers publish them.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use nimbus_wire::v1::{self, fleet_client::FleetClient, publisher_client::PublisherClient};
use prost::Message as _;
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};

use crate::{
    demo,
    process::Process,
    server::{self, Server},
    wait,
};

/// The kind that the agent handles.
pub(crate) const KIND: &str = "nimbus.file.v1.File";

/// The agent in all these tests.
pub(crate) const AGENT: &str = "web-1";

/// The same as in the proto file, as far as it is used here.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct File {
    #[prost(string, tag = "1")]
    pub(crate) path: String,
    #[prost(string, tag = "2")]
    pub(crate) text: String,
    #[prost(string, repeated, tag = "7")]
    pub(crate) validate: Vec<String>,
    #[prost(string, repeated, tag = "8")]
    pub(crate) reload: Vec<String>,
    #[prost(bool, tag = "9")]
    pub(crate) adopt: bool,
}

/// A bus with a controller, and a machine with the agent on it.
pub(crate) struct World {
    /// Where everything of the machine is.
    pub(crate) folder: TempDir,
    pub(crate) fleet: FleetClient<Channel>,
    publisher: PublisherClient<Channel>,
    flags: Vec<String>,
    agent: Option<Process>,
    bus: Server,
}

fn binary() -> PathBuf {
    let binary = server::binary().with_file_name("file-agent");
    assert!(binary.exists(), "{} is missing (hint: cargo build -p file-agent, or tests/run)", binary.display());
    binary
}

/// Asks again and again until there is an answer.
pub(crate) async fn ask<T>(what: &str, mut question: impl AsyncFnMut() -> Option<T>) -> T {
    let poll = async {
        loop {
            match question().await {
                Some(answer) => break answer,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    wait::for_it(what, poll).await
}

/// Which file this is: another one for every version that is put in place.
fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

// === impl World ===

impl World {
    /// Starts a bus and an agent that keeps files in the folder `etc`, which exists.
    pub(crate) async fn new(flags: &[&str]) -> Self {
        Self::on(Server::start(&["--bookmark-interval", "0.2"]), flags).await
    }

    /// The same on that bus.
    pub(crate) async fn on(bus: Server, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("etc")).unwrap();
        let channel = Endpoint::from_shared(format!("http://{}", bus.address)).unwrap().connect().await.unwrap();
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        let (fleet, publisher) = (FleetClient::new(channel.clone()), PublisherClient::new(channel));
        let mut world = Self { folder, fleet, publisher, flags, agent: None, bus };
        world.start_agent();
        world
    }

    /// Where the agent keeps files.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("etc")
    }

    /// Starts the agent; if it was running, it is killed first.
    pub(crate) fn start_agent(&mut self) {
        self.agent = None;
        let mut command = Command::new(binary());
        command
            .args(["--id", AGENT, "--bus", &format!("http://{}", self.bus.address), "--root"])
            .arg(self.root())
            .arg("--state")
            .arg(self.folder.path().join("state"))
            .args(&self.flags)
            .env("NIMBUS_LOG", "warn");
        self.agent = Some(Process::start(&mut command));
    }

    /// Sends the agent a signal.
    pub(crate) fn signal_agent(&self, name: &str) {
        self.agent.as_ref().expect("it runs").signal(name);
    }

    /// Kills the agent.
    pub(crate) fn kill_agent(&mut self) {
        self.agent = None;
    }

    /// All files that there should be.
    pub(crate) async fn publish(&mut self, files: &[(&str, File)]) {
        let object = |(name, file): &(&str, File)| v1::Object {
            name: (*name).to_owned(),
            spec: Some(demo::pack(KIND, file.encode_to_vec())),
            ..v1::Object::default()
        };
        let items = demo::items(files.iter().map(object).collect());
        let steps = vec![demo::begin("web", &[KIND]), items, demo::end()];
        self.publisher.sync(tokio_stream::iter(steps)).await.unwrap();
    }

    /// What the bus says about a file, when it has come to a verdict like this one about its newest version.
    pub(crate) async fn explain(&mut self, name: &str, verdict: v1::Verdict) -> v1::ExplainResponse {
        let object = v1::Key { kind: KIND.to_owned(), namespace: String::new(), name: name.to_owned() };
        let request = v1::ExplainRequest { agent: AGENT.to_owned(), object: Some(object) };
        let fleet = &mut self.fleet;
        ask(verdict.as_str_name(), async || {
            let answer = fleet.explain(request.clone()).await.unwrap().into_inner();
            (answer.verdict() == verdict).then_some(answer)
        })
        .await
    }

    /// How far a file has come.
    pub(crate) async fn propagation(&mut self, name: &str) -> v1::Propagation {
        let object = v1::Key { kind: KIND.to_owned(), namespace: String::new(), name: name.to_owned() };
        let target = v1::Target { target: Some(v1::target::Target::Object(object)) };
        let request = v1::GetPropagationRequest { target: Some(target), ..v1::GetPropagationRequest::default() };
        self.fleet.get_propagation(request).await.unwrap().into_inner().propagation.unwrap()
    }

    /// The session of the agent, when it is in sync.
    async fn in_sync(&mut self) -> u64 {
        let fleet = &mut self.fleet;
        ask("an agent that is in sync", async || {
            let agents = fleet.list_agents(v1::ListAgentsRequest::default()).await.unwrap().into_inner().agents;
            let agent = agents.into_iter().find(|agent| agent.agent == AGENT)?;
            let is_connected = agent.state() == v1::AgentState::Connected;
            (is_connected && agent.in_sync).then_some(agent.session)
        })
        .await
    }
}

fn text(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned(), ..File::default() }
}

#[tokio::test]
async fn files_come_change_and_go_on_a_machine_as_they_do_on_the_bus() {
    let mut world = World::new(&[]).await;
    let at = |world: &World, path: &str| world.root().join(path);
    world.publish(&[("a", text("conf.d/a", "one")), ("b", text("conf.d/b", "two"))]).await;
    world.explain("a", v1::Verdict::Applied).await;
    world.explain("b", v1::Verdict::Applied).await;
    assert_eq!(fs::read_to_string(at(&world, "conf.d/a")).unwrap(), "one");

    world.publish(&[("a", text("moved/a", "three"))]).await;
    let (old, new) = (at(&world, "conf.d"), at(&world, "moved/a"));
    wait::until("the new file", || fs::read_to_string(&new).is_ok_and(|text| text == "three")).await;
    wait::until("the end of the old ones", || !old.exists()).await;
    world.publish(&[]).await;
    let root = world.root();
    wait::until("the end of all files", || fs::read_dir(&root).unwrap().next().is_none()).await;
}

#[tokio::test]
async fn a_file_that_somebody_changes_is_put_right() {
    let mut world = World::new(&["--observe-interval", "0.1"]).await;
    world.publish(&[("a", text("a", "ours"))]).await;
    world.explain("a", v1::Verdict::Applied).await;
    let path = world.root().join("a");
    fs::write(&path, "meddled").unwrap();
    wait::until("the file as it was", || fs::read_to_string(&path).unwrap() == "ours").await;
    fs::remove_file(&path).unwrap();
    wait::until("the file", || fs::read_to_string(&path).is_ok_and(|text| text == "ours")).await;
}

#[tokio::test]
async fn an_agent_that_is_killed_comes_back_and_touches_nothing() {
    let mut world = World::new(&[]).await;
    world.publish(&[("a", text("a", "ours"))]).await;
    world.explain("a", v1::Verdict::Applied).await;
    let (path, before) = (world.root().join("a"), world.in_sync().await);
    let same = inode(&path);
    world.start_agent();
    while world.in_sync().await == before {}
    assert_eq!(inode(&path), same);
    world.publish(&[]).await;
    wait::until("the end of the file", || !path.exists()).await;
}

#[tokio::test]
async fn what_a_machine_refuses_is_said_on_the_bus_with_a_hint() {
    let mut world = World::new(&[]).await;
    fs::write(world.root().join("theirs"), "theirs").unwrap();
    let shell = File { reload: vec!["/bin/sh".to_owned()], ..text("a", "x") };
    let files = [("theirs", text("theirs", "x")), ("out", text("../x", "x")), ("shell", shell)];
    world.publish(&files).await;
    for (name, code, words) in [
        ("theirs", "NOT_OWNED", "hint: set adopt"),
        ("out", "INVALID", "`..`"),
        ("shell", "NOT_ALLOWED", "hint: start the agent with --allow /bin/sh"),
    ] {
        let exception = world.explain(name, v1::Verdict::Failed).await.exception.unwrap();
        assert_eq!((exception.code.as_str(), exception.retryable), (code, false), "{exception:?}");
        assert!(exception.message.contains(words), "{exception:?}");
    }
    assert_eq!(fs::read_to_string(world.root().join("theirs")).unwrap(), "theirs");
}
