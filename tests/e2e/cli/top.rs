//! `nimbus top`, and the progress of `nimbus wait`, on a terminal.

use crate::{
    cli::{World, sim::Sim, terminal::at_terminal},
    demo,
};

/// Two agents that are well, and one that rejects everything.
async fn fleet() -> (World, [Sim; 2]) {
    let mut world = World::start().await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    let sims = [
        Sim::start(&world, &["--agents", "2", "--label", "zone=a|b"]),
        Sim::start(&world, &["--agents", "1", "--prefix", "bad-", "--reject-rate", "1"]),
    ];
    world.settled(3).await;
    (world, sims)
}

#[tokio::test]
async fn one_page_shows_the_fleet_at_a_glance() {
    let (world, _sims) = fleet().await;
    let address = &world.server.address;
    let page = format!(
        "\
bus         {address}, revision 1
agents      3 connected, 0 away, 0 lost; 2 of 3 in sync
objects     1 failed, 0 pending, 0 degraded, over all agents
newest      [####################----------] 66%, applied by 2 of 3 agents, 1 failed

AGENT   STATE       POSITION   LAG   RATE   FAILED   PENDING   DEGRADED
bad-0   connected   1          -     -      1        0         0
sim-0   connected   1          -     -      0        0         0
sim-1   connected   1          -     -      0        0         0
"
    );
    world.prints(&["top", "--once"], &page);
    // A pipe is no terminal.
    world.prints(&["top"], &page);
    let selected = format!(
        "\
bus         {address}, revision 1
agents      1 connected, 0 away, 0 lost; 1 of 1 in sync
objects     0 failed, 0 pending, 0 degraded, over all agents
newest      [##############################] 100%, applied by 1 of 1 agents

AGENT   STATE       POSITION   LAG   RATE   FAILED   PENDING   DEGRADED
sim-1   connected   1          -     -      0        0         0
"
    );
    world.prints(&["top", "--once", "-l", "zone=b"], &selected);
}

#[tokio::test]
async fn a_bus_without_anything_has_a_page_too() {
    let world = World::start().await;
    let page = format!(
        "\
bus         {}, revision 0
agents      0 connected, 0 away, 0 lost; 0 of 0 in sync
objects     0 failed, 0 pending, 0 degraded, over all agents

AGENT   STATE   POSITION   LAG   RATE   FAILED   PENDING   DEGRADED
",
        world.server.address
    );
    world.prints(&["top", "--once"], &page);
    world.fails(
        &["top", "-l", "zone in a"],
        5,
        "selector \"zone in a\": expected a selector such as `zone in (a,b),role=edge,tier!=db,gpu,!canary`",
    );
    for usage in [&["top", "--sort", "colour"][..], &["top", "--interval", "0"]] {
        assert_eq!(world.run(usage).code, 2, "{usage:?}");
    }
}

#[tokio::test]
async fn a_live_view_obeys_keys_follows_the_window_and_leaves_the_terminal_as_it_was() {
    let (world, _sims) = fleet().await;
    let steps = [
        "expect:sorted by lag",
        "expect:sim-1",
        "send:s",
        "expect:sorted by failed",
        "send:\\x1b[B",
        "expect:sim-1",
        // There is room for one agent: the first one is scrolled away.
        "resize:8x60",
        "expect:sim-0",
        "send:q",
    ];
    let seen = at_terminal(&world, &steps, &["top", "--interval", "0.2"]);
    assert_eq!((seen.code, seen.restored), (0, true), "{:?}", seen.drawn);
    let entered = seen.drawn.find("\u{1b}[?1049h").expect("it takes a screen of its own");
    let left = seen.drawn.rfind("\u{1b}[?1049l").expect("it gives the screen back");
    let shown = seen.drawn.rfind("\u{1b}[?25h").expect("it shows the cursor again");
    assert!(entered < shown && shown < left);
    assert!(seen.drawn[left..].len() < 20, "nothing is drawn after that: {:?}", &seen.drawn[left..]);
}

#[tokio::test]
async fn a_live_view_that_is_interrupted_leaves_the_terminal_as_it_was() {
    let (world, _sims) = fleet().await;
    for (step, code) in [("send:\\x03", 130), ("signal:15", 143), ("signal:2", 130)] {
        let seen = at_terminal(&world, &["expect:sorted by lag", step], &["top"]);
        assert_eq!((seen.code, seen.restored), (code, true), "{step} {:?}", seen.drawn);
        assert!(seen.drawn.contains("\u{1b}[?1049l"), "{step}");
    }
}

#[tokio::test]
async fn a_live_view_stays_while_the_bus_is_gone() {
    let (world, _sims) = fleet().await;
    let bus = world.server.pid().to_string();
    let end_of_bus = format!("run:kill -9 {bus}");
    let steps =
        ["expect:sorted by lag", &end_of_bus, "expect:trouble     cannot reach a bus at", "expect:bad-0", "send:q"];
    let seen = at_terminal(&world, &steps, &["top", "--interval", "0.1"]);
    assert_eq!((seen.code, seen.restored), (0, true), "{:?}", seen.drawn);
}

#[tokio::test]
async fn the_progress_of_a_wait_is_a_bar_on_a_terminal() {
    let (world, _sims) = fleet().await;
    let seen = at_terminal(&world, &[], &["wait", "networkpolicy", "web", "--at-least", "2"]);
    let drawn = "\r[##############################]  66% 2 of 3 agents have applied it, 0 have not yet, 1 failed\u{1b}[K\r\n\
                 demo.v1.NetworkPolicy/web applied by 2 of 3 agents at revision 1\r\n";
    assert_eq!((seen.code, &*seen.drawn, seen.restored), (0, drawn, true));
    let seen = at_terminal(&world, &[], &["propagation", "networkpolicy", "web", "--color", "never"]);
    let bar = "\r\n[##########################--------------] 66%: 2 of 3 agents have applied it\r\n";
    assert!(seen.drawn.contains(bar), "{}", seen.drawn);
}
