//! `nimbus explain`.

use std::collections::BTreeMap;

use nimbus_wire::v1;
use serde_json::Value;

use crate::{
    cli::{World, sim::Sim},
    demo,
};

fn selected(name: &str, selector: &str) -> v1::Object {
    let to = Some(v1::audience::To::Selector(selector.to_owned()));
    v1::Object { audience: Some(v1::Audience { to }), ..demo::policy(name, "a", 1) }
}

fn needing(name: &str, referent: &str) -> v1::Object {
    let v1::Key { kind, namespace, name: referent } = demo::key(referent);
    let refs = vec![v1::Reference { kind, namespace, name: referent, ..v1::Reference::default() }];
    v1::Object { refs, labels: BTreeMap::new(), ..demo::policy(name, "a", 1) }
}

#[tokio::test]
async fn an_agent_that_has_it_fails_it_or_is_not_meant_says_why() {
    let mut world = World::start().await;
    let _good = Sim::start(&world, &["--agents", "1", "--label", "zone=a"]);
    let _bad = Sim::start(&world, &["--agents", "1", "--prefix", "bad-", "--reject-rate", "1"]);
    world.agents("both", |agents| agents.len() == 2).await;
    world.publish(vec![demo::policy("web", "a", 1), selected("far", "zone=b")]).await;
    world.settled(2).await;

    let applied = "\
demo.v1.NetworkPolicy/web at sim-0: applied
  demo.v1.NetworkPolicy/web is applied: the agent has applied everything up to 1

FACT   VALUE
object   generation 1, revision 1
received   T after it was published
applied   T after it was published
agent   connected for T
position   received 1, applied 1
labels   zone=a
kinds   demo.v1.NetworkPolicy
";
    world.prints_timeless(&["explain", "sim-0", "networkpolicy", "web"], applied);
    let elsewhere = "\
demo.v1.NetworkPolicy/far at sim-0: not in audience
  demo.v1.NetworkPolicy/far is not sent to sim-0: audience is zone=b, the agent's labels are zone=a

FACT   VALUE
object   generation 1, revision 1
rule   audience is zone=b, the agent's labels are zone=a
agent   connected for T
position   received 1, applied 1
labels   zone=a
kinds   demo.v1.NetworkPolicy
";
    let explained = world.run(&["explain", "sim-0", "networkpolicy/far"]);
    let without_latency: String = explained
        .out
        .lines()
        .filter(|line| !line.starts_with("received "))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(super::sim::timeless(&without_latency), elsewhere);
    let failed = "\
demo.v1.NetworkPolicy/web at bad-0: failed
  demo.v1.NetworkPolicy/web failed: REJECTED: rejected, as it was asked to (not tried again before it changes)

FACT   VALUE
object   generation 1, revision 1
received   T after it was published
failed   REJECTED: rejected, as it was asked to (not tried again before it changes)
since   T ago, tried once
agent   connected for T
position   received 1, applied 1
kinds   demo.v1.NetworkPolicy
";
    world.prints_timeless(&["explain", "bad-0", "networkpolicy", "web"], failed);
    world.prints(&["explain", "bad-0", "networkpolicy", "web", "-o", "name"], "failed\n");
    let json: Value =
        serde_json::from_str(&world.run(&["explain", "bad-0", "networkpolicy", "web", "-o", "json"]).out).unwrap();
    assert_eq!(json["verdict"], "VERDICT_FAILED");
    assert_eq!(json["exception"]["code"], "REJECTED");
}

#[tokio::test]
async fn the_chain_of_what_it_waits_for_is_followed_to_its_end() {
    let mut world = World::start().await;
    let _agent = Sim::start(&world, &["--agents", "1"]);
    world.agents("it", |agents| agents.len() == 1).await;
    world.publish(vec![needing("web", "mesh"), needing("mesh", "zone")]).await;
    world.agents("two that wait", |agents| agents[0].pending == 2).await;
    let out = world.run(&["explain", "sim-0", "networkpolicy", "web"]).out;
    let told: Vec<&str> = out.lines().take_while(|line| !line.is_empty()).collect();
    let expected = [
        "demo.v1.NetworkPolicy/web at sim-0: held",
        "  demo.v1.NetworkPolicy/web waits for demo.v1.NetworkPolicy/mesh: WAITING: needs demo.v1.NetworkPolicy/mesh",
        "  because demo.v1.NetworkPolicy/mesh waits for demo.v1.NetworkPolicy/zone: WAITING: needs demo.v1.NetworkPolicy/zone (held)",
        "  because demo.v1.NetworkPolicy/zone does not exist (no such object)",
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn an_agent_or_an_object_that_nobody_knows_cannot_be_explained() {
    let mut world = World::start().await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    let _agent = Sim::start(&world, &["--agents", "1"]);
    world.settled(1).await;
    world.fails(
        &["explain", "nobody", "networkpolicy", "web"],
        3,
        "agent nobody is not known to the bus (hint: `nimbus agents` lists them)",
    );
    world.fails(&["explain", "sim-0", "networkpolicy", "nix"], 3, "demo.v1.NetworkPolicy/nix does not exist");
    world.fails(
        &["explain", "a b", "networkpolicy", "web"],
        5,
        "agent id \"a b\": expected 1 to 253 of the characters A-Z a-z 0-9 - _ . : @ + ~ =",
    );
    assert_eq!(world.run(&["explain", "sim-0"]).code, 2);
}
