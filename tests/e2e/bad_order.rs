//! Writes that are well-formed but must not happen: conditions that fail, syncs out of order. Nothing of them stays.

use nimbus_wire::v1::{self, op::Op};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

use crate::{
    demo::{self, KIND},
    honest::{World, expect_bad_field, expect_precondition, expect_refusal},
    wait,
};

#[tokio::test]
async fn a_condition_that_fails_changes_nothing_at_all() {
    let mut world = World::new().await;
    world.publish("owner", vec![demo::policy("mine", "a", 1)]).await;
    world.publish("owner", vec![demo::policy("mine", "a", 2)]).await;
    let mine = world.get("mine").await;
    assert_eq!(mine.generation, 2);
    let subject = format!("{KIND}/mine");
    let changed = demo::upsert(demo::policy("mine", "a", 3));
    let unless = |precondition| v1::Op { precondition: Some(precondition), ..changed.clone() };
    let absent = v1::Precondition { absent: true, ..v1::Precondition::default() };
    let uid = v1::Precondition { uid: "another".to_owned(), ..v1::Precondition::default() };
    let revision = v1::Precondition { revision: Some(mine.revision - 1), ..v1::Precondition::default() };
    let generation = v1::Precondition { generation: Some(1), ..v1::Precondition::default() };
    let of_generation =
        |generation, priority| demo::upsert(v1::Object { generation, ..demo::policy("mine", "a", priority) });
    let status = |observed_generation| {
        let status = Some(demo::pack("demo.v1.NetworkPolicyStatus", Vec::new()));
        let write = v1::StatusWrite { key: Some(demo::key("mine")), status, observed_generation };
        v1::Op { op: Some(Op::Status(write)), ..v1::Op::default() }
    };
    let cases: [(v1::Op, &str, &[&str]); 8] = [
        (unless(absent), "object", &["expected object absent, found present"]),
        (unless(uid.clone()), "uid", &["expected uid another, found"]),
        (unless(revision), "revision", &["expected revision"]),
        (unless(generation), "generation", &["expected generation 1, found 2"]),
        (v1::Op { precondition: Some(uid), ..demo::delete(demo::key("mine")) }, "uid", &["expected uid another"]),
        (of_generation(1, 3), "generation", &["generation 1 is older than the current 2"]),
        (of_generation(2, 3), "generation", &["the spec differs, but generation 2 is the same"]),
        (status(3), "generation", &["speaks of generation 3, the object is at 2"]),
    ];
    for (op, what, words) in cases {
        let request = demo::apply("owner", vec![demo::upsert(demo::policy("beside", "a", 1)), op]);
        for dry_run in [true, false] {
            let request = v1::ApplyRequest { dry_run, ..request.clone() };
            expect_precondition(world.writer.apply(request).await, what, &subject, words);
        }
        world.goes_on().await;
        assert_eq!(world.get("mine").await, mine);
        assert_eq!(world.held_names(), ["beat", "mine", "one", "two"], "what stood beside it was refused too");
    }
}

#[tokio::test]
async fn a_condition_on_an_object_that_is_not_there_fails() {
    let mut world = World::new().await;
    let new = demo::upsert(demo::policy("new", "a", 1));
    let conditions = [
        ("uid", v1::Precondition { uid: "some".to_owned(), ..v1::Precondition::default() }),
        ("revision", v1::Precondition { revision: Some(1), ..v1::Precondition::default() }),
        ("generation", v1::Precondition { generation: Some(1), ..v1::Precondition::default() }),
    ];
    for (what, precondition) in conditions {
        let op = v1::Op { precondition: Some(precondition), ..new.clone() };
        let result = world.writer.apply(demo::apply("somebody", vec![op])).await;
        expect_precondition(result, what, &format!("{KIND}/new"), &["found no object"]);
        world.goes_on().await;
    }
    let both = v1::Precondition { absent: true, generation: Some(1), ..v1::Precondition::default() };
    let result = world
        .writer
        .apply(demo::apply("somebody", vec![v1::Op { precondition: Some(both), ..new }]))
        .await;
    expect_bad_field(result, "ops[0].precondition", &["either absent or conditions on what is there"]);
    let write = v1::StatusWrite { key: Some(demo::key("new")), ..v1::StatusWrite::default() };
    let status = v1::Op { op: Some(Op::Status(write)), ..v1::Op::default() };
    let result = world.writer.apply(demo::apply("somebody", vec![status])).await;
    expect_refusal(result, Code::NotFound, &["demo.v1.NetworkPolicy/new", "it does not exist"]);
    world.goes_on().await;
    assert_eq!(world.held_names(), ["beat", "one", "two"]);
}

#[tokio::test]
async fn what_belongs_to_another_publisher_is_left_alone() {
    let mut world = World::new().await;
    let subject = format!("{KIND}/one");
    for op in [demo::upsert(demo::policy("one", "z", 9)), demo::delete(demo::key("one"))] {
        let result = world.writer.apply(demo::apply("thief", vec![op])).await;
        expect_precondition(result, "manager", &subject, &["belongs to publisher honest-publisher", "take_over"]);
        world.goes_on().await;
    }
    let sync = demo::sync("thief", vec![demo::policy("one", "z", 9)]);
    let result = world.writer.sync(tokio_stream::iter(sync)).await;
    expect_precondition(result, "manager", &subject, &["items.objects[0]", "belongs to publisher honest-publisher"]);
    let swept = world
        .writer
        .sync(tokio_stream::iter(demo::sync("thief", Vec::new())))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(swept.deleted, 0, "a sync sweeps what is its publisher's own");
    world.goes_on().await;
}

#[tokio::test]
async fn an_older_instance_of_a_publisher_is_fenced() {
    let mut world = World::new().await;
    let write = |fence, priority| v1::ApplyRequest {
        fence,
        ..demo::apply("leader", vec![demo::upsert(demo::policy("led", "a", priority))])
    };
    world.writer.apply(write(5, 1)).await.unwrap();
    for fence in [4, 0] {
        let result = world.writer.apply(write(fence, 2)).await;
        let words = ["publisher leader is fenced", "wrote with fence 5"];
        expect_precondition(result, "fence", "leader", &words);
        let begin =
            v1::SyncBegin { publisher: "leader".to_owned(), fence, kinds: vec![KIND.to_owned()], leases: vec![] };
        let begin = v1::SyncRequest { step: Some(v1::sync_request::Step::Begin(begin)) };
        let result = world.writer.sync(tokio_stream::iter([begin, demo::end()])).await;
        expect_precondition(result, "fence", "leader", &words);
        world.goes_on().await;
    }
    world.writer.apply(write(5, 2)).await.unwrap();
    world.goes_on().await;
}

#[tokio::test]
async fn objects_that_contradict_each_other_are_refused() {
    let mut world = World::new().await;
    let twice = vec![demo::upsert(demo::policy("new", "a", 1)), demo::delete(demo::key("new"))];
    let result = world.writer.apply(demo::apply("somebody", twice)).await;
    expect_bad_field(result, "ops[1]", &["demo.v1.NetworkPolicy/new", "changed twice in one transaction"]);
    let refer = |name: &str, to: &str| {
        let reference = v1::Reference { kind: KIND.to_owned(), name: to.to_owned(), ..v1::Reference::default() };
        demo::upsert(v1::Object { refs: vec![reference], ..demo::policy(name, "a", 1) })
    };
    let result = world.writer.apply(demo::apply("somebody", vec![refer("a", "b"), refer("b", "a")])).await;
    expect_bad_field(result, "ops[0]", &["form a cycle", "NetworkPolicy/a -> demo.v1.NetworkPolicy/b"]);
    world.goes_on().await;
    assert_eq!(world.held_names(), ["beat", "one", "two"]);
}

#[tokio::test]
async fn a_sync_out_of_order_is_refused_and_deletes_nothing() {
    let mut world = World::new().await;
    world.publish("keeper", vec![demo::policy("kept", "a", 1)]).await;
    let begin = || demo::begin("keeper", &[KIND]);
    let item = || demo::items(vec![demo::policy("more", "a", 1)]);
    let other = v1::Key { kind: "demo.v1.Other".to_owned(), ..demo::key("x") };
    let foreign = v1::Object { spec: Some(demo::pack("demo.v1.Other", Vec::new())), ..demo::policy("x", "a", 1) };
    let cases: [(Vec<v1::SyncRequest>, &str, &[&str]); 10] = [
        (vec![demo::end()], "begin", &["a sync starts with begin"]),
        (vec![item()], "begin", &["a sync starts with begin"]),
        (vec![begin(), begin(), demo::end()], "begin", &["one begin for each stream"]),
        (vec![begin(), v1::SyncRequest::default()], "step", &["one of begin, items, keep or end must be set"]),
        (vec![demo::begin("keeper", &[]), demo::end()], "begin.kinds", &["at least one kind"]),
        (vec![demo::begin("keeper", &["a b"]), demo::end()], "begin.kinds[0]", &["kind \"a b\""]),
        (vec![begin(), demo::items(vec![foreign])], "items.objects", &["demo.v1.Other/x is not covered by this sync"]),
        (vec![demo::keep(vec![demo::key("kept")])], "begin", &["a sync starts with begin"]),
        (vec![begin(), demo::keep(vec![demo::key("kept"), demo::key("")])], "keep.keys[1]", &["name"]),
        (vec![begin(), demo::keep(vec![other])], "keep.keys", &["demo.v1.Other/x is not covered by this sync"]),
    ];
    for (steps, field, words) in cases {
        expect_bad_field(world.writer.sync(tokio_stream::iter(steps)).await, field, words);
        world.goes_on().await;
        assert_eq!(world.get("kept").await.name, "kept");
    }
    let unfinished = world.writer.sync(tokio_stream::iter([begin(), item()])).await;
    expect_refusal(unfinished, Code::Aborted, &["ended before the sync did", "nothing was deleted"]);
    expect_refusal(world.writer.sync(tokio_stream::iter([])).await, Code::Aborted, &["ended before the sync did"]);
    world.goes_on().await;
    assert_eq!(world.held_names(), ["beat", "kept", "more", "one", "two"], "items were accepted, and nothing swept");
}

#[tokio::test]
async fn a_sync_that_is_cut_off_deletes_nothing() {
    let mut world = World::new().await;
    world.publish("keeper", vec![demo::policy("kept", "a", 1)]).await;
    let (steps, received) = tokio::sync::mpsc::channel(1);
    let (_, mut writer) = world.bus.clients().await;
    let call = tokio::spawn(async move { writer.sync(ReceiverStream::new(received)).await });
    steps.send(demo::begin("keeper", &[KIND])).await.unwrap();
    steps.send(demo::items(vec![demo::policy("more", "a", 1)])).await.unwrap();
    while !world.held_names().contains(&"more") {
        world.goes_on().await;
    }
    // Not an end of the stream: the connection is gone.
    call.abort();
    let bus = &world.bus;
    wait::until("the sync to be given up", || bus.metric("nimbus_bus_syncs_total{outcome=\"aborted\"}") == 1).await;
    world.goes_on().await;
    assert_eq!(world.held_names(), ["beat", "kept", "more", "one", "two"]);
}

#[tokio::test]
async fn a_sync_that_was_replaced_by_a_newer_one_ends_without_a_sweep() {
    let mut world = World::new().await;
    world.publish("keeper", vec![demo::policy("kept", "a", 1)]).await;
    let (steps, received) = tokio::sync::mpsc::channel(1);
    let (_, mut writer) = world.bus.clients().await;
    let older = tokio::spawn(async move { writer.sync(ReceiverStream::new(received)).await });
    steps.send(demo::begin("keeper", &[KIND])).await.unwrap();
    steps.send(demo::items(vec![demo::policy("early", "a", 1)])).await.unwrap();
    while !world.held_names().contains(&"early") {
        world.goes_on().await;
    }
    let newer = demo::sync("keeper", vec![demo::policy("kept", "a", 1), demo::policy("late", "a", 1)]);
    let newer = world.writer.sync(tokio_stream::iter(newer)).await.unwrap().into_inner();
    assert_eq!((newer.created, newer.unchanged, newer.deleted), (1, 1, 1));
    steps.send(demo::end()).await.unwrap();
    let older = wait::for_it("the older sync to end", older).await.unwrap();
    expect_refusal(older, Code::Aborted, &["no open sync of publisher keeper", "replaced by a newer one"]);
    world.goes_on().await;
    assert_eq!(world.held_names(), ["beat", "kept", "late", "one", "two"]);
}
