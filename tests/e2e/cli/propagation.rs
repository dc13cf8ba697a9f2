//! `nimbus propagation`.

use nimbus_wire::v1;
use serde_json::Value;

use crate::{
    cli::{World, sim::Sim},
    demo,
};

/// Two agents that have it, one that rejects it, one that is at work, and one that was never there.
async fn fleet() -> (World, Vec<Sim>) {
    let mut world = World::start().await;
    let ids = ["sim-0", "sim-1", "bad-0", "slow-0", "never"].map(str::to_owned).to_vec();
    let audience = Some(v1::Audience { to: Some(v1::audience::To::Agents(v1::Agents { ids })) });
    let sims = vec![
        Sim::start(&world, &["--agents", "2", "--label", "zone=a|b"]),
        Sim::start(&world, &["--agents", "1", "--prefix", "bad-", "--reject-rate", "1"]),
        Sim::start(&world, &["--agents", "1", "--prefix", "slow-", "--latency", "1h"]),
    ];
    world.agents("four agents", |agents| agents.len() == 4).await;
    world.publish(vec![v1::Object { audience, ..demo::policy("web", "a", 1) }]).await;
    let done = |agent: &v1::AgentInfo| match &*agent.agent {
        "slow-0" => agent.pending == 1,
        "bad-0" => agent.failed == 1,
        _ => agent.applied == 1,
    };
    world.agents("what each of them says", |agents| agents.iter().all(done)).await;
    (world, sims)
}

#[tokio::test]
async fn who_has_it_who_has_not_and_why_is_on_one_page() {
    let (world, _sims) = fleet().await;
    let page = "\
demo.v1.NetworkPolicy/web: generation 1, revision 1, published T ago
50%: 2 of 4 agents have applied it

AGENTS   RECEIVED   APPLIED   DEGRADED   FAILED   PENDING   EXCLUDED
4   4   2   0   1   1   1

AGENT   STANDING   WHY
bad-0   failed   REJECTED: rejected, as it was asked to (not tried again before it changes)
slow-0   pending   RUNNING: the handler is at work
never   excluded   named, but never seen by this bus

LATENCY   AGENTS   P50   P90   P99   MAX
received   4   T   T   T   T
applied   2   T   T   T   T
";
    world.prints_timeless(&["propagation", "networkpolicy", "web"], page);
    world.prints_timeless(&["propagation", "networkpolicy/web"], page);
    world.prints(&["propagation", "networkpolicy/web", "-o", "name"], "bad-0\nslow-0\n");

    let selected = world.run(&["propagation", "networkpolicy/web", "-l", "zone=a"]).out;
    assert!(selected.contains("\n100%: 1 of 1 agents have applied it\n"), "{selected}");
}

#[tokio::test]
async fn counts_are_exact_however_few_agents_are_named() {
    let mut world = World::start().await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    let _bad = Sim::start(&world, &["--agents", "5", "--reject-rate", "1"]);
    world.settled(5).await;
    let page = world.run(&["propagation", "networkpolicy/web", "--max-agents", "2"]).out;
    let why = "REJECTED: rejected, as it was asked to (not tried again before it changes)";
    let named = format!(
        "sim-0   failed     {why}\nsim-1   failed     {why}\nand 3 more (hint: --max-agents names more of them)\n"
    );
    assert!(page.contains(&named), "{page}");
}

#[tokio::test]
async fn a_transaction_and_the_end_of_an_object_propagate_too() {
    let mut world = World::start().await;
    world.publish(vec![demo::policy("web", "a", 1), demo::policy("db", "a", 1)]).await;
    let _agents = Sim::start(&world, &["--agents", "2"]);
    world.settled(2).await;
    world.apply(vec![demo::delete(demo::key("web"))]).await;
    world.agents("the end", |agents| agents.iter().all(|agent| agent.applied == 2)).await;
    let first_lines = |arguments: &[&str]| {
        let out = world.run(arguments).out;
        super::sim::timeless(&out.lines().take(2).collect::<Vec<_>>().join("\n"))
    };
    assert_eq!(
        first_lines(&["propagation", "--at", "1"]),
        "revision 1, published T ago\n100%: 2 of 2 agents have applied it"
    );
    assert_eq!(
        first_lines(&["propagation", "networkpolicy", "web"]),
        "demo.v1.NetworkPolicy/web: deleted at revision 2, T ago\n100%: 2 of 2 agents have applied it"
    );
    let json: Value = serde_json::from_str(&world.run(&["propagation", "--at", "2", "-o", "json"]).out).unwrap();
    let counts = ["target", "revision", "agents", "applied", "failed", "pending"].map(|field| json[field].clone());
    assert_eq!(serde_json::json!(counts), serde_json::json!(["revision 2", 2, 2, 2, 0, 0]));
    let yaml = world.run(&["propagation", "--at", "2", "-o", "yaml"]).out;
    assert!(yaml.starts_with("target: revision 2\nepoch: "), "{yaml}");
}

#[tokio::test]
async fn propagation_of_what_is_not_there_is_refused() {
    let mut world = World::start().await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    world.fails(
        &["propagation", "networkpolicy", "nix"],
        3,
        "demo.v1.NetworkPolicy/nix does not exist at revision 1, and no end of it is remembered \
         (hint: was it published under another name or namespace?)",
    );
    world.fails(&["propagation", "--at", "7"], 5, "at most 1, the newest revision, found 7");
    world.fails(&["propagation", "--at", "0"], 5, "the revision of a transaction, 1 or more");
    world.fails(
        &["propagation", "networkpolicy", "web", "db"],
        5,
        "more than one object is named (hint: write KIND NAME, or KIND/NAME)",
    );
    for usage in [&["propagation"][..], &["propagation", "networkpolicy/web", "--at", "1"]] {
        assert_eq!(world.run(usage).code, 2, "{usage:?}");
    }
}
