//! The controller in `crates/ctkit/examples/policies` and the agent in `agents/zone-agent` as processes.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use nimbus_wire::v1::{self, bus_client::BusClient, publisher_client::PublisherClient};
use prost::Message as _;
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};

use crate::{
    demo,
    file_agent::ask,
    server::{self, Server},
    wait,
};

/// What users write.
const POLICY: &str = "demo.v1.NetworkPolicy";

/// What agents get.
const RULES: &str = "demo.v1.ZoneRules";

/// The same as in the proto file.
#[derive(Clone, PartialEq, prost::Message)]
struct NetworkPolicy {
    #[prost(string, repeated, tag = "1")]
    zones: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    rules: Vec<String>,
}

/// The same as in the proto file.
#[derive(Clone, PartialEq, prost::Message)]
struct NetworkPolicyStatus {
    #[prost(uint32, tag = "1")]
    agents: u32,
    #[prost(uint32, tag = "2")]
    applied: u32,
    #[prost(uint32, tag = "3")]
    failed: u32,
    #[prost(string, repeated, tag = "4")]
    failures: Vec<String>,
}

/// A process that ends with this value as if it was killed.
struct Process(Child);

/// A bus, wherever it is, and a user of it.
struct User {
    address: String,
    bus: BusClient<Channel>,
    publisher: PublisherClient<Channel>,
}

/// A machine with the agent on it.
struct Machine {
    directory: TempDir,
    _agent: Process,
}

// === impl Process ===

impl Process {
    fn start(binary: &Path, arguments: &[&str]) -> Self {
        assert!(binary.exists(), "{} is missing (hint: tests/run builds it)", binary.display());
        let mut command = Command::new(binary);
        command.args(arguments).env("NIMBUS_LOG", "warn").env("RUST_LOG", "warn");
        Self(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap())
    }

    fn controller(arguments: &[&str]) -> Self {
        Self::start(&server::binary().with_file_name("examples").join("policies"), arguments)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if the process has ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

// === impl User ===

impl User {
    async fn at(address: &str) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let channel = wait::for_it("a bus", endpoint.connect()).await.unwrap();
        let (bus, publisher) = (BusClient::new(channel.clone()), PublisherClient::new(channel));
        Self { address: address.to_owned(), bus, publisher }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    async fn apply(&mut self, name: &str, zones: &[&str], rules: &[&str]) {
        let strings = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        let spec = NetworkPolicy { zones: strings(zones), rules: strings(rules) };
        let spec = Some(demo::pack(POLICY, spec.encode_to_vec()));
        let object = v1::Object { name: name.to_owned(), spec, ..v1::Object::default() };
        self.publisher.apply(demo::apply("me", vec![demo::upsert(object)])).await.unwrap();
    }

    async fn delete(&mut self, name: &str) {
        let key = v1::Key { kind: POLICY.to_owned(), namespace: String::new(), name: name.to_owned() };
        self.publisher.apply(demo::apply("me", vec![demo::delete(key)])).await.unwrap();
    }

    /// What the controller says of the newest version of a policy.
    async fn standing(&mut self, name: &str, wanted: impl Fn(&v1::Condition, &NetworkPolicyStatus) -> bool) {
        let request = v1::GetRequest { kind: POLICY.to_owned(), namespace: String::new(), name: name.to_owned() };
        let bus = &mut self.bus;
        ask("the status of a policy", async || {
            let object = bus.get(request.clone()).await.unwrap().into_inner().object.unwrap();
            let standing = v1::Standing::decode(&*object.status?.value).unwrap();
            let ready = standing.conditions.iter().find(|condition| condition.r#type == "Ready")?;
            let detail = standing.detail.as_ref().map(|any| NetworkPolicyStatus::decode(&*any.value).unwrap());
            let is_new = ready.generation == object.generation;
            (is_new && wanted(ready, &detail.unwrap_or_default())).then_some(())
        })
        .await;
    }

    /// Names and revisions of everything that agents get.
    async fn rules(&mut self) -> Vec<(String, u64)> {
        let request = v1::ListRequest { kinds: vec![RULES.to_owned()], ..v1::ListRequest::default() };
        let objects = self.bus.list(request).await.unwrap().into_inner().objects;
        objects.into_iter().map(|object| (object.name, object.revision)).collect()
    }
}

// === impl Machine ===

impl Machine {
    fn start(user: &User, zone: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (id, path) = (format!("{zone}-1"), directory.path().to_str().unwrap());
        let arguments =
            ["--id", &id, "--bus", &user.url(), "--zone", zone, "--directory", path, "--max-statements", "2"];
        let agent = Process::start(&server::binary().with_file_name("zone-agent"), &arguments);
        Self { directory, _agent: agent }
    }

    /// Rules of policies whose names begin like this.
    fn files(&self, policy: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.directory.path()).unwrap().map(|entry| entry.unwrap().path());
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        entries
            .filter(|path| name(path).starts_with(policy) && name(path).ends_with(".nft"))
            .collect()
    }

    /// What is in the one file of a policy; nothing if there is none.
    fn text(&self, policy: &str) -> String {
        self.files(policy).iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
    }

    /// Which file it is: another one for every version that is put in place.
    fn inode(&self, policy: &str) -> u64 {
        fs::metadata(&self.files(policy)[0]).unwrap().ino()
    }

    async fn until(&self, policy: &str, text: &str) {
        wait::until(text, || self.text(policy) == text).await;
    }
}

#[tokio::test]
async fn policies_become_files_and_a_controller_that_is_killed_changes_nothing() {
    let bus = Server::start(&["--bookmark-interval", "0.2", "--assume-complete"]);
    let mut user = User::at(&bus.address).await;
    let controller = Process::controller(&["--connect", &user.url()]);
    let (a, b) = (Machine::start(&user, "a"), Machine::start(&user, "b"));

    user.apply("web", &["a", "b"], &["allow tcp 443"]).await;
    a.until("web", "# zone a\ntcp dport 443 accept\n").await;
    b.until("web", "# zone b\ntcp dport 443 accept\n").await;
    user.standing("web", |ready, status| ready.code == "Reconciled" && status.applied == 2)
        .await;

    user.apply("web", &["a"], &["allow tcp 443", "deny udp 53 from 10.0.0.0/8"]).await;
    let text = "# zone a\ntcp dport 443 accept\nip saddr 10.0.0.0/8 udp dport 53 drop\n";
    a.until("web", text).await;
    b.until("web", "").await;
    user.apply("broken", &["a"], &["permit tcp 443"]).await;
    user.standing("broken", |ready, _| ready.code == "Failed" && ready.message.contains("allow or deny"))
        .await;

    let (inode, rules) = (a.inode("web"), user.rules().await);
    drop(controller);
    let _controller = Process::controller(&["--connect", &user.url()]);
    // When this has come, the controller has looked at everything.
    user.apply("mail", &["b"], &["allow tcp 25"]).await;
    b.until("mail", "# zone b\ntcp dport 25 accept\n").await;
    user.standing("mail", |ready, status| ready.code == "Reconciled" && status.applied == 1)
        .await;
    assert_eq!((a.inode("web"), a.text("web")), (inode, text.to_owned()));
    let mut after = user.rules().await;
    after.retain(|(name, _)| name.starts_with("web"));
    assert_eq!(after, rules, "nothing was written again");

    user.delete("web").await;
    a.until("web", "").await;
    assert_eq!(b.text("mail"), "# zone b\ntcp dport 25 accept\n");
}

#[tokio::test]
async fn a_controller_with_a_bus_of_its_own_says_what_its_agents_refuse() {
    let mut controller = Process::controller(&["--listen", "127.0.0.1:0"]);
    let mut line = String::new();
    BufReader::new(controller.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut user = User::at(line.trim().strip_prefix("listening on ").unwrap()).await;
    let a = Machine::start(&user, "a");
    user.apply("web", &["a"], &["allow tcp 1", "allow tcp 2", "allow tcp 3"]).await;
    let refusal = "a-1: 3 statements, but there is room for 2 only";
    user.standing("web", |_, status| status.failed == 1 && status.failures == [refusal]).await;
    assert_eq!(a.text("web"), "");
    user.apply("web", &["a"], &["allow tcp 1"]).await;
    a.until("web", "# zone a\ntcp dport 1 accept\n").await;
    user.standing("web", |ready, status| ready.code == "Reconciled" && status.applied == 1)
        .await;
}
