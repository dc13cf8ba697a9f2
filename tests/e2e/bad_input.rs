//! Requests that say what cannot be: each gets its own clear status, and nobody else notices.

use nimbus_wire::v1::{self, Mode, frame::Frame};
use tonic::Code;

use crate::{
    demo::{self, KIND},
    honest::{World, expect_bad_field, expect_refusal},
    local::EPOCH,
    wait,
};

#[tokio::test]
async fn an_unknown_kind_is_named_and_the_nearest_one_suggested() {
    let mut world = World::new().await;
    let near = "demo.v1.NetworkPolici";
    let hint = "did you mean demo.v1.NetworkPolicy?";
    let get = v1::GetRequest { kind: near.to_owned(), name: "one".to_owned(), ..v1::GetRequest::default() };
    expect_refusal(world.reader.get(get).await, Code::NotFound, &[near, "not known", hint]);
    world.goes_on().await;

    let list = |kind: &str| v1::ListRequest { kinds: vec![kind.to_owned()], ..v1::ListRequest::default() };
    expect_refusal(world.reader.list(list(near)).await, Code::NotFound, &[near, "not known", hint]);
    let far = "elsewhere.Thing";
    let status = expect_refusal(world.reader.list(list(far)).await, Code::NotFound, &[far, "not known"]);
    assert!(!status.message().contains("did you mean"), "{status:?}");
    expect_bad_field(
        world.reader.list(list("no kind")).await,
        "kinds[0]",
        &["no kind", "full name of a protobuf message"],
    );
    world.goes_on().await;

    let fields = Some(v1::Filter { fields: vec!["spec.zone=a".to_owned()], ..v1::Filter::default() });
    let list = v1::ListRequest { kinds: vec![far.to_owned()], filter: fields, ..v1::ListRequest::default() };
    expect_bad_field(world.reader.list(list).await, "filter.fields", &[far, "must be registered"]);
    world.goes_on().await;

    let absent = v1::GetRequest { kind: KIND.to_owned(), name: "nothing".to_owned(), ..v1::GetRequest::default() };
    expect_refusal(world.reader.get(absent).await, Code::NotFound, &["demo.v1.NetworkPolicy/nothing does not exist"]);
    world.goes_on().await;
}

#[tokio::test]
async fn a_spec_that_is_not_what_it_says_is_refused() {
    let mut world = World::new().await;
    let good = demo::policy("other", "a", 1);
    let with = |spec| v1::Object { spec, ..good.clone() };
    let any =
        |type_url: &str, value: &[u8]| Some(prost_types::Any { type_url: type_url.to_owned(), value: value.to_vec() });
    let packed = format!("type.googleapis.com/{KIND}");
    let cases: [(v1::Object, &str, &[&str]); 9] = [
        (with(any(&packed, b"\xff\xff\xff")), "spec", &["the bytes are not a demo.v1.NetworkPolicy", "at byte 0"]),
        (with(any(&packed, b"\x0a\x05abc")), "spec", &["the bytes are not a demo.v1.NetworkPolicy", "at byte"]),
        (with(any(&packed, b"\x08\x01")), "spec", &["field zone", "a length and bytes (string)", "varint"]),
        (with(any(&packed, b"\x0a\x02\xff\xfe")), "spec", &["field zone", "UTF-8"]),
        (with(any("", b"")), "spec", &["a type such as type.googleapis.com/demo.v1.Policy, found \"\""]),
        (with(any("type.googleapis.com/", b"")), "spec", &["found \"type.googleapis.com/\""]),
        (with(None), "spec", &["a spec, packed in google.protobuf.Any"]),
        (
            v1::Object { kind: "demo.v1.NetworkPolicyStatus".to_owned(), ..good.clone() },
            "kind",
            &["the spec is a demo.v1.NetworkPolicy, but kind says demo.v1.NetworkPolicyStatus"],
        ),
        (v1::Object { status: any(&packed, b""), ..good.clone() }, "status", &["it has other writers"]),
    ];
    for (object, field, words) in cases {
        let request = demo::apply("somebody", vec![demo::upsert(good.clone()), demo::upsert(object.clone())]);
        expect_bad_field(world.writer.apply(request).await, &format!("ops[1].upsert.{field}"), words);
        let sync = [demo::begin("somebody", &[KIND]), demo::items(vec![good.clone(), object])];
        let result = world.writer.sync(tokio_stream::iter(sync)).await;
        expect_bad_field(result, &format!("items.objects[1].{field}"), words);
        world.goes_on().await;
    }
    expect_bad_field(
        world.writer.apply(demo::apply("somebody", vec![v1::Op::default()])).await,
        "ops[0]",
        &["one of upsert, delete, status or finalizers must be set"],
    );
    world.goes_on().await;
    assert_eq!(world.held_names(), ["beat", "one", "two"], "what came with a bad object was refused with it");
}

#[tokio::test]
async fn an_object_or_a_message_that_is_too_large_is_refused() {
    let mut world = World::with(|config| {
        config.limits.store.object_bytes = 2_000;
        config.limits.message_bytes = 10_000;
    })
    .await;
    let large = |zone: usize| demo::apply("somebody", vec![demo::upsert(demo::policy("large", &"z".repeat(zone), 1))]);
    let words = ["ops[0]: demo.v1.NetworkPolicy/large: object_bytes: ", "at most 2000 allowed"];
    expect_bad_field(world.writer.apply(large(2_000)).await, "ops[0]", &words);
    world.goes_on().await;
    expect_refusal(world.writer.apply(large(10_000)).await, Code::ResourceExhausted, &["found 10", "10000 bytes"]);
    world.goes_on().await;
    let agent = "a".repeat(20_000);
    let subscribe = v1::SubscribeRequest { agent: agent.clone(), ..v1::SubscribeRequest::default() };
    expect_refusal(world.reader.subscribe(subscribe).await, Code::ResourceExhausted, &["found 20", "10000 bytes"]);
    let list = v1::ListRequest { agent, ..v1::ListRequest::default() };
    expect_refusal(world.reader.list(list).await, Code::ResourceExhausted, &["found 20", "10000 bytes"]);
    let sync = [demo::begin("somebody", &[KIND]), demo::items(vec![demo::policy("x", &"z".repeat(10_000), 1)])];
    let result = world.writer.sync(tokio_stream::iter(sync)).await;
    expect_refusal(result, Code::ResourceExhausted, &["found 10", "10000 bytes"]);
    world.goes_on().await;
    assert_eq!(world.bus.refusals("message_bytes"), 4);
    world.publish("somebody", vec![demo::policy("large", &"z".repeat(1_000), 1)]).await;
    world.goes_on().await;
}

#[tokio::test]
async fn names_and_labels_that_cannot_be_are_refused() {
    let mut world = World::new().await;
    let good = demo::policy("other", "a", 1);
    let labels = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into();
    let audience = |to| Some(v1::Audience { to: Some(to) });
    let long = "n".repeat(254);
    let cases: [(v1::Object, &str, &[&str]); 11] = [
        (demo::policy("", "a", 1), "name", &["name \"\"", "1 to 253 of the characters"]),
        (demo::policy("a/b", "a", 1), "name", &["name \"a/b\"", "1 to 253 of the characters"]),
        (demo::policy("ü", "a", 1), "name", &["name \"ü\""]),
        (demo::policy(&long, "a", 1), "name", &["nnn…", "1 to 253"]),
        (v1::Object { namespace: "a b".to_owned(), ..good.clone() }, "namespace", &["namespace \"a b\""]),
        (v1::Object { uid: "a b".to_owned(), ..good.clone() }, "uid", &["uid \"a b\""]),
        (v1::Object { labels: labels("", "x"), ..good.clone() }, "labels", &["a label key of 1 to 253"]),
        (v1::Object { labels: labels("k", "x,y"), ..good.clone() }, "labels", &["\"x,y\"", "a label value"]),
        (
            v1::Object { audience: audience(v1::audience::To::Selector("zone in (a".to_owned())), ..good.clone() },
            "audience",
            &["selector \"zone in (a\"", "a selector such as"],
        ),
        (
            v1::Object {
                audience: audience(v1::audience::To::Agents(v1::Agents { ids: vec!["a b".to_owned()] })),
                ..good.clone()
            },
            "audience",
            &["agent id \"a b\""],
        ),
        (
            v1::Object {
                refs: vec![v1::Reference { kind: KIND.to_owned(), ..v1::Reference::default() }],
                ..good.clone()
            },
            "refs[0]",
            &["name \"\""],
        ),
    ];
    for (object, field, words) in cases {
        let request = demo::apply("somebody", vec![demo::upsert(object)]);
        expect_bad_field(world.writer.apply(request).await, &format!("ops[0].upsert.{field}"), words);
        world.goes_on().await;
    }
    let delete = demo::apply("somebody", vec![demo::delete(demo::key("a b"))]);
    expect_bad_field(world.writer.apply(delete).await, "ops[0].delete", &["name \"a b\""]);
    let nobody = demo::apply("some body", vec![demo::upsert(good)]);
    expect_bad_field(world.writer.apply(nobody).await, "publisher", &["publisher \"some body\""]);
    world.goes_on().await;

    let labels: std::collections::BTreeMap<String, String> = labels("zone", "a b");
    let subscribe = |agent: &str| v1::SubscribeRequest { agent: agent.to_owned(), ..v1::SubscribeRequest::default() };
    expect_bad_field(world.reader.subscribe(subscribe("a b")).await, "agent", &["agent id \"a b\""]);
    let labelled = v1::SubscribeRequest { agent_labels: labels.clone(), ..subscribe("agent") };
    expect_bad_field(world.reader.subscribe(labelled).await, "agent_labels", &["\"a b\"", "a label value"]);
    let observer = v1::SubscribeRequest { agent_labels: labels, ..subscribe("") };
    expect_bad_field(world.reader.subscribe(observer).await, "agent_labels", &["no labels without an agent"]);
    world.goes_on().await;
}

#[tokio::test]
async fn a_filter_that_does_not_parse_is_refused() {
    let mut world = World::new().await;
    let selector = |text: &str| v1::Filter { selector: text.to_owned(), ..v1::Filter::default() };
    let field = |text: &str| v1::Filter { fields: vec![text.to_owned()], ..v1::Filter::default() };
    let cases: [(v1::Filter, &str, &[&str]); 12] = [
        (selector("zone in (a"), "filter.selector", &["\"zone in (a\"", "a selector such as"]),
        (selector("a,,b"), "filter.selector", &["\"a,,b\""]),
        (selector("zone within (a)"), "filter.selector", &["\"zone within (a)\""]),
        (selector("!"), "filter.selector", &["\"!\""]),
        (selector("=a"), "filter.selector", &["\"=a\""]),
        (field("zone=a"), "filter.fields", &["\"zone=a\"", "spec.zone=a"]),
        (field("spec.zone"), "filter.fields", &["\"spec.zone\"", "spec.zone=a"]),
        (field("spec.=a"), "filter.fields", &["\"spec.=a\""]),
        (field("spec.zon=a"), "filter.fields", &["has no field zon", "did you mean zone?"]),
        (field("spec.rules=a"), "filter.fields", &["demo.v1.NetworkPolicy.rules is repeated"]),
        (field("spec.zone.more=a"), "filter.fields", &["has no fields"]),
        (field("spec.zone..=a"), "filter.fields", &["has no fields"]),
    ];
    for (filter, path, words) in cases {
        let (kinds, filter) = (vec![KIND.to_owned()], Some(filter));
        let list = v1::ListRequest { kinds: kinds.clone(), filter: filter.clone(), ..v1::ListRequest::default() };
        expect_bad_field(world.reader.list(list).await, path, words);
        let subscribe = v1::SubscribeRequest { kinds, filter, ..v1::SubscribeRequest::default() };
        expect_bad_field(world.reader.subscribe(subscribe).await, path, words);
        world.goes_on().await;
    }
    let everything = v1::ListRequest { filter: Some(field("spec.zone=a")), ..v1::ListRequest::default() };
    expect_bad_field(world.reader.list(everything).await, "filter.fields", &["kinds must be named"]);
    let token = v1::ListRequest { page_token: "nonsense".to_owned(), ..v1::ListRequest::default() };
    expect_bad_field(world.reader.list(token).await, "page_token", &["the next_page_token of the page before"]);
    world.goes_on().await;
}

#[tokio::test]
async fn a_resume_that_cannot_be_is_answered_at_once_and_says_why() {
    let mut world = World::new().await;
    let subscribe = |resume: v1::Resume| v1::SubscribeRequest {
        kinds: vec![KIND.to_owned()],
        agent: "late".to_owned(),
        resume: Some(resume),
        ..v1::SubscribeRequest::default()
    };
    let first = welcome(&mut world, subscribe(v1::Resume::default())).await;
    let position = first.position.unwrap();
    assert_eq!((position.epoch, first.mode()), (EPOCH, Mode::Snapshot));

    let future = v1::Position { revision: position.revision + 1_000_000, ..position };
    // What a client means that counts with signed numbers and sends -1.
    let negative = v1::Position { revision: u64::MAX, ..position };
    let elsewhere = v1::Position { epoch: EPOCH + 1, ..position };
    let other_scope = v1::Position { scope: position.scope ^ 1, ..position };
    let cases: [(v1::Position, &str); 4] = [
        (future, "is above the newest"),
        (negative, "is above the newest"),
        (elsewhere, "another epoch"),
        (other_scope, "another scope"),
    ];
    for (position, why) in cases {
        let answer = welcome(&mut world, subscribe(resume_at(position))).await;
        assert_eq!(answer.mode(), Mode::Snapshot);
        assert!(answer.reason.contains(why), "expected {why:?}, found {:?}", answer.reason);
        world.goes_on().await;
        let buckets = vec![0; 4096].into();
        let with_digests = v1::Resume { root: vec![0; 16].into(), buckets, ..resume_at(position) };
        let answer = welcome(&mut world, subscribe(with_digests)).await;
        assert_eq!(answer.mode(), Mode::Digest);
        assert!(answer.reason.contains(why), "expected {why:?}, found {:?}", answer.reason);
        world.goes_on().await;
    }

    let digests = |root: usize, buckets: usize| v1::Resume {
        root: vec![1; root].into(),
        buckets: vec![0; buckets].into(),
        ..v1::Resume::default()
    };
    let origin = |manager: &str, kinds: &[&str]| {
        let kinds = kinds.iter().map(ToString::to_string).collect();
        v1::Resume { origins: vec![v1::Origin { manager: manager.into(), kinds }], ..v1::Resume::default() }
    };
    let cases: [(v1::Resume, &str, &[&str]); 6] = [
        (digests(15, 0), "resume.root", &["16 bytes, found 15"]),
        (digests(16, 100), "resume.buckets", &["4096 bytes, found 100"]),
        (digests(16, 4096), "resume.buckets", &["256 digests whose XOR is resume.root"]),
        (origin("", &["a.B"]), "resume.origins[0].manager", &["publisher \"\""]),
        (origin("p", &[]), "resume.origins[0].kinds", &["the kinds of the objects held"]),
        (origin("p", &["no kind"]), "resume.origins[0].kinds", &["no kind"]),
    ];
    for (resume, field, words) in cases {
        expect_bad_field(world.reader.subscribe(subscribe(resume)).await, field, words);
        world.goes_on().await;
    }
}

#[tokio::test]
async fn a_report_that_cannot_be_is_refused() {
    let mut world = World::new().await;
    let subscribe = v1::SubscribeRequest { agent: "reporter".to_owned(), ..v1::SubscribeRequest::default() };
    let mut frames = world.reader.subscribe(subscribe).await.unwrap().into_inner();
    let session = first_welcome(&mut frames).await.session;
    let report = v1::ReportRequest { session, sequence: 1, ..v1::ReportRequest::default() };

    let stranger = v1::ReportRequest { session: session ^ 1, ..report.clone() };
    expect_refusal(world.reader.report_once(stranger).await, Code::NotFound, &["is over or never was"]);
    let cases: [(v1::ReportRequest, &str, &[&str]); 4] = [
        (v1::ReportRequest { received: u64::MAX, ..report.clone() }, "received", &["the newest revision"]),
        (v1::ReportRequest { applied: 1, ..report.clone() }, "applied", &["at most what was received (0), found 1"]),
        (
            v1::ReportRequest { exceptions: vec![v1::Exception::default()], ..report.clone() },
            "exceptions[0].key",
            &["the key of the object"],
        ),
        (v1::ReportRequest { cleared: vec![v1::Key::default()], ..report.clone() }, "cleared", &["kind \"\""]),
    ];
    for (bad, field, words) in cases {
        expect_bad_field(world.reader.report_once(bad.clone()).await, field, words);
        expect_bad_field(world.reader.report(tokio_stream::iter([bad])).await, field, words);
        world.goes_on().await;
    }
    let accepted = world.reader.report_once(report).await.unwrap().into_inner();
    assert_eq!((accepted.sequence, accepted.full_wanted), (1, false), "what was refused was not counted");
    world.goes_on().await;
}

#[tokio::test]
async fn descriptors_that_cannot_be_are_refused() {
    let mut world = World::new().await;
    let good = demo::descriptor_set();
    let register = |descriptor_set: &[u8], kinds: &[&str]| v1::RegisterKindsRequest {
        descriptor_set: descriptor_set.to_vec().into(),
        kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
    };
    let cases: [(v1::RegisterKindsRequest, &[&str]); 3] = [
        (register(b"garbage", &[]), &["not a google.protobuf.FileDescriptorSet"]),
        (register(&good[..good.len() - 1], &[]), &["not a google.protobuf.FileDescriptorSet"]),
        (
            register(&good, &["demo.v1.NetworkPolici"]),
            &["demo.v1.NetworkPolici", "did you mean demo.v1.NetworkPolicy?"],
        ),
    ];
    for (request, words) in cases {
        expect_bad_field(world.writer.register_kinds(request).await, "descriptor_set", words);
        world.goes_on().await;
    }
}

fn resume_at(position: v1::Position) -> v1::Resume {
    v1::Resume { position: Some(position), ..v1::Resume::default() }
}

async fn welcome(world: &mut World, request: v1::SubscribeRequest) -> v1::Welcome {
    let mut frames = world.reader.subscribe(request).await.unwrap().into_inner();
    first_welcome(&mut frames).await
}

async fn first_welcome(frames: &mut tonic::Streaming<v1::Frame>) -> v1::Welcome {
    let frame = wait::for_it("the answer to a subscription", frames.message()).await.unwrap();
    match frame.and_then(|frame| frame.frame) {
        Some(Frame::Welcome(welcome)) => welcome,
        other => panic!("the first frame is {other:?}"),
    }
}
