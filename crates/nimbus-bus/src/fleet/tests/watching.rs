//! A watcher that falls behind.

use nimbus_wire::v1::watch_status_response::Event;
use tonic_health::server::HealthReporter;

use super::*;
use crate::{fleet::watch::Watch, inner::Inner};

struct World {
    inner: Arc<Inner>,
    sessions: u64,
}

impl World {
    fn new() -> Self {
        let inner = {
            let open = |config| Ok(nimbus_store::Collection::new(config));
            Inner::new(Config::new(Epoch(7), 7), false, open, Metrics::default(), HealthReporter::new()).unwrap()
        };
        Self { inner: Arc::new(inner), sessions: 0 }
    }

    fn come(&mut self, id: &str) -> Arc<crate::fleet::Agent> {
        self.sessions += 1;
        let opening = Opening {
            session: self.sessions,
            scope: scope(id, "z", &[]),
            software: String::new(),
            resumed: None,
            head: Revision::ZERO,
        };
        self.inner.fleet.connect(&agent_id(id), opening, Instant::now()).unwrap()
    }

    /// One that comes and leaves for good.
    fn pass_through(&mut self, id: &str) {
        let agent = self.come(id);
        agent.entry.lock().leaving = true;
        self.inner.fleet.disconnect(&agent, self.sessions, Instant::now());
    }
}

async fn next(watch: Watch) -> (String, Watch) {
    let (event, watch) = watch.next().await.unwrap();
    let text = match event.unwrap().event.unwrap() {
        Event::Report(report) => report.agent.unwrap().agent,
        Event::Forgotten(id) => format!("-{id}"),
        Event::CaughtUp(_) => "caught up".to_owned(),
        Event::Restarted(_) => "restarted".to_owned(),
    };
    (text, watch)
}

async fn check(mut watch: Watch, expected: &[&str]) -> Watch {
    for expected in expected {
        let (found, rest) = next(watch).await;
        assert_eq!(found, *expected);
        watch = rest;
    }
    watch
}

/// Only the latest removals are remembered: a watcher that did not read for so long would have kept the others for ever.
#[tokio::test(start_paused = true)]
async fn a_watcher_that_missed_who_was_forgotten_is_told_to_start_again() {
    let mut world = World::new();
    for id in ["leaves", "stays"] {
        world.come(id);
    }
    let watch = Watch::begin(world.inner.clone(), &v1::WatchStatusRequest::default()).unwrap();
    let watch = check(watch, &["leaves", "stays", "caught up"]).await;
    world.pass_through("leaves");
    let watch = check(watch, &["-leaves"]).await;
    world.come("leaves");
    world.pass_through("leaves");
    for n in 0..5_000 {
        world.pass_through(&format!("a{n}"));
    }
    let watch = check(watch, &["restarted", "stays", "caught up"]).await;
    world.pass_through("b");
    check(watch, &["-b"]).await;
}

/// What changed while all agents were sent for the first time comes after it.
#[tokio::test(start_paused = true)]
async fn changes_during_the_first_pass_are_not_lost() {
    let mut world = World::new();
    for n in 0..300 {
        world.come(&format!("a{n:03}"));
    }
    let mut watch = Watch::begin(world.inner.clone(), &v1::WatchStatusRequest::default()).unwrap();
    watch = check(watch, &["a000", "a001"]).await;
    world.come("a000");
    world.come("new");
    world.pass_through("a299");
    let mut names = Vec::new();
    loop {
        let (name, rest) = next(watch).await;
        watch = rest;
        if name == "caught up" {
            break;
        }
        names.push(name);
    }
    assert_eq!(
        (names.len(), names.last().map(String::as_str)),
        (298, Some("new")),
        "all that are left, and the new one"
    );
    check(watch, &["a000", "new", "-a299"]).await;
}
