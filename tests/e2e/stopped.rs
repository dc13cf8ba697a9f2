//! Processes that are stopped for longer than others wait for them, as by a debugger, a hypervisor, or a machine that swaps;
//! and agents that are killed at any moment.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use nimbus_wire::v1;
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};

use crate::{
    file_agent::{AGENT, File, World, ask},
    machine::Machine,
    process::Process,
    server::{Server, program},
    user::{User, spec},
    wait,
};

const KIND: &str = "demo.v1.Blob";

/// What `nimbus-testkit controller` reacts to, and what it publishes.
pub(crate) const ORDER: &str = "testkit.v1.Order";
pub(crate) const TASK: &str = "testkit.v1.Task";

/// An instance of the controller of the testkit.
pub(crate) fn controller(bus: &str, name: &str, journal: &Path, flags: &[&str]) -> Process {
    let mut command = Command::new(program("nimbus-testkit", "nimbus-testkit"));
    command
        .args(["controller", "--connect", bus, "--instance", name, "--journal"])
        .arg(journal)
        .args(flags);
    Process::start(&mut command)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bus_that_was_stopped_for_longer_than_anybody_waits_goes_on_where_it_was() {
    let bus = Server::start(&["--bookmark-interval", "0.3", "--keepalive", "1"]);
    let mut user = User::of(&bus.url(), KIND);
    user.begin().await;
    user.put((0..50).map(|n| (format!("o{n}"), format!("{n}")))).await;
    let mut machines: Vec<_> = (0..3).map(|n| Machine::start(&format!("m{n}"), &bus.url(), KIND)).collect();
    for machine in &mut machines {
        machine.comes_to(&user).await;
    }
    for round in 0..2 {
        bus.signal("STOP");
        for machine in &mut machines {
            machine.is_alone().await;
        }
        bus.signal("CONT");
        user.put([(format!("after-{round}"), "new".to_owned())]).await;
        user.delete([format!("o{round}")]).await;
        for machine in &mut machines {
            machine.comes_to(&user).await;
        }
    }
    // What was there before was neither removed nor applied again.
    assert!(machines.iter().all(|machine| machine.applied() == 52));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_was_stopped_for_longer_than_the_bus_waits_catches_up() {
    let bus = Server::start(&["--bookmark-interval", "0.3", "--keepalive", "0.5"]);
    let mut world = World::on(bus, &[]).await;
    let text = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned(), ..File::default() };
    world
        .publish(&[("a", text("a", "1")), ("b", text("b", "1")), ("c", text("c", "1"))])
        .await;
    world.explain("c", v1::Verdict::Applied).await;
    world.signal_agent("STOP");
    let fleet = &mut world.fleet;
    ask("the bus to notice", async || {
        let agents = fleet.list_agents(v1::ListAgentsRequest::default()).await.unwrap().into_inner().agents;
        let agent = agents.into_iter().find(|agent| agent.agent == AGENT)?;
        (agent.state() != v1::AgentState::Connected).then_some(())
    })
    .await;
    world
        .publish(&[("a", text("a", "2")), ("b", text("b", "1")), ("d", text("d", "1"))])
        .await;
    world.signal_agent("CONT");
    world.explain("d", v1::Verdict::Applied).await;
    let root = world.root();
    let expected = [("a", "2"), ("b", "1"), ("d", "1")].map(|(name, text)| (name.to_owned(), text.to_owned()));
    wait::until("all changes", || files(&root) == expected).await;
}

#[tokio::test]
async fn an_agent_that_is_killed_at_random_moments_ends_with_exactly_what_there_is() {
    let mut world = World::new(&[]).await;
    let mut rng = SmallRng::seed_from_u64(7);
    let mut expected = Vec::new();
    for round in 0..12 {
        // Some stay as they are, some change, some come and some go.
        expected = (0..30)
            .filter(|n| (n + round) % 5 != 0)
            .map(|n| (format!("f{n:02}"), format!("{n} {}", round / (1 + n % 3))))
            .collect();
        let files: Vec<_> = expected
            .iter()
            .map(|(name, text): &(String, String)| {
                (name.as_str(), File { path: name.clone(), text: text.clone(), ..File::default() })
            })
            .collect();
        world.publish(&files).await;
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..120))).await;
        world.start_agent();
    }
    let root = world.root();
    wait::until("the files of the last round", || files(&root) == expected).await;
}

/// Names and texts of all files, in order.
fn files(root: &Path) -> Vec<(String, String)> {
    let mut files: Vec<_> = fs::read_dir(root)
        .unwrap()
        .filter_map(|entry| {
            let path: PathBuf = entry.ok()?.path();
            // It may be on its way out.
            Some((path.file_name()?.to_str()?.to_owned(), fs::read_to_string(&path).ok()?))
        })
        .collect();
    files.sort();
    files
}

/// A leader that is stopped in the middle of a reaction, and goes on when another one has done more: what it had begun is void
/// (H13).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_stopped_for_longer_than_its_lease_changes_nothing_when_it_goes_on() {
    let bus = Server::start(&["--bookmark-interval", "0.3"]);
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let said = || fs::read_to_string(&journal).unwrap_or_default();
    let instance = |name: &str| controller(&bus.url(), name, &journal, &["--lease", "1", "--takes", "0.3"]);
    let mut user = User::of(&bus.url(), ORDER);
    user.begin().await;
    let mut witness = Machine::start("witness", &bus.url(), TASK);
    let first = instance("first");
    user.put([("x".to_owned(), "one".to_owned())]).await;
    user.sees(TASK, "x", "one").await;
    let second = instance("second");

    user.put([("x".to_owned(), "two".to_owned())]).await;
    wait::until("the next reaction", || said().contains("begin first x 2 two")).await;
    first.signal("STOP");
    user.put([("x".to_owned(), "three".to_owned())]).await;
    user.sees(TASK, "x", "three").await;
    assert!(said().contains("end second x 3 three"), "{}", said());
    first.signal("CONT");
    let is_over = || said().lines().any(|line| line.ends_with("first x 2 two") && !line.starts_with("begin"));
    wait::until("the end of the old reaction", is_over).await;

    // It stands by, and leads again when the other one is gone.
    user.put([("y".to_owned(), "one".to_owned())]).await;
    user.sees(TASK, "y", "one").await;
    assert!(!said().contains("begin first y"), "{}", said());
    drop(second);
    user.put([("y".to_owned(), "two".to_owned())]).await;
    user.sees(TASK, "y", "two").await;
    assert!(said().contains("end first y 2 two"), "{}", said());
    wait::until("what the witness saw last", || witness.history("y").last() == Some(&spec("two"))).await;
    witness.in_sync().await;
    assert_eq!(witness.history("x"), ["one", "three"].map(spec));
}
