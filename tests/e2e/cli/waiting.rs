//! `nimbus wait`.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Command, Stdio},
};

use crate::{
    cli::{World, nimbus, sim::Sim},
    demo,
    server::Server,
};

#[tokio::test]
async fn a_wait_ends_when_everybody_has_it() {
    let mut world = World::start().await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    let _agents = Sim::start(&world, &["--agents", "3"]);
    world.settled(3).await;
    let ended = world.run(&["wait", "networkpolicy", "web"]);
    let progress = "nimbus: 3 of 3 agents have applied it, 0 have not yet\n";
    let reached = "demo.v1.NetworkPolicy/web applied by 3 of 3 agents at revision 1\n";
    assert_eq!((ended.code, &*ended.out, &*ended.err), (0, reached, progress));
    let ended = world.run(&["wait", "--at", "1", "--for", "received", "--at-least", "2"]);
    let progress = "nimbus: 3 of 3 agents have received it, 0 have not yet\n";
    assert_eq!((ended.code, &*ended.out, &*ended.err), (0, "revision 1 received by 3 of 3 agents\n", progress));
}

#[tokio::test]
async fn a_wait_that_is_not_over_in_time_says_who_is_missing() {
    let mut world = World::start().await;
    let _agents = Sim::start(&world, &["--agents", "1"]);
    let _slow = Sim::start(&world, &["--agents", "1", "--prefix", "slow-", "--latency", "1h"]);
    world.agents("both", |agents| agents.len() == 2).await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    world
        .agents("what each says", |agents| agents[0].applied == 1 && agents[1].pending == 1)
        .await;
    let ended = world.run(&["wait", "networkpolicy", "web", "--timeout", "0.3"]);
    let said = "\
nimbus: 1 of 2 agents have applied it, 1 have not yet
nimbus: slow-0 pending: RUNNING: the handler is at work
nimbus: demo.v1.NetworkPolicy/web was not applied in 0.3 s: 1 of 2 agents have, 2 are needed
";
    assert_eq!((ended.code, &*ended.out, &*ended.err), (7, "", said));
    assert_eq!(world.run(&["wait", "networkpolicy", "web", "--at-least", "50%"]).code, 0);
    assert_eq!(world.run(&["wait", "networkpolicy", "web", "--at-least", "1"]).code, 0);
    assert_eq!(world.run(&["wait", "networkpolicy", "web", "--for", "received"]).code, 0);
}

#[tokio::test]
async fn a_wait_that_leads_nowhere_ends_at_once() {
    let mut world = World::start().await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    let _good = Sim::start(&world, &["--agents", "1"]);
    let _bad = Sim::start(&world, &["--agents", "1", "--prefix", "bad-", "--reject-rate", "1"]);
    world.settled(2).await;
    let ended = world.run(&["wait", "networkpolicy", "web"]);
    let said = "\
nimbus: 1 of 2 agents have applied it, 0 have not yet, 1 failed
nimbus: bad-0 failed: REJECTED: rejected, as it was asked to (not tried again before it changes)
nimbus: demo.v1.NetworkPolicy/web cannot be applied by 2 agents: of 2, 1 failed for good (hint: they try again when the object changes)
";
    assert_eq!((ended.code, &*ended.out, &*ended.err), (1, "", said));
    let enough = world.run(&["wait", "networkpolicy", "web", "--at-least", "50%"]);
    assert_eq!((enough.code, &*enough.out), (0, "demo.v1.NetworkPolicy/web applied by 1 of 2 agents at revision 1\n"));
}

#[tokio::test]
async fn a_wait_for_nobody_or_nothing_is_refused_or_given_up() {
    let mut world = World::start().await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    let ended = world.run(&["wait", "networkpolicy", "web", "--timeout", "0.1"]);
    let said = "\
nimbus: 0 of 0 agents have applied it, 0 have not yet
nimbus: demo.v1.NetworkPolicy/web was not applied in 0.1 s: 0 of 0 agents have, 1 are needed (hint: `nimbus agents` lists those that there are)
";
    assert_eq!((ended.code, &*ended.out, &*ended.err), (7, "", said));
    world.fails(
        &["wait", "networkpolicy", "nix"],
        3,
        "demo.v1.NetworkPolicy/nix does not exist at revision 1, and no end of it is remembered \
         (hint: was it published under another name or namespace?)",
    );
    for usage in [&["wait"][..], &["wait", "networkpolicy/web", "--at-least", "0"], &["wait", "x/y", "--for", "lunch"]]
    {
        assert_eq!(world.run(usage).code, 2, "{usage:?}");
    }
}

#[tokio::test]
async fn a_wait_goes_on_after_a_restart_of_the_bus() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store");
    let serve = |listen: &str| Server::start_in_on(listen, &file, &["--drain", "0.1"]);
    let mut world = World::on(serve("127.0.0.1:0")).await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    let mut wait = world
        .command(&["wait", "networkpolicy", "web", "--at-least", "2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(wait.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(said.next().unwrap(), "nimbus: 0 of 0 agents have applied it, 0 have not yet");
    let address = world.server.address.clone();
    world.server.signal("KILL");
    assert_eq!(said.next().unwrap(), "nimbus: connection lost: the bus went away; trying again");
    drop(std::mem::replace(&mut world.server, serve(&address)));
    let _agents = Sim::start(&world, &["--agents", "2"]);
    assert!(said.any(|line| line == "nimbus: 2 of 2 agents have applied it, 0 have not yet"));
    let mut out = String::new();
    wait.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(wait.wait().unwrap().code(), Some(0));
    assert_eq!(out, "demo.v1.NetworkPolicy/web applied by 2 of 2 agents at revision 1\n");
}

#[tokio::test]
async fn ctrl_c_ends_a_wait_with_130_and_a_terminated_one_with_143() {
    let mut world = World::start().await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut command = nimbus(&["wait", "networkpolicy", "web", "--server", &world.server.address]);
        let mut wait = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(wait.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let sent = Command::new("kill").args([&format!("-{signal}"), &wait.id().to_string()]).status();
        assert!(sent.unwrap().success());
        assert_eq!(wait.wait().unwrap().code(), Some(code), "{line}");
    }
}
