//! A bus and its agents on different machines, as far as the kernel is concerned: each in a network of its own, with a cable between
//! them that loses packets, or is narrow.
//!
//! TCP sends again what was lost, after some tenths of a second, and twice as late each time; a lost beginning of a connection
//! takes a second. So nothing here depends on how long anything takes.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path, process::Output, time::Duration};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    file_agent::{AGENT, KIND},
    namespace::Namespace,
    process::Process,
    server::{Server, binary, program},
    wait,
};

/// A bus and an agent with a cable between them.
struct Cable {
    folder: TempDir,
    here: Namespace,
    there: Namespace,
    bus: Server,
    _agent: Process,
}

/// Where the bus is.
const BUS: &str = "10.73.0.1:7400";

// === impl Cable ===

impl Cable {
    /// The bus asks connections this often, in seconds, whether they are still there.
    fn new(keepalive: &str) -> Self {
        let here = Namespace::new(&["--net", "--mount"]);
        let there = here.inner(&["--net"]);
        here.sh(&format!(
            "ip link set lo up && ip link add bus type veth peer name agents netns {} && \
             ip addr add 10.73.0.1/24 dev bus && ip link set bus up",
            there.pid()
        ));
        there.sh("ip link set lo up && ip addr add 10.73.0.2/24 dev agents && ip link set agents up");
        let folder = tempfile::tempdir().unwrap();
        let etc = folder.path().join("etc");
        fs::create_dir(&etc).unwrap();
        let mut serve = here.command(binary());
        serve.args(["serve", "--listen", BUS, "--admin", "127.0.0.1:0", "--keepalive", keepalive, "--assume-complete"]);
        let store = format!("redb:{}", folder.path().join("store.redb").display());
        let bus = Server::spawn(serve.args(["--lost-after", "1", "--bookmark-interval", "0.5", "--store", &store]));
        let mut agent = there.command(program("file-agent", "file-agent"));
        agent.args(["--id", AGENT, "--bus", &format!("http://{BUS}"), "--root"]).arg(&etc);
        agent.arg("--state").arg(folder.path().join("state")).env("NIMBUS_LOG", "warn");
        let agent = Process::start(&mut agent);
        let cable = Self { folder, here, there, bus, _agent: agent };
        let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/file-agent/proto/nimbus/file/v1/file.proto");
        let registered = cable.nimbus(&["register", proto.to_str().unwrap()]);
        assert!(registered.status.success(), "{registered:?}");
        cable
    }

    /// Runs the command beside the bus.
    fn nimbus(&self, arguments: &[&str]) -> Output {
        self.here
            .command(binary())
            .args(arguments)
            .env("NIMBUS_SERVER", &self.bus.address)
            .output()
            .unwrap()
    }

    /// Makes the bus have exactly these files.
    fn publish(&self, files: &BTreeMap<String, String>, gone: &[String]) {
        let mut manifest = String::new();
        for (name, text) in files {
            let (kind, spec) = (KIND, format!("{{path: {name}, text: \"{text}\"}}"));
            writeln!(manifest, "---\nkind: {kind}\nname: {name}\nspec: {spec}").unwrap();
        }
        let path = self.folder.path().join("files.yaml");
        fs::write(&path, manifest).unwrap();
        let applied = self.nimbus(&["apply", "-f", path.to_str().unwrap()]);
        assert!(applied.status.success(), "{applied:?}");
        for name in gone {
            let deleted = self.nimbus(&["delete", KIND, name]);
            assert!(deleted.status.success(), "{deleted:?}");
        }
    }

    /// Waits until the agent has exactly these files.
    async fn holds(&self, expected: &BTreeMap<String, String>) {
        let etc = self.folder.path().join("etc");
        let poll = async {
            while files(&etc) != *expected {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        wait::for_long("the files", poll).await;
    }

    /// Waits until the bus says of the agent that it is in that state.
    async fn agent_is(&self, state: &str) {
        let poll = async {
            loop {
                let listed = self.nimbus(&["agents", "-o", "json"]);
                let agents = serde_json::from_slice::<Value>(&listed.stdout).unwrap_or_default();
                if agents.to_string().contains(state) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        wait::for_long(state, poll).await;
    }

    /// Packets are lost in both directions: those that such a rule matches.
    fn lose(&self, which: &str) {
        for side in [&self.here, &self.there] {
            let chain = "add chain inet faults arriving { type filter hook input priority 0; }";
            let rule = format!("add rule inet faults arriving iifname != lo {which} drop");
            side.sh(&format!("nft 'add table inet faults; flush table inet faults; {chain}; {rule}'"));
        }
    }
}

fn files(root: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(root).unwrap().filter_map(|entry| {
        let path = entry.ok()?.path();
        // It may be on its way out.
        Some((path.file_name()?.to_str()?.to_owned(), fs::read_to_string(&path).ok()?))
    });
    entries.collect()
}

/// As many files, of this version.
fn version(count: usize, version: usize, bytes: usize) -> BTreeMap<String, String> {
    (0..count)
        .map(|n| (format!("f{n}"), format!("{n} {version} {}", "x".repeat(bytes))))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_on_a_cable_that_loses_packets_come_to_have_exactly_what_there_is() {
    let cable = Cable::new("1");
    cable.publish(&version(5, 0, 10), &[]);
    cable.holds(&version(5, 0, 10)).await;
    cable.lose("numgen random mod 10 < 1");
    for round in 1..4 {
        cable.publish(&version(40, round, 1_000), &[]);
    }
    cable.holds(&version(40, 3, 1_000)).await;

    // Nothing gets through at all, until both sides have given up.
    cable.lose("");
    cable.agent_is("LOST").await;
    let gone: Vec<_> = (30..40).map(|n| format!("f{n}")).collect();
    cable.publish(&version(30, 4, 1_000), &gone);
    cable.lose("mark 1");
    cable.holds(&version(30, 4, 1_000)).await;
    cable.agent_is("CONNECTED").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_on_a_narrow_cable_come_to_have_exactly_what_there_is() {
    // An answer waits behind everything that is on its way.
    let cable = Cable::new("30");
    cable.here.sh("tc qdisc add dev bus root tbf rate 1mbit burst 16kb latency 100ms");
    cable.there.sh("tc qdisc add dev agents root tbf rate 256kbit burst 8kb latency 100ms");
    // Three hundred kilobytes, which take some seconds, in the middle of which they change.
    cable.publish(&version(30, 0, 10_000), &[]);
    cable.publish(&version(30, 1, 10_000), &[]);
    cable.holds(&version(30, 1, 10_000)).await;
}
