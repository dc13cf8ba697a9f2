//! Agents as processes that die in the middle of something, and whose disks are full.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, process::Command};

use nimbus_wire::v1::{self, fleet_client::FleetClient, publisher_client::PublisherClient};
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};

use crate::{
    demo::{self, KIND},
    file_agent::{File, World, ask},
    process::Process,
    server::{self, Server},
    wait,
};

/// A command that says that it has begun, and ends when it is let go.
struct Reload {
    program: PathBuf,
    log: PathBuf,
    hold: PathBuf,
    _folder: TempDir,
}

// === impl Reload ===

impl Reload {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [program, log, hold] = ["reload", "log", "hold"].map(|name| folder.path().join(name));
        let script = format!(
            "#!/bin/sh\necho begun >> {log}\nwhile [ -e {hold} ]; do sleep 0.02; done\necho done >> {log}\n",
            log = log.display(),
            hold = hold.display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(&hold, "").unwrap();
        Self { program, log, hold, _folder: folder }
    }

    fn file(&self, text: &str) -> File {
        let reload = vec![self.program.to_str().unwrap().to_owned()];
        File { path: "web.conf".to_owned(), text: text.to_owned(), reload, ..File::default() }
    }

    /// How often it has begun.
    fn begun(&self) -> usize {
        fs::read_to_string(&self.log).unwrap_or_default().matches("begun").count()
    }
}

impl Drop for Reload {
    fn drop(&mut self) {
        // Nobody waits for one that is still held.
        drop(fs::remove_file(&self.hold));
    }
}

async fn world() -> (World, Reload) {
    let reload = Reload::new();
    let world = World::new(&["--allow", reload.program.to_str().unwrap()]).await;
    (world, reload)
}

#[tokio::test]
async fn an_agent_killed_in_the_middle_of_an_apply_finishes_it_when_it_is_back() {
    let (mut world, reload) = world().await;
    world.publish(&[("web", reload.file("one"))]).await;
    wait::until("the reload", || reload.begun() == 1).await;
    world.start_agent();
    wait::until("the reload again", || reload.begun() == 2).await;
    fs::remove_file(&reload.hold).unwrap();
    world.explain("web", v1::Verdict::Applied).await;
    assert_eq!(fs::read_to_string(world.root().join("web.conf")).unwrap(), "one");
}

#[tokio::test]
async fn an_agent_killed_in_the_middle_of_an_apply_takes_it_back_if_the_object_is_gone() {
    let (mut world, reload) = world().await;
    world.publish(&[("web", reload.file("one"))]).await;
    wait::until("the reload", || reload.begun() == 1).await;
    world.kill_agent();
    let path = world.root().join("web.conf");
    assert!(path.exists(), "it died after the file was put in place");
    world.publish(&[]).await;
    fs::remove_file(&reload.hold).unwrap();
    world.start_agent();
    wait::until("the end of the file", || !path.exists()).await;
}

/// A bus, and an agent whose memory is on a disk of one megabyte.
struct SmallDisk {
    bus: Server,
    agent: Option<Process>,
    folder: TempDir,
    fleet: FleetClient<Channel>,
    publisher: PublisherClient<Channel>,
}

impl SmallDisk {
    async fn new() -> Self {
        let bus = Server::start(&["--bookmark-interval", "0.2"]);
        let channel = Endpoint::from_shared(format!("http://{}", bus.address)).unwrap().connect().await.unwrap();
        let (fleet, publisher) = (FleetClient::new(channel.clone()), PublisherClient::new(channel));
        let mut world = Self { bus, agent: None, folder: tempfile::tempdir().unwrap(), fleet, publisher };
        world.start();
        world
    }

    /// The disk is a mount that only the agent sees, so that it takes no rights that a developer does not have.
    fn start(&mut self) {
        let binary = server::binary().with_file_name("sim-agent");
        assert!(binary.exists(), "{} is missing (hint: cargo build -p sim-agent, or tests/run)", binary.display());
        let disk = self.folder.path().join("disk");
        fs::create_dir_all(&disk).unwrap();
        let script = "mount -t tmpfs -o size=1m tmpfs \"$0\" && exec \"$@\"";
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
            .arg(&disk)
            .arg(binary)
            .args(["--bus", &format!("http://{}", self.bus.address), "--agents", "1", "--prefix", "small-"])
            .args(["--kind", KIND, "--cache"])
            .arg(&disk)
            .env("NIMBUS_LOG", "off");
        self.agent = Some(Process::start(&mut command));
    }

    async fn sync(&mut self, objects: Vec<v1::Object>) -> u64 {
        let steps = tokio_stream::iter(demo::sync("controller", objects));
        self.publisher.sync(steps).await.unwrap().into_inner().revision
    }

    async fn applied(&mut self, revision: u64) {
        let target = Some(v1::Target { target: Some(v1::target::Target::Revision(revision)) });
        let request = v1::WaitForRequest { target, timeout_ms: 50_000, ..v1::WaitForRequest::default() };
        let mut progress = self.fleet.wait_for(request).await.unwrap().into_inner();
        let mut last = None;
        while let Some(message) = progress.message().await.unwrap() {
            last = Some(message);
        }
        let last = last.unwrap();
        assert_eq!(last.outcome(), v1::wait_for_response::Outcome::Done, "{last:?}");
    }

    async fn event(&mut self, reason: &str) -> v1::AgentEvent {
        let fleet = &mut self.fleet;
        ask(reason, async || {
            let request = v1::ListAgentsRequest { details: true, ..v1::ListAgentsRequest::default() };
            let agents = fleet.list_agents(request).await.unwrap().into_inner().agents;
            agents.into_iter().flat_map(|agent| agent.events).find(|event| event.reason == reason)
        })
        .await
    }
}

fn large(name: &str, bytes: usize) -> v1::Object {
    let mut policy = demo::policy(name, "a", 1);
    let spec = demo::NetworkPolicy { zone: "x".repeat(bytes), priority: 1, rules: Vec::new() };
    policy.spec = Some(demo::pack(KIND, prost::Message::encode_to_vec(&spec)));
    policy
}

#[tokio::test]
async fn an_agent_whose_disk_is_full_goes_on_and_says_so() {
    let mut world = SmallDisk::new().await;
    let revision = world.sync(vec![demo::policy("a", "a", 1)]).await;
    world.applied(revision).await;
    let mut objects: Vec<_> = (0..20).map(|n| large(&format!("large-{n}"), 200_000)).collect();
    objects.push(demo::policy("a", "b", 2));
    let revision = world.sync(objects).await;
    world.applied(revision).await;
    let event = world.event("CacheFailing").await;
    assert!(event.message.contains("space"), "{event:?}");
    // And on, when there is room again.
    let revision = world.sync(vec![demo::policy("a", "c", 3), demo::policy("b", "c", 3)]).await;
    world.applied(revision).await;
}
