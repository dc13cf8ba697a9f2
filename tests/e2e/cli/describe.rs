//! `nimbus describe`.

use std::collections::BTreeMap;

use nimbus_wire::v1::{self, ConditionState};

use crate::{
    cli::{World, account, sim::Sim},
    demo,
};

fn reference(name: &str, weak: bool) -> v1::Reference {
    let v1::Key { kind, namespace, name } = demo::key(name);
    v1::Reference { kind, namespace, name, weak, ..v1::Reference::default() }
}

fn owner(name: &str, uid: &str) -> Option<v1::Owner> {
    let v1::Key { kind, namespace, name } = demo::key(name);
    Some(v1::Owner { kind, namespace, name, uid: uid.to_owned() })
}

#[tokio::test]
async fn everything_that_is_known_of_an_object_is_on_one_page() {
    let mut world = World::start().await;
    world.register(&["demo/v1/network_policy.proto"]).await;
    let _good = Sim::start(&world, &["--agents", "1"]);
    let _bad = Sim::start(&world, &["--agents", "1", "--prefix", "bad-", "--reject-rate", "1"]);
    world.agents("both", |agents| agents.len() == 2).await;
    let text = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let web = v1::Object {
        uid: "web-1".to_owned(),
        labels: text(&[("tier", "front"), ("zone", "a")]),
        annotations: text(&[("by", "ann"), ("note", "two\nlines")]),
        refs: vec![reference("mesh", false), reference("nix", true)],
        owner: owner("mesh", "mesh-0"),
        ..demo::policy("web", "a", 1)
    };
    let mesh = v1::Object { uid: "mesh-1".to_owned(), ..demo::policy("mesh", "a", 1) };
    let child = v1::Object { owner: owner("web", "web-1"), ..demo::policy("child", "a", 1) };
    let foreign = v1::Object { owner: owner("web", "web-0"), ..demo::policy("foreign", "a", 1) };
    let user = v1::Object { refs: vec![reference("web", true)], ..demo::policy("user", "a", 1) };
    world.publish(vec![web, mesh, child, foreign, user]).await;
    let condition = v1::Condition {
        r#type: "Ready".to_owned(),
        state: ConditionState::False.into(),
        code: "Failed".to_owned(),
        message: "no zone".to_owned(),
        generation: 1,
    };
    let detail = Some(demo::policy("", "b", 7).spec.unwrap());
    let standing = v1::Standing { conditions: vec![condition], detail };
    let status = v1::StatusWrite {
        key: Some(demo::key("web")),
        status: Some(prost_types::Any::from_msg(&standing).unwrap()),
        observed_generation: 1,
    };
    world
        .apply(vec![v1::Op { op: Some(v1::op::Op::Status(status)), ..v1::Op::default() }])
        .await;
    let finalizers =
        v1::FinalizersWrite { key: Some(demo::key("web")), add: vec!["billing".to_owned()], ..Default::default() };
    world
        .apply(vec![v1::Op { op: Some(v1::op::Op::Finalizers(finalizers)), ..v1::Op::default() }])
        .await;
    world.apply(vec![demo::delete(demo::key("web"))]).await;
    world.agents("both done", |agents| agents.iter().all(|agent| agent.applied == 4)).await;

    let page = "\
Kind          demo.v1.NetworkPolicy
Name          web
Uid           web-1
Generation    1
Revision      4
Manager       policies
Audience      everybody
Labels        tier=front,zone=a
Annotations   by=ann
              note=two\\nlines
Finalizers    billing
Deleting      yes, as soon as the last finalizer is done
Owner         demo.v1.NetworkPolicy/mesh   does not exist any more: another one has its name
Needs         demo.v1.NetworkPolicy/mesh
              demo.v1.NetworkPolicy/nix (weak)   does not exist
Needed by     demo.v1.NetworkPolicy/user

Conditions
TYPE    STATE   CODE     GENERATION   MESSAGE
Ready   false   Failed   1            no zone

Status
  \"@type\": type.googleapis.com/demo.v1.NetworkPolicy
  zone: b
  priority: 7

Spec
  zone: a
  priority: 1

Children
NAME                          AGENTS   APPLIED   FAILED   PENDING
demo.v1.NetworkPolicy/child   2        1         1        0

Propagation
AGENTS   RECEIVED   APPLIED   DEGRADED   FAILED   PENDING   EXCLUDED
2        2          1         0          0        1         0

Agents that do not have it as they should
AGENT   STANDING   WHY
bad-0   pending    WAITING: needs demo.v1.NetworkPolicy/mesh
";
    world.prints(&["describe", "networkpolicy", "web"], page);
}

#[tokio::test]
async fn a_description_has_no_secrets_with_a_schema_and_without() {
    let mut world = World::start().await;
    world
        .publish(vec![v1::Object { uid: "r-1".to_owned(), ..account("root", "admin", "correct-horse") }])
        .await;
    let page = |spec: &str| {
        format!(
            "\
Kind          demo.v1.Account
Name          root
Uid           r-1
Generation    1
Revision      1
Manager       policies
Audience      everybody
Labels        -

Spec
{spec}
Propagation
  no agent has subscribed to it
"
        )
    };
    world.prints(&["describe", "account/root"], &page("  not readable: nobody has registered the kind\n"));
    world.register(&["demo/v1/account.proto"]).await;
    world.prints(&["describe", "account/root"], &page("  user: admin\n  password: \"<secret>\"\n"));
}

#[tokio::test]
async fn what_is_not_there_is_not_described() {
    let mut world = World::start().await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    world.fails(&["describe", "networkpolicy", "nix"], 3, "demo.v1.NetworkPolicy/nix does not exist at revision 1");
    assert_eq!(world.run(&["describe"]).code, 2);
}
