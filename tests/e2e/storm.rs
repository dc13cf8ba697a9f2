//! A whole fleet that comes back at the same moment.

use std::{process::Command, time::Duration};

use tempfile::TempDir;
use tokio::time::Instant;

use crate::{
    demo,
    metrics::metric,
    process::Process,
    server::{Server, program},
    user::User,
    wait,
};

/// As many as a bus of medium size has.
const AGENTS: u32 = 5_000;

/// For everybody.
const OBJECTS: u32 = 20;

/// What an agent with nothing to be told may cost on the wire: a greeting, and a bookmark or two.
const BYTES: f64 = 300.0;

/// Waits until as many agents are connected, and have all that there is.
async fn all_are_in_sync(bus: &Server) {
    let poll = async {
        // In this order: who is not counted as connected yet may be counted as in sync.
        while metric(bus, "nimbus_bus_agents{state=\"connected\"}").await != f64::from(AGENTS)
            || metric(bus, "nimbus_bus_agents_behind").await != 0.0
        {
            // Thousands of connections need the machine more than whoever waits for them.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    wait::for_long("all agents to be in sync", poll).await;
}

#[tokio::test]
#[expect(clippy::print_stdout, reason = "how long it takes is reported, and not judged")]
async fn five_thousand_agents_that_come_back_together_are_greeted_and_sent_nothing() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("nimbus.redb");
    let bus = Server::start_in(&file, &[]);
    let address = bus.address.clone();
    let mut user = User::of(&bus.url(), demo::KIND);
    user.begin().await;
    user.put((0..OBJECTS).map(|n| (format!("o{n}"), format!("text {n}")))).await;
    let agents = AGENTS.to_string();
    let _agents = Process::start(
        Command::new(program("sim-agent", "sim-agent"))
            .args(["--bus", &bus.url(), "--kind", demo::KIND, "--agents", &agents, "--ramp", "2000"])
            .env("NIMBUS_LOG", "off"),
    );
    all_are_in_sync(&bus).await;

    bus.signal("KILL");
    drop(bus);
    let begun = Instant::now();
    let bus = Server::start_in_on(&address, &file, &[]);
    all_are_in_sync(&bus).await;
    let took = begun.elapsed();

    assert_eq!(metric(&bus, "nimbus_bus_sent_events_total").await, 0.0);
    assert_eq!(metric(&bus, "nimbus_bus_snapshot_bytes_total").await, 0.0);
    let deltas = metric(&bus, "nimbus_bus_answers_total{mode=\"MODE_DELTA\"}").await;
    let bytes = metric(&bus, "nimbus_bus_sent_bytes_total").await;
    assert!(deltas >= f64::from(AGENTS), "{deltas} were let go on where they were");
    println!("{AGENTS} agents are back in sync after {took:?}: {deltas} answers of {:.0} bytes", bytes / deltas);
    // Whose connection breaks once more in the crowd, on a machine that is busy, is greeted again.
    assert!(bytes <= BYTES * deltas, "{bytes} bytes for {deltas} answers");

    // Nobody was lost on the way: what is written now reaches them all.
    user.put([("after".to_owned(), "text".to_owned())]).await;
    let poll = async {
        while metric(&bus, "nimbus_bus_sent_events_total").await < f64::from(AGENTS) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    wait::for_long("a change to reach everybody", poll).await;
    all_are_in_sync(&bus).await;
}
