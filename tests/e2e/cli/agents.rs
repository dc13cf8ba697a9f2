//! `nimbus agents`.

use serde_json::Value;

use crate::{
    cli::{World, sim::Sim},
    demo,
    server::Server,
};

#[tokio::test]
async fn agents_are_printed_in_every_format() {
    let mut world = World::start().await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    let none = world.run(&["agents"]);
    assert_eq!((none.code, &*none.out, &*none.err), (0, "", "nimbus: the bus knows no agents yet\n"));

    let _agents = Sim::start(&world, &["--agents", "3", "--label", "zone=a|b"]);
    world.settled(3).await;
    let table = "\
AGENT   STATE       POSITION   LAG   FAILED   PENDING   DEGRADED   SOFTWARE
sim-0   connected   1          -     0        0         0          sim-agent/0.1.0
sim-1   connected   1          -     0        0         0          sim-agent/0.1.0
sim-2   connected   1          -     0        0         0          sim-agent/0.1.0
";
    world.prints(&["agents"], table);
    let wide = "\
AGENT   STATE   POSITION   LAG   FAILED   PENDING   DEGRADED   SOFTWARE   SEEN   LABELS   KINDS
sim-1   connected   1   -   0   0   0   sim-agent/0.1.0   T ago   zone=b   demo.v1.NetworkPolicy
";
    world.prints_timeless(&["agents", "sim-1", "-o", "wide"], wide);
    world.prints(&["agents", "-o", "name"], "sim-0\nsim-1\nsim-2\n");
    world.prints(&["agents", "-o", "name", "-l", "zone=a"], "sim-0\nsim-2\n");
    world.prints(&["agents", "sim-2", "sim-0", "-o", "name"], "sim-0\nsim-2\n");

    let mut json: Value = serde_json::from_str(&world.run(&["agents", "sim-1", "-o", "json"]).out).unwrap();
    let agent = &mut json["items"][0];
    for varies in ["stateMs", "lastSeenMs", "session"] {
        assert!(agent[varies].take().is_u64(), "{varies}");
    }
    let expected = serde_json::json!({
        "agent": "sim-1", "labels": {"zone": "b"}, "state": "AGENT_STATE_CONNECTED", "stateMs": null, "lastSeenMs": null,
        "software": "sim-agent/0.1.0", "session": null, "kinds": ["demo.v1.NetworkPolicy"],
        "received": 1, "applied": 1, "lastRelevant": 1, "inSync": true, "lagMs": 0,
        "failed": 0, "pending": 0, "degraded": 0, "exceptions": [], "events": [],
    });
    assert_eq!(*agent, expected);
    let yaml = world.run(&["agents", "sim-1", "-o", "yaml"]).out;
    assert!(yaml.starts_with("agent: sim-1\nlabels:\n  zone: b\nstate: AGENT_STATE_CONNECTED\n"), "{yaml}");
}

#[tokio::test]
async fn who_failed_who_is_behind_and_who_is_lost_is_shown_with_the_reason() {
    let mut world = World::on(Server::start(&["--assume-complete", "--lost-after", "0.2"])).await;
    world.publish(vec![demo::policy("web", "a", 1), demo::policy("db", "a", 1)]).await;
    let _well = Sim::start(&world, &["--agents", "1", "--prefix", "well-"]);
    let _bad = Sim::start(&world, &["--agents", "1", "--prefix", "bad-", "--reject-rate", "1"]);
    let gone = Sim::start(&world, &["--agents", "1", "--prefix", "gone-"]);
    world.settled(3).await;
    drop(gone);
    world
        .agents("the lost one", |agents| agents.iter().any(|agent| agent.state() == nimbus_wire::v1::AgentState::Lost))
        .await;
    world.publish(vec![demo::policy("web", "a", 2)]).await;
    let reached = |agent: &nimbus_wire::v1::AgentInfo| agent.agent == "gone-0" || agent.applied == 2;
    world.agents("the others", |agents| agents.iter().all(reached)).await;

    world.prints(&["agents", "--behind", "-o", "name"], "bad-0\ngone-0\n");
    let failing = "\
AGENT   STATE       POSITION   LAG   FAILED   PENDING   DEGRADED   SOFTWARE          WHY
bad-0   connected   2          -     2        0         0          sim-agent/0.1.0   demo.v1.NetworkPolicy/db: REJECTED: rejected, as it was asked to (not tried again before it changes) (and 1 more)
";
    world.prints(&["agents", "--failing"], failing);
    let lost = "\
AGENT   STATE   POSITION   LAG   FAILED   PENDING   DEGRADED   SOFTWARE
gone-0   lost T   1 of 2   T   0   0   0   sim-agent/0.1.0
";
    world.prints_timeless(&["agents", "--lost"], lost);
    let none = world.run(&["agents", "--lost", "--failing"]);
    assert_eq!((none.code, &*none.out, &*none.err), (0, "", "nimbus: no agent is like that\n"));
}

#[tokio::test]
async fn a_fleet_of_many_pages_is_one_table() {
    let mut world = World::on(Server::start(&["--assume-complete", "--max-page-objects", "3"])).await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    let _agents = Sim::start(&world, &["--agents", "8"]);
    let names: String = (0..8).map(|n| format!("sim-{n}\n")).collect();
    crate::wait::until("eight agents", || world.run(&["agents", "-o", "name"]).out == names).await;
}

#[tokio::test]
async fn agents_that_are_not_there_and_selections_that_make_no_sense_are_refused() {
    let mut world = World::start().await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    let _agents = Sim::start(&world, &["--agents", "1"]);
    world.settled(1).await;
    world.fails(&["agents", "nobody"], 3, "agent nobody is not known to the bus");
    let both = world.run(&["agents", "sim-0", "nobody", "-o", "name"]);
    assert_eq!((both.code, &*both.out, &*both.err), (3, "sim-0\n", "nimbus: agent nobody is not known to the bus\n"));
    world.fails(
        &["agents", "-l", "zone in a"],
        5,
        "selector \"zone in a\": expected a selector such as `zone in (a,b),role=edge,tier!=db,gpu,!canary`",
    );
    world.fails(
        &["agents", "a b"],
        5,
        "agent id \"a b\": expected 1 to 253 of the characters A-Z a-z 0-9 - _ . : @ + ~ =",
    );
    assert_eq!(world.run(&["agents", "sim-0", "--lost"]).code, 2, "a name and a selection contradict each other");
}
