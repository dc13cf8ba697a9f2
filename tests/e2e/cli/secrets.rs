//! What is marked as secret is neither printed nor logged.

use std::fs::{self, File};

use nimbus_wire::v1::{self, bus_client::BusClient};
use prost::Message as _;

use crate::{
    cli::{ACCOUNT, Account, World, account, nimbus},
    demo,
    server::Server,
};

const PASSWORD: &str = "correct-horse-battery-staple";

fn manifest(password: &str) -> String {
    format!(
        "\
kind: demo.v1.Account
name: root
spec:
  user: admin
  password: {password}
bus:
  uid: r-1
  generation: 1
  revision: 1
  manager: policies
"
    )
}

fn root() -> v1::Object {
    v1::Object { uid: "r-1".to_owned(), ..account("root", "admin", PASSWORD) }
}

#[tokio::test]
async fn a_secret_is_printed_only_for_those_who_ask_for_it() {
    let mut world = World::start().await;
    world.register(&["demo/v1/account.proto"]).await;
    world.publish(vec![root()]).await;
    world.prints(&["get", "account", "root", "-o", "yaml"], &manifest("\"<secret>\""));
    world.prints(&["get", "account", "root", "-o", "yaml", "--show-secrets"], &manifest(PASSWORD));
    world.prints(&["list", "account", "-o", "yaml"], &manifest("\"<secret>\""));
    for format in ["table", "wide", "json", "yaml", "name"] {
        for arguments in [&["get", "account"][..], &["get", "account/root"], &["list", "--all-kinds"], &["kinds"]] {
            let ended = world.run(&[arguments, &["-o", format]].concat());
            assert!(ended.code == 0 && !format!("{ended:?}").contains(PASSWORD), "{arguments:?} {ended:?}");
        }
    }
    world.fails(
        &["list", "account", "--filter", "spec.password=guess"],
        5,
        "field demo.v1.Account.password is secret (debug_redact) and cannot be compared",
    );
    world.fails(
        &["get", "account", "--show-secrets"],
        5,
        "--show-secrets shows nothing in a table (hint: add -o yaml)",
    );
}

#[tokio::test]
async fn without_a_schema_the_whole_spec_is_secret() {
    let mut world = World::start().await;
    world.publish(vec![root()]).await;
    let spec = |arguments: &[&str]| {
        let shown: serde_json::Value = serde_json::from_str(&world.run(arguments).out).unwrap();
        assert_eq!(shown["spec"], serde_json::Value::Null);
        shown["specBytes"].as_str().unwrap().to_owned()
    };
    assert_eq!(spec(&["get", "account/root", "-o", "json"]), "<secret>");
    let shown = spec(&["get", "account/root", "-o", "json", "--show-secrets"]);
    let bytes = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, shown).unwrap();
    assert_eq!(Account::decode(&*bytes).unwrap().password, PASSWORD);
}

/// A bus that says all that it can say, and a spec that is accepted, refused, read and removed.
#[tokio::test]
async fn a_bus_neither_logs_what_is_in_a_spec_nor_answers_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let flags = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--assume-complete", "-vv"];
    let mut serve = nimbus(&["serve", "--store", "memory"]);
    serve.args(flags);
    let server = Server::spawn(serve.stderr(File::create(&log).unwrap()));
    let mut world = World::on(server).await;
    world.register(&["demo/v1/account.proto"]).await;
    world.publish(vec![root()]).await;

    let mut bytes = Account { user: "admin".to_owned(), password: PASSWORD.to_owned() }.encode_to_vec();
    bytes.extend_from_slice(&[0x0a, 0xff]);
    let broken = v1::Object { name: "x".to_owned(), spec: Some(demo::pack(ACCOUNT, bytes)), ..v1::Object::default() };
    let stale = v1::Object { generation: 1, ..account("root", "other", PASSWORD) };
    let foreign = demo::apply("somebody", vec![demo::upsert(account("root", "other", PASSWORD))]);
    for request in [broken, stale]
        .map(|object| demo::apply("policies", vec![demo::upsert(object)]))
        .into_iter()
        .chain([foreign])
    {
        let status = world.publisher.apply(request).await.unwrap_err();
        assert!(
            !format!("{status:?}").contains(PASSWORD) && !String::from_utf8_lossy(status.details()).contains(PASSWORD)
        );
    }
    let mut bus = BusClient::connect(world.server.url()).await.unwrap();
    let mut frames = bus.subscribe(v1::SubscribeRequest::default()).await.unwrap().into_inner();
    frames.message().await.unwrap();
    world.run(&["get", "account", "-o", "yaml"]);
    world.prints(&["delete", "account/root", "--publisher=policies"], "demo.v1.Account/root deleted\n");
    drop((frames, bus));
    assert!(world.server.stop().success());

    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("bus started") && log.contains("TRACE"), "it says all that it can say: {log}");
    assert!(!log.contains(PASSWORD) && !log.contains("admin"));
}
