//! Network policies compiled to zones, from one end to the other.

use std::{collections::BTreeMap, fs, path::Path};

use ctkit::{Controller, Draft, Failure};
use nimbus_testkit::{Agent, World};
use tempfile::TempDir;

use crate::{
    kinds::{self, NetworkPolicy, NetworkPolicyStatus, ZoneRules},
    reactor::Policies,
    rules::{RuleError, compile},
    zone::Zone,
};

/// A machine with the agent on it.
struct Machine {
    directory: TempDir,
    agent: Agent,
}

/// More than any of these policies needs.
const ROOM: usize = 3;

// === impl Machine ===

impl Machine {
    async fn start(world: &World, id: &str, zone: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let handler = Zone::open(directory.path(), ROOM).await.unwrap();
        let agent = world.agent(id).label("zone", zone).handle(handler).start();
        Self { directory, agent }
    }

    fn files(&self) -> Vec<String> {
        files(self.directory.path()).into_values().collect()
    }
}

fn files(directory: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    entries.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect()
}

fn world() -> World {
    let mut world = World::new();
    let descriptors = kinds::descriptors().unwrap();
    world.api().register_kinds(&descriptors).unwrap();
    world.controller(|| Controller::new(Policies).publishes::<ZoneRules>());
    world
}

fn policy(zones: &[&str], rules: &[&str]) -> Draft<NetworkPolicy> {
    let strings = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
    Draft::new("web", NetworkPolicy { zones: strings(zones), rules: strings(rules) })
}

#[tokio::test]
async fn a_policy_becomes_files_in_its_zones_which_follow_it_to_its_end() {
    let mut world = world();
    let (a, b) = (Machine::start(&world, "a-1", "a").await, Machine::start(&world, "b-1", "b").await);
    let web = world.apply(policy(&["a", "b"], &["allow tcp 443", "deny udp 53 from 10.0.0.0/8"])).await;
    world.until_applied(&web).await;
    let statements = "tcp dport 443 accept\nip saddr 10.0.0.0/8 udp dport 53 drop\n";
    assert_eq!(a.files(), [format!("# zone a\n{statements}")]);
    assert_eq!(b.files(), [format!("# zone b\n{statements}")]);
    world.settled().await;
    let status = NetworkPolicyStatus { agents: 2, applied: 2, ..NetworkPolicyStatus::default() };
    assert_eq!(world.status(&web), Some(status));

    world.apply(policy(&["b"], &["allow tcp 80"])).await;
    world.settled().await;
    assert!(a.files().is_empty(), "it is no longer for this zone");
    assert_eq!(b.files(), ["# zone b\ntcp dport 80 accept\n"]);

    world.crash_controllers().await;
    world.restart_bus();
    b.agent.crash().await;
    b.agent.start();
    world.settled().await;
    assert_eq!(b.files(), ["# zone b\ntcp dport 80 accept\n"]);

    world.delete(&web).await;
    world.settled().await;
    assert!(b.files().is_empty());
}

#[tokio::test]
async fn a_policy_that_is_none_is_not_ready_and_the_last_good_one_stays() {
    let world = world();
    let a = Machine::start(&world, "a-1", "a").await;
    let web = world.apply(policy(&["a"], &["allow tcp 443"])).await;
    world.until_applied(&web).await;
    world.apply(policy(&["a"], &["permit tcp 443"])).await;
    world.settled().await;
    let ready = world.ready(&web).unwrap();
    assert!(!ready.is_ready && ready.message.contains("allow or deny"), "{ready:?}");
    assert_eq!(a.files(), ["# zone a\ntcp dport 443 accept\n"]);
}

#[tokio::test]
async fn rules_that_a_machine_cannot_take_are_in_the_status_of_the_policy() {
    let world = world();
    let a = Machine::start(&world, "a-1", "a").await;
    let other = world.scripted("a-2").label("zone", "a").takes::<ZoneRules>().start();
    other.fails_everything(Failure::new("the disk is full"));
    let web = world
        .apply(policy(&["a"], &["allow tcp 1", "allow tcp 2", "allow tcp 3", "allow tcp 4"]))
        .await;
    world.settled().await;
    assert!(a.files().is_empty());
    let status: NetworkPolicyStatus = world.status(&web).unwrap();
    assert_eq!((status.agents, status.failed), (2, 2));
    assert_eq!(status.failures, ["a-1: 4 statements, but there is room for 3 only", "a-2: the disk is full"]);

    other.applies_everything();
    world.apply(policy(&["a"], &["allow tcp 1"])).await;
    world.until_applied(&web).await;
    assert_eq!(a.files(), ["# zone a\ntcp dport 1 accept\n"]);
}

#[test]
fn rules_are_compiled_or_named() {
    fn check(rule: &str, expected: Result<&str, fn(String) -> RuleError>) {
        let expected = expected
            .map(|statement| vec![statement.to_owned()])
            .map_err(|error| error(rule.to_owned()));
        assert_eq!(compile(&[rule.to_owned()]), expected);
    }

    check("allow tcp 443", Ok("tcp dport 443 accept"));
    check(" deny  udp 53 from 10.0.0.0/8", Ok("ip saddr 10.0.0.0/8 udp dport 53 drop"));
    check("", Err(RuleError::Shape));
    check("allow tcp 443 to 10.0.0.0/8", Err(RuleError::Shape));
    check("permit tcp 443", Err(RuleError::Action));
    check("allow icmp 1", Err(RuleError::Protocol));
    check("allow tcp 0", Err(RuleError::Port));
    check("allow tcp http", Err(RuleError::Port));
    check("allow tcp 80 from everywhere", Err(RuleError::Network));
    check("allow tcp 80 from 10.0.0.0/33", Err(RuleError::Network));
}
