//! `nimbus apply`: what it does, and what it prints.

use nimbus_wire::v1::{self, bus_client::BusClient, frame::Frame};

use crate::{
    cli::files::{Desk, policy},
    demo, wait,
};

#[tokio::test]
async fn objects_are_created_changed_and_left_alone() {
    let desk = Desk::new().await;
    desk.write("web.yaml", &format!("{}---\n{}", policy("web", "a"), policy("db", "b")));
    let created = "\
demo.v1.NetworkPolicy/web created
demo.v1.NetworkPolicy/db created
2 created, 0 changed, 0 unchanged
";
    let dry = created.replace('\n', " (dry run)\n");
    desk.prints(&["apply", "-f", "web.yaml", "--dry-run"], &dry);
    desk.ends(&["get", "networkpolicy/web"], 3, "", "nimbus: demo.v1.NetworkPolicy/web does not exist at revision 0\n");
    desk.prints(&["apply", "-f", "web.yaml"], created);
    desk.write("web.yaml", &format!("{}---\n{}", policy("web", "c"), policy("db", "b")));
    desk.prints(
        &["apply", "-f", "web.yaml"],
        "\
demo.v1.NetworkPolicy/web changed
demo.v1.NetworkPolicy/db unchanged
0 created, 1 changed, 1 unchanged
",
    );
    desk.prints(&["apply", "-f", "web.yaml", "-o", "name"], "demo.v1.NetworkPolicy/web\ndemo.v1.NetworkPolicy/db\n");
    let json: serde_json::Value =
        serde_json::from_str(&desk.run(&["apply", "-f", "web.yaml", "-o", "json"]).out).unwrap();
    assert_eq!(json["items"][0]["name"], "web");
    assert_eq!(json["items"][0]["result"], "unchanged");
    assert_eq!(json["items"][0]["generation"], 2);
    assert_eq!(
        (&json["created"], &json["changed"], &json["unchanged"], &json["refused"]),
        (&0.into(), &0.into(), &2.into(), &0.into())
    );
}

#[tokio::test]
async fn everything_that_a_manifest_can_say_arrives_and_is_read_back_as_it_was() {
    let desk = Desk::new().await;
    let manifest = "\
kind: demo.v1.Gateway
namespace: prod
name: edge
labels:
  tier: front
annotations:
  note: |-
    one
    two
owner:
  kind: demo.v1.Team
  name: net
refs:
  - kind: demo.v1.NetworkPolicy
    name: db
    weak: true
  - kind: demo.v1.NetworkPolicy
    name: web
audience:
  agents:
    - web-1
    - web-2
spec:
  mode: MODE_OPEN
  port: 443
  budget: \"-9223372036854775808\"
  enabled: true
  seal: AAEC
  listeners:
    - host: a
      token: t1
    - host: b
  weights:
    a: 1
    b: 2
  since: \"2020-01-02T03:04:05Z\"
  extra:
    \"@type\": type.googleapis.com/demo.v1.Account
    user: u
    password: p
  pool: main
  pin: 1234
";
    desk.write("edge.yaml", manifest);
    let said = "demo.v1.Gateway/prod/edge created\n1 created, 0 changed, 0 unchanged\n";
    desk.prints(&["apply", "-f", "edge.yaml"], said);
    let shown = desk.run(&["get", "gateway/prod/edge", "-o", "yaml", "--show-secrets"]).out;
    let (before, bus) = shown.split_once("bus:\n").unwrap();
    assert_eq!(before, manifest, "{shown}");
    assert!(bus.contains("manager: cli\n"), "{shown}");
    desk.write("again.yaml", &shown);
    let same = "demo.v1.Gateway/prod/edge unchanged\n0 created, 0 changed, 1 unchanged\n";
    desk.prints(&["apply", "-f", "again.yaml"], same);
    let json = desk.run(&["get", "gateway/prod/edge", "-o", "json", "--show-secrets"]).out;
    desk.write("again.json", &json);
    desk.prints(&["apply", "-f", "again.json"], same);
}

#[tokio::test]
async fn json_directories_and_standard_input_are_read() {
    let desk = Desk::new().await;
    // Tabs, and an escape that YAML does not have.
    let list = "{\n\t\"items\": [\n\t\t{\"kind\": \"demo.v1.NetworkPolicy\", \"name\": \"j1\", \"spec\": {\"zone\": \"\\ud83d\\ude00\"}},\
                {\"kind\": \"demo.v1.NetworkPolicy\", \"name\": \"j2\", \"spec\": {}}]\n}\n";
    desk.write("all/b/list.json", list);
    desk.write("all/a.yml", &policy("y", "a"));
    desk.write("all/c.txt", "not a manifest");
    desk.write("all/.hidden.yaml", "not a manifest");
    desk.write("all/.git/x.yaml", "not a manifest");
    desk.prints(
        &["apply", "-f", "all"],
        "\
demo.v1.NetworkPolicy/y created
demo.v1.NetworkPolicy/j1 created
demo.v1.NetworkPolicy/j2 created
3 created, 0 changed, 0 unchanged
",
    );
    let ended = desk.run_with_input(&["apply", "-f", "-", "-f", "all/a.yml"], &policy("stdin", "a"));
    let out = "\
demo.v1.NetworkPolicy/stdin created
demo.v1.NetworkPolicy/y unchanged
1 created, 0 changed, 1 unchanged
";
    assert_eq!((ended.code, &*ended.out, &*ended.err), (0, out, ""));
}

#[tokio::test]
async fn an_object_that_is_refused_is_named_and_the_others_are_applied() {
    let mut desk = Desk::new().await;
    desk.world.publish(vec![demo::policy("theirs", "a", 1)]).await;
    let documents = ["one", "theirs", "two"].map(|name| policy(name, "b"));
    desk.write("all.yaml", &documents.join("---\n"));
    let refused = "all.yaml:6:1: demo.v1.NetworkPolicy/theirs: it belongs to publisher policies \
                   (hint: --publisher policies acts in its name, --take-over makes the object yours)\n";
    let foreign = refused.strip_prefix("all.yaml:6:1: ").unwrap();
    desk.ends(&["apply", "-f", "all.yaml", "--atomic"], 6, "", &format!("nimbus: {foreign}"));
    desk.ends(
        &["apply", "-f", "all.yaml"],
        6,
        "demo.v1.NetworkPolicy/one created\ndemo.v1.NetworkPolicy/two created\n2 created, 0 changed, 0 unchanged\n",
        &format!("{refused}nimbus: 1 object was refused\n"),
    );
    desk.prints(
        &["apply", "-f", "all.yaml", "--take-over"],
        "\
demo.v1.NetworkPolicy/one unchanged
demo.v1.NetworkPolicy/theirs changed
demo.v1.NetworkPolicy/two unchanged
0 created, 1 changed, 2 unchanged
",
    );
}

#[tokio::test]
async fn a_manifest_that_says_what_it_was_made_from_is_applied_only_to_that() {
    let desk = Desk::new().await;
    desk.write("web.yaml", &policy("web", "a"));
    let created = "demo.v1.NetworkPolicy/web created\n1 created, 0 changed, 0 unchanged\n";
    desk.prints(&["apply", "-f", "web.yaml", "--if-unchanged"], created);
    desk.ends(
        &["apply", "-f", "web.yaml", "--if-unchanged"],
        6,
        "",
        "nimbus: demo.v1.NetworkPolicy/web: expected object absent, found present\n",
    );
    let shown = desk.run(&["get", "networkpolicy/web", "-o", "yaml"]).out;
    desk.write("edited.yaml", &shown.replace("zone: a", "zone: b"));
    let changed = "demo.v1.NetworkPolicy/web changed\n0 created, 1 changed, 0 unchanged\n";
    desk.prints(&["apply", "-f", "edited.yaml", "--if-unchanged"], changed);
    desk.write("edited.yaml", &shown.replace("zone: a", "zone: c"));
    desk.ends(
        &["apply", "-f", "edited.yaml", "--if-unchanged"],
        6,
        "",
        "nimbus: demo.v1.NetworkPolicy/web: expected revision 1, found 2\n",
    );
    desk.prints(&["apply", "-f", "edited.yaml"], changed);
}

#[tokio::test]
async fn what_is_in_files_is_deleted() {
    let desk = Desk::new().await;
    desk.write("all.yaml", &format!("{}---\n{}", policy("web", "a"), policy("db", "a")));
    desk.run(&["apply", "-f", "all.yaml"]);
    desk.write("bad.yaml", "kind: demo.v1.NetworkPolicy\nnam: web\n");
    desk.ends(
        &["delete", "-f", "all.yaml", "-f", "bad.yaml"],
        5,
        "",
        "\
bad.yaml:1:1: a manifest needs `name`
bad.yaml:2:1: a manifest has no field `nam`; did you mean `name`?
nimbus: 2 problems, nothing was sent
",
    );
    desk.prints(&["delete", "-f", "all.yaml"], "demo.v1.NetworkPolicy/web deleted\ndemo.v1.NetworkPolicy/db deleted\n");
    desk.ends(
        &["delete", "-f", "all.yaml"],
        3,
        "",
        "nimbus: demo.v1.NetworkPolicy/web does not exist\nnimbus: demo.v1.NetworkPolicy/db does not exist\n",
    );
    desk.prints(&["delete", "-f", "all.yaml", "--ignore-not-found"], "");
}

#[tokio::test]
async fn a_user_can_wait_until_every_agent_has_it() {
    let desk = Desk::new().await;
    desk.write("web.yaml", &policy("web", "a"));
    let ended = desk.run(&["apply", "-f", "web.yaml", "--wait", "--wait-timeout", "0.1"]);
    let created = "demo.v1.NetworkPolicy/web created\n1 created, 0 changed, 0 unchanged\n";
    assert_eq!((ended.code, &*ended.out), (7, created), "{}", ended.err);
    let nobody = "\
nimbus: 0 of 0 agents have applied it, 0 have not yet
nimbus: revision 1 was not applied in 0.1 s: 0 of 0 agents have, 1 are needed (hint: `nimbus agents` lists those that there are)
";
    assert_eq!(ended.err, nobody);

    // An agent that takes everything.
    let mut bus = BusClient::connect(desk.world.server.url()).await.unwrap();
    let request = v1::SubscribeRequest { agent: "web-1".to_owned(), ..v1::SubscribeRequest::default() };
    let mut frames = bus.subscribe(request).await.unwrap().into_inner();
    let agent = tokio::spawn(async move {
        let (mut session, mut sequence) = (0, 0);
        while let Ok(Some(frame)) = frames.message().await {
            let revision = match frame.frame.unwrap() {
                Frame::Welcome(welcome) => {
                    session = welcome.session;
                    0
                }
                Frame::SnapshotEnd(end) => end.revision,
                Frame::Bookmark(bookmark) => bookmark.revision,
                Frame::Batch(batch) => batch.revision,
                _ => 0,
            };
            if revision > 0 {
                sequence += 1;
                let (received, applied) = (revision, revision);
                let report = v1::ReportRequest { session, sequence, received, applied, ..v1::ReportRequest::default() };
                bus.report_once(report).await.unwrap();
            }
        }
    });
    desk.write("web.yaml", &policy("web", "b"));
    let mut command = desk.command(&["apply", "-f", "web.yaml", "--wait"]);
    let waited = tokio::task::spawn_blocking(move || crate::cli::run(&mut command));
    let ended = wait::for_it("the agent", waited).await.unwrap();
    let changed = "demo.v1.NetworkPolicy/web changed\n0 created, 1 changed, 0 unchanged\n";
    assert_eq!((ended.code, &*ended.out), (0, changed), "{}", ended.err);
    agent.abort();
}
