//! `nimbus delete`.

use nimbus_wire::v1;

use crate::{cli::World, demo};

#[tokio::test]
async fn objects_are_deleted_by_who_owns_them() {
    let mut world = World::start().await;
    world.publish(["a", "b", "c", "d"].map(|name| demo::policy(name, "a", 1)).into()).await;
    world.fails(
        &["delete", "networkpolicy", "a"],
        6,
        "demo.v1.NetworkPolicy/a: it belongs to publisher policies \
         (hint: --publisher policies acts in its name, --take-over makes the object yours)",
    );
    let ours = "--publisher=policies";
    world.prints(&["delete", "networkpolicy", "a", ours, "--dry-run"], "demo.v1.NetworkPolicy/a deleted (dry run)\n");
    world.prints(&["delete", "networkpolicy", "a", ours], "demo.v1.NetworkPolicy/a deleted\n");
    world.prints(&["delete", "networkpolicy/b", "--take-over"], "demo.v1.NetworkPolicy/b deleted\n");
    let mut by_variable = world.command(&["delete", "networkpolicy", "c"]);
    assert!(by_variable.env("NIMBUS_PUBLISHER", "policies").status().unwrap().success());
    world.prints(&["delete", "networkpolicy/d", "--identity=policies"], "demo.v1.NetworkPolicy/d deleted\n");
    world.fails(
        &["delete", "networkpolicy/d", "--identity=me", ours],
        1,
        "\"me\" may not publish as \"policies\" (hint: --identity says who you are; --publisher must be the same)",
    );
}

#[tokio::test]
async fn what_is_gone_already_is_said_unless_it_does_not_matter() {
    let mut world = World::start().await;
    world.publish(vec![demo::policy("a", "a", 1)]).await;
    let ours = "--publisher=policies";
    let ended = world.run(&["delete", "networkpolicy", "nix", "a", ours]);
    let (out, err) = ("demo.v1.NetworkPolicy/a deleted\n", "nimbus: demo.v1.NetworkPolicy/nix does not exist\n");
    assert_eq!((ended.code, &*ended.out, &*ended.err), (3, out, err));
    world.prints(&["delete", "networkpolicy", "nix", "a", ours, "--ignore-not-found"], "");
}

#[tokio::test]
async fn nothing_is_deleted_if_one_of_several_cannot_be() {
    let mut world = World::start().await;
    world.publish(vec![demo::policy("theirs", "a", 1)]).await;
    let ours = demo::apply("cli", vec![demo::upsert(demo::policy("ours", "a", 1))]);
    world.publisher.apply(ours).await.unwrap();
    assert_eq!(world.run(&["delete", "networkpolicy", "ours", "theirs"]).code, 6);
    let both = "demo.v1.NetworkPolicy/ours\ndemo.v1.NetworkPolicy/theirs\n";
    world.prints(&["list", "networkpolicy", "-o", "name"], both);
}

#[tokio::test]
async fn a_delete_that_waits_says_for_whom() {
    let mut world = World::start().await;
    let finalizers = v1::FinalizersWrite {
        key: Some(demo::key("a")),
        add: vec!["drain".to_owned(), "archive".to_owned()],
        remove: vec![],
    };
    world.publish(vec![demo::policy("a", "a", 1)]).await;
    world
        .apply(vec![v1::Op { op: Some(v1::op::Op::Finalizers(finalizers)), ..v1::Op::default() }])
        .await;
    let marked = "demo.v1.NetworkPolicy/a marked for deletion, waits for archive, drain\n";
    world.prints(&["delete", "networkpolicy", "a", "--publisher", "policies"], marked);
    world.prints(
        &["get", "networkpolicy", "a"],
        "\
NAME   GENERATION   REVISION   MANAGER    STATE
a      1            3          policies   Deleting, waits for archive,drain
",
    );
}
