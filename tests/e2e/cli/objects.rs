//! `nimbus get` and `nimbus list`.

use std::collections::BTreeMap;

use nimbus_wire::v1::{self, audience::To};

use crate::{cli::World, demo, server::Server};

const POLICIES: &[&str] = &["demo/v1/network_policy.proto"];

/// Two policies, the first with everything that a publisher can say.
async fn two_policies() -> World {
    let mut world = World::start().await;
    world.register(POLICIES).await;
    let pair = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let reference = v1::Reference { kind: demo::KIND.to_owned(), name: "web".to_owned(), ..v1::Reference::default() };
    let db = v1::Object {
        namespace: "prod".to_owned(),
        uid: "db-1".to_owned(),
        labels: pair("tier", "back"),
        annotations: pair("note", "first line\nsecond: line"),
        refs: vec![reference],
        owner: Some(v1::Owner { kind: "demo.v1.Team".to_owned(), name: "data".to_owned(), ..v1::Owner::default() }),
        audience: Some(v1::Audience { to: Some(To::Selector("zone in (a,b)".to_owned())) }),
        ..demo::policy("db", "b", 20)
    };
    let web = v1::Object { uid: "web-1".to_owned(), labels: pair("tier", "front"), ..demo::policy("web", "a", 10) };
    world.publish(vec![db, web]).await;
    world
}

#[tokio::test]
async fn objects_are_printed_in_every_format() {
    let world = two_policies().await;
    let table = "\
NAMESPACE   NAME   GENERATION   REVISION   MANAGER    STATE
-           web    1            1          policies   -
prod        db     1            1          policies   -
";
    world.prints(&["get", "networkpolicy"], table);
    world.prints(&["get", "demo.v1.NetworkPolicy", "-o", "table"], table);
    world.prints(&["list", "NetworkPolicies"], table);
    world.prints(
        &["list", "networkpolicy", "--no-headers"],
        "-      web   1   1   policies   -\nprod   db    1   1   policies   -\n",
    );
    world.prints(
        &["list", "networkpolicy", "-o", "wide"],
        "\
NAMESPACE   NAME   GENERATION   REVISION   MANAGER    STATE   AUDIENCE        LABELS       REFS                        UID
-           web    1            1          policies   -       everybody       tier=front   -                           web-1
prod        db     1            1          policies   -       zone in (a,b)   tier=back    demo.v1.NetworkPolicy/web   db-1
",
    );
    world
        .prints(&["list", "networkpolicy", "-o", "name"], "demo.v1.NetworkPolicy/web\ndemo.v1.NetworkPolicy/prod/db\n");
    let (web, db) = (
        "\
kind: demo.v1.NetworkPolicy
name: web
labels:
  tier: front
spec:
  zone: a
  priority: 10
bus:
  uid: web-1
  generation: 1
  revision: 1
  manager: policies
",
        "\
kind: demo.v1.NetworkPolicy
namespace: prod
name: db
labels:
  tier: back
annotations:
  note: |-
    first line
    second: line
owner:
  kind: demo.v1.Team
  name: data
refs:
  - kind: demo.v1.NetworkPolicy
    name: web
audience:
  selector: \"zone in (a,b)\"
spec:
  zone: b
  priority: 20
bus:
  uid: db-1
  generation: 1
  revision: 1
  manager: policies
",
    );
    world.prints(&["get", "networkpolicy", "-o", "yaml"], &format!("{web}---\n{db}"));
    world.prints(&["get", "networkpolicy", "web", "-o", "yaml"], web);
    world.prints(&["get", "networkpolicy/prod/db", "-o", "yaml"], db);
    world.prints(&["get", "networkpolicy", "-n", "prod", "-o", "yaml"], db);
}

#[tokio::test]
async fn json_is_one_document() {
    let world = two_policies().await;
    let web = r#"{
  "kind": "demo.v1.NetworkPolicy",
  "name": "web",
  "labels": {
    "tier": "front"
  },
  "spec": {
    "zone": "a",
    "priority": 10
  },
  "bus": {
    "uid": "web-1",
    "generation": 1,
    "revision": 1,
    "manager": "policies"
  }
}
"#;
    world.prints(&["get", "networkpolicy", "web", "-o", "json"], web);
    let indented: Vec<String> = web.lines().map(|line| format!("    {line}")).collect();
    let list = format!("{{\n  \"items\": [\n{}\n  ]\n}}\n", indented.join("\n"));
    world.prints(&["list", "networkpolicy", "-l", "tier=front", "-o", "json"], &list);
    let all = world.run(&["list", "--all-kinds", "-o", "json"]);
    let all: serde_json::Value = serde_json::from_str(&all.out).unwrap();
    let names: Vec<_> = all["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["web", "db"]);
}

#[tokio::test]
async fn objects_are_selected_by_name_namespace_labels_and_fields() {
    let world = two_policies().await;
    let (web, db) = ("demo.v1.NetworkPolicy/web\n", "demo.v1.NetworkPolicy/prod/db\n");
    world.prints(&["list", "networkpolicy", "-o", "name", "-l", "tier in (front,middle)"], web);
    world.prints(&["list", "networkpolicy", "-o", "name", "--filter", "spec.zone=b"], db);
    world.prints(
        &["list", "networkpolicy", "-o", "name", "--filter", "spec.zone!=b", "--filter", "spec.priority=10"],
        web,
    );
    world.prints(&["list", "networkpolicy", "-o", "name", "-n", "prod"], db);
    world.prints(&["get", "networkpolicy", "db", "-n", "prod", "-o", "name"], db);
    world.prints(&["get", "networkpolicy/web", "networkpolicy/prod/db", "-o", "name"], &format!("{web}{db}"));
    let row = "\
NAME   GENERATION   REVISION   MANAGER    STATE
web    1            1          policies   -
";
    world.prints(&["get", "networkpolicy", "web"], row);

    let none = world.run(&["list", "networkpolicy", "-l", "tier=none"]);
    assert_eq!((none.code, &*none.out, &*none.err), (0, "", "nimbus: no objects of demo.v1.NetworkPolicy found\n"));
    let none = world.run(&["list", "networkpolicy", "-l", "tier=none", "-o", "json"]);
    assert_eq!(none.out, "{\n  \"items\": []\n}\n");
}

#[tokio::test]
async fn what_is_there_is_shown_and_what_is_not_is_said() {
    let world = two_policies().await;
    let ended = world.run(&["get", "networkpolicy", "web", "nix", "-o", "name"]);
    let err = "nimbus: demo.v1.NetworkPolicy/nix does not exist at revision 1\n";
    assert_eq!((ended.code, &*ended.out, &*ended.err), (3, "demo.v1.NetworkPolicy/web\n", err));
}

#[tokio::test]
async fn objects_of_several_kinds_are_told_apart() {
    let mut world = two_policies().await;
    world.register(&["other/v1/network_policy.proto"]).await;
    let spec = demo::pack("other.v1.NetworkPolicy", Vec::new());
    world
        .publish(vec![v1::Object { name: "x".to_owned(), spec: Some(spec), ..v1::Object::default() }])
        .await;
    let table = "\
KIND                     NAMESPACE   NAME   GENERATION   REVISION   MANAGER    STATE
demo.v1.NetworkPolicy    -           web    1            1          policies   -
demo.v1.NetworkPolicy    prod        db     1            1          policies   -
other.v1.NetworkPolicy   -           x      1            2          policies   -
";
    world.prints(&["list", "--all-kinds"], table);
    world.prints(&["list", "demo.v1.networkpolicy", "other.v1.networkpolicy"], table);
    world.prints(&["get", "demo.v1.networkpolicy,other.v1.networkpolicy"], table);
}

#[tokio::test]
async fn a_list_of_many_pages_is_one_list() {
    let mut world = World::on(Server::start(&["--assume-complete", "--max-page-objects", "3"])).await;
    world.register(POLICIES).await;
    let names: Vec<String> = (0..10).map(|n| format!("p{n}")).collect();
    world.publish(names.iter().map(|name| demo::policy(name, "a", 1)).collect()).await;
    let lines = |names: &[String]| names.iter().map(|name| format!("{}/{name}\n", demo::KIND)).collect::<String>();
    world.prints(&["list", "networkpolicy", "-o", "name"], &lines(&names));
    world.prints(&["list", "networkpolicy", "-o", "name", "--limit", "10"], &lines(&names));
    let limited = world.run(&["list", "networkpolicy", "-o", "name", "--limit", "4"]);
    assert_eq!((limited.code, limited.out), (0, lines(&names[..4])));
    assert_eq!(limited.err, "nimbus: there are more objects than --limit allows\n");
    assert_eq!(world.run(&["list", "networkpolicy"]).out.lines().count(), 11);
    let json: serde_json::Value =
        serde_json::from_str(&world.run(&["get", "networkpolicy", "-o", "json"]).out).unwrap();
    assert_eq!(json["items"].as_array().unwrap().len(), 10);
}

#[tokio::test]
async fn a_kind_that_is_incomplete_is_said_to_be() {
    let mut world = World::on(Server::start(&[])).await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    let ended = world.run(&["list", "networkpolicy", "-o", "name"]);
    let err = "nimbus: demo.v1.NetworkPolicy may be incomplete: publishers have not finished a sync\n";
    assert_eq!((ended.code, &*ended.out, &*ended.err), (0, "demo.v1.NetworkPolicy/web\n", err));
    world.fails(
        &["list", "networkpolicy", "--require-complete"],
        4,
        "[demo.v1.NetworkPolicy] are incomplete: their publishers have not finished a sync yet",
    );
}

#[tokio::test]
async fn colours_are_for_those_who_want_them() {
    let world = two_policies().await;
    let arguments = ["get", "networkpolicy", "web", "--color"];
    let shown = |when: &str| world.run(&[&arguments[..], &[when]].concat()).out;
    let bold = "\u{1b}[1mNAME\u{1b}[0m   ";
    assert!(shown("always").starts_with(bold), "{}", shown("always"));
    assert!(!shown("auto").contains('\u{1b}'), "a pipe is no terminal");
    assert!(!shown("never").contains('\u{1b}'));
    let plain = world
        .command(&["get", "networkpolicy", "web"])
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
        .stdout;
    assert_eq!(String::from_utf8(plain).unwrap(), shown("never"));
}
