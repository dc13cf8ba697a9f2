//! `nimbus kinds`.

use serde_json::json;

use crate::{cli::World, demo, server::Server};

#[tokio::test]
async fn kinds_are_shown_with_whom_they_wait_for() {
    let mut world = World::on(Server::start(&[])).await;
    let none = world.run(&["kinds"]);
    let err = "nimbus: no kinds yet (hint: `nimbus register FILE.proto` makes some)\n";
    assert_eq!((none.code, &*none.out, &*none.err), (0, "", err));

    world.register(&["demo/v1/account.proto", "other/v1/network_policy.proto"]).await;
    world.publish(vec![demo::policy("web", "a", 1)]).await;
    let account = v1_account_sync();
    world.publisher.sync(tokio_stream::iter(account)).await.unwrap();
    world.prints(
        &["kinds"],
        "\
NAME                     OBJECTS   SCHEMA   COMPLETE                   PUBLISHERS
demo.v1.Account          0         yes      yes                        accounts
demo.v1.NetworkPolicy    1         no       no, waits for policies     policies
other.v1.NetworkPolicy   0         yes      no, nobody has synced it   -
",
    );
    world.prints(&["kinds", "-o", "name"], "demo.v1.Account\ndemo.v1.NetworkPolicy\nother.v1.NetworkPolicy\n");
    let mut shown: serde_json::Value = serde_json::from_str(&world.run(&["kinds", "-o", "json"]).out).unwrap();
    for item in shown["items"].as_array_mut().unwrap() {
        item["publishers"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .for_each(|age| age["ageMs"] = json!(0));
    }
    let info = |kind: &str, objects: u64, registered: bool, complete: bool, publishers: serde_json::Value| {
        let (k, o, r, c) = (kind, objects, registered, complete);
        json!({"kind": k, "objects": o, "registered": r, "complete": c, "publishers": publishers})
    };
    let age = |publisher: &str, synced: bool| json!([{"publisher": publisher, "ageMs": 0, "synced": synced}]);
    let expected = json!({"items": [
        info("demo.v1.Account", 0, true, true, age("accounts", true)),
        info("demo.v1.NetworkPolicy", 1, false, false, age("policies", false)),
        info("other.v1.NetworkPolicy", 0, true, false, json!([])),
    ]});
    assert_eq!(shown, expected);
}

fn v1_account_sync() -> Vec<nimbus_wire::v1::SyncRequest> {
    vec![demo::begin("accounts", &["demo.v1.Account"]), demo::end()]
}
