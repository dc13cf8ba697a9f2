//! `nimbus watch`.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
};

use nimbus_wire::v1;
use serde_json::{Value, json};

use crate::{cli::World, demo, server::Server, wait::GUARD};

const POLICIES: &[&str] = &["demo/v1/network_policy.proto"];

/// More than any of these tests prints; beyond that, the command waits.
const LINES: usize = 1_000;

/// The command while it runs; it is killed with this value.
struct Watching {
    process: Child,
    out: Receiver<String>,
    err: Receiver<String>,
}

fn lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(LINES);
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines() {
            if sender.send(line.unwrap()).is_err() {
                break;
            }
        }
    });
    receiver
}

// === impl Watching ===

impl Watching {
    fn start(world: &World, arguments: &[&str]) -> Self {
        let mut process = world
            .command(&[&["watch", "networkpolicy"], arguments].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (out, err) = (lines(process.stdout.take().unwrap()), lines(process.stderr.take().unwrap()));
        Self { process, out, err }
    }

    /// The next lines are these, and came in this order.
    fn prints(&self, expected: &[&str]) {
        for expected in expected {
            assert_eq!(self.out.recv_timeout(GUARD).unwrap(), *expected);
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.out.recv_timeout(GUARD).unwrap()).unwrap()
    }

    fn says(&self) -> String {
        self.err.recv_timeout(GUARD).unwrap()
    }

    fn says_that_it_lost_the_connection(&self) {
        let said = self.says();
        let reasons = ["the bus went away", "the bus closed the stream", "the bus is shutting down"];
        let expected = reasons.map(|reason| format!("nimbus: connection lost: {reason}; reconnecting"));
        assert!(expected.contains(&said), "{said}");
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // Both fail only if the process has ended by itself.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[tokio::test]
async fn what_is_there_and_every_change_of_it_is_a_line() {
    let mut world = World::start().await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    let watch = Watching::start(&world, &[]);
    watch.prints(&["ADDED            1   demo.v1.NetworkPolicy/web   generation 1"]);
    world.publish(vec![demo::policy("web", "a", 2)]).await;
    // Nothing changes, so nothing is said.
    world.publish(vec![demo::policy("web", "a", 2)]).await;
    let marked = BTreeMap::from([("note".to_owned(), "x".to_owned())]);
    world
        .publish(vec![v1::Object { annotations: marked, ..demo::policy("web", "a", 2) }])
        .await;
    watch.prints(&[
        "CHANGED          2   demo.v1.NetworkPolicy/web   generation 1 -> 2",
        "CHANGED          3   demo.v1.NetworkPolicy/web   generation 2",
    ]);
    world
        .publish(vec![v1::Object { namespace: "prod".to_owned(), ..demo::policy("db", "a", 1) }])
        .await;
    watch.prints(&["ADDED            4   demo.v1.NetworkPolicy/prod/db   generation 1"]);
    world.apply(vec![demo::delete(demo::key("web"))]).await;
    watch.prints(&["REMOVED          5   demo.v1.NetworkPolicy/web"]);
    world.publish(vec![demo::policy("web", "a", 2)]).await;
    watch.prints(&["ADDED            6   demo.v1.NetworkPolicy/web   generation 1"]);
    assert!(watch.err.try_recv().is_err(), "there is nothing to remark");
}

#[tokio::test]
async fn programs_get_one_document_for_each_change() {
    let mut world = World::start().await;
    world.register(POLICIES).await;
    world
        .publish(vec![v1::Object { uid: "w".to_owned(), ..demo::policy("web", "a", 1) }])
        .await;
    let watch = Watching::start(&world, &["-o", "json"]);
    let object = |priority: u32, generation: u64, revision: u64| {
        json!({
            "kind": "demo.v1.NetworkPolicy", "name": "web", "spec": {"zone": "a", "priority": priority},
            "bus": {"uid": "w", "generation": generation, "revision": revision, "manager": "policies"},
        })
    };
    assert_eq!(watch.json(), json!({"event": "ADDED", "revision": 1, "object": object(1, 1, 1)}));
    world
        .publish(vec![v1::Object { uid: "w".to_owned(), ..demo::policy("web", "a", 2) }])
        .await;
    assert_eq!(watch.json(), json!({"event": "CHANGED", "revision": 2, "object": object(2, 2, 2)}));

    let named = Watching::start(&world, &["-o", "name"]);
    named.prints(&["demo.v1.NetworkPolicy/web"]);
    let yaml = Watching::start(&world, &["-o", "yaml"]);
    yaml.prints(&["event: ADDED", "revision: 2", "object:", "  kind: demo.v1.NetworkPolicy"]);
    world.apply(vec![demo::delete(demo::key("web"))]).await;
    let key = json!({"kind": "demo.v1.NetworkPolicy", "name": "web"});
    assert_eq!(watch.json(), json!({"event": "REMOVED", "revision": 3, "outOfScope": false, "object": key}));
}

#[tokio::test]
async fn what_is_selected_comes_and_goes_by_its_own_changes() {
    let mut world = World::start().await;
    world.register(POLICIES).await;
    world.publish(vec![demo::policy("web", "a", 1), demo::policy("db", "b", 1)]).await;
    let watch = Watching::start(&world, &["--filter", "spec.zone=a"]);
    watch.prints(&["ADDED            1   demo.v1.NetworkPolicy/web   generation 1"]);
    world.publish(vec![demo::policy("web", "b", 1)]).await;
    watch.prints(&["REMOVED          2   demo.v1.NetworkPolicy/web   it lives on, but is not selected any more"]);
    world.publish(vec![demo::policy("db", "a", 1)]).await;
    watch.prints(&["ADDED            3   demo.v1.NetworkPolicy/db   generation 2"]);

    let later = Watching::start(&world, &["--no-initial"]);
    // It takes a moment until it has looked: what comes then is shown, whenever that is.
    let mut priority = 1;
    let line = loop {
        priority += 1;
        world.publish(vec![demo::policy("db", "a", priority)]).await;
        if let Ok(line) = later.out.recv_timeout(std::time::Duration::from_millis(50)) {
            break line;
        }
        assert!(priority < 1_000);
    };
    assert!(line.contains("demo.v1.NetworkPolicy/db") && !line.contains("web"), "{line}");
}

#[tokio::test]
async fn a_watch_goes_on_after_a_restart_and_shows_what_happened_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store");
    let serve = |listen: &str| Server::start_in_on(listen, &file, &["--drain", "0.1"]);
    let mut world = World::on(serve("127.0.0.1:0")).await;
    world.publish(vec![demo::policy("web", "a", 1), demo::policy("db", "a", 1)]).await;
    let watch = Watching::start(&world, &["-o", "name"]);
    let mut first = [watch.out.recv_timeout(GUARD).unwrap(), watch.out.recv_timeout(GUARD).unwrap()];
    first.sort();
    assert_eq!(first, ["demo.v1.NetworkPolicy/db", "demo.v1.NetworkPolicy/web"]);
    let address = world.server.address.clone();

    world.server.signal("KILL");
    watch.says_that_it_lost_the_connection();
    drop(std::mem::replace(&mut world.server, serve(&address)));
    assert_eq!(watch.says(), "nimbus: resumed at revision 1: nothing was missed");

    world.server.signal("TERM");
    watch.says_that_it_lost_the_connection();
    // Where nobody sees it.
    let elsewhere = {
        let old = std::mem::replace(&mut world.server, Server::start(&[]));
        drop(old);
        serve("127.0.0.1:0")
    };
    let mut hidden = World::on(elsewhere).await;
    hidden.publish(vec![demo::policy("web", "a", 2)]).await;
    hidden.apply(vec![demo::delete(demo::key("db"))]).await;
    assert!(hidden.server.stop().success());
    world.server = serve(&address);
    assert_eq!(watch.says(), "nimbus: resumed at revision 3: 2 changes while away");
    watch.prints(&["demo.v1.NetworkPolicy/web", "demo.v1.NetworkPolicy/db"]);
}

#[tokio::test]
async fn a_bus_that_has_forgotten_everything_is_refilled_before_anything_is_said() {
    let mut world = World::on(Server::start(&["--bookmark-interval", "0.2"])).await;
    let sync = |policies| tokio_stream::iter(demo::sync("policies", policies));
    world
        .publisher
        .sync(sync(vec![demo::policy("web", "a", 1), demo::policy("db", "a", 1)]))
        .await
        .unwrap();
    let watch = Watching::start(&world, &["-o", "name"]);
    watch.out.recv_timeout(GUARD).unwrap();
    watch.out.recv_timeout(GUARD).unwrap();
    let address = world.server.address.clone();
    world.server.signal("KILL");
    watch.says_that_it_lost_the_connection();
    drop(std::mem::replace(&mut world.server, Server::start(&[])));
    let mut world = World::on(Server::start_on(&address, &["--bookmark-interval", "0.2"])).await;
    let waits = watch.says();
    assert!(waits.starts_with("nimbus: connected; waiting for publishers to refill the bus: "), "{waits}");
    world
        .publisher
        .sync(sync(vec![demo::policy("web", "a", 1), demo::policy("db", "a", 7)]))
        .await
        .unwrap();
    let resumed = watch.says();
    assert!(
        resumed.starts_with("nimbus: resynchronised at revision ") && resumed.ends_with(": 1 change while away"),
        "{resumed}"
    );
    watch.prints(&["demo.v1.NetworkPolicy/db"]);
}

#[tokio::test]
async fn ctrl_c_ends_a_watch_with_130() {
    let mut world = World::start().await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    let mut watch = Watching::start(&world, &["-o", "name"]);
    watch.prints(&["demo.v1.NetworkPolicy/web"]);
    let sent = Command::new("kill").args(["-INT", &watch.process.id().to_string()]).status();
    assert!(sent.unwrap().success());
    assert_eq!(watch.process.wait().unwrap().code(), Some(130));
}

#[tokio::test]
async fn a_watch_that_makes_no_sense_is_refused() {
    let mut world = World::start().await;
    world.register(POLICIES).await;
    world.fails(
        &["watch", "networkpolicy", "-l", "zone in a"],
        5,
        "selector \"zone in a\": expected a selector such as `zone in (a,b),role=edge,tier!=db,gpu,!canary`",
    );
    for flags in [&[][..], &["--no-initial"]] {
        world.fails(
            &[&["watch", "networkpolicy", "--filter", "spec.zoen=a"], flags].concat(),
            5,
            "demo.v1.NetworkPolicy has no field zoen (did you mean zone?)",
        );
    }
    assert_eq!(world.run(&["watch"]).code, 2);
}
