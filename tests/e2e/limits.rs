//! Every limit: what exceeds it is refused with its name, counted, and disturbs nobody.

use std::collections::BTreeMap;

use nimbus_bus::Limits;
use nimbus_wire::v1::{self, frame::Frame};
use prost::Message as _;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::{
    demo::{self, KIND},
    honest::{World, expect_refusal},
    raw, wait,
};

/// Exceeds a limit. What is refused is counted under the name of the limit, and the world goes on.
async fn check<T>(
    limit: &str,
    set: impl FnOnce(&mut Limits),
    exceed: impl AsyncFnOnce(&mut World) -> Result<T, Status>,
    code: Code,
    words: &[&str],
) {
    let mut world = World::with(|config| set(&mut config.limits)).await;
    world.goes_on().await;
    assert_eq!(world.bus.refusals(limit), 0, "{limit} is exceeded by somebody who keeps to it");
    let status = expect_refusal(exceed(&mut world).await, code, words);
    assert_eq!(world.bus.refusals(limit), 1, "a refusal because of {limit} is not counted: {status:?}");
    if code == Code::ResourceExhausted {
        let quota = status.get_details_quota_failure().unwrap_or_else(|| panic!("no details in {status:?}"));
        assert_eq!(quota.violations[0].subject, limit, "{status:?}");
        assert_eq!(status.get_details_error_info().unwrap().metadata["limit"], limit, "{status:?}");
    }
    world.goes_on().await;
}

async fn publish(world: &mut World, object: v1::Object) -> Result<v1::ApplyResponse, Status> {
    let response = world.writer.apply(demo::apply("somebody", vec![demo::upsert(object)])).await?;
    Ok(response.into_inner())
}

fn labels(count: usize) -> BTreeMap<String, String> {
    (0..count).map(|n| (format!("label-{n}"), String::new())).collect()
}

#[tokio::test]
async fn objects_and_kinds_are_limited() {
    let set = |limits: &mut Limits| limits.store.objects = 3;
    let exceed = async |world: &mut World| publish(world, demo::policy("fourth", "a", 1)).await;
    check("objects", set, exceed, Code::ResourceExhausted, &["objects are limited to 3"]).await;

    let set = |limits: &mut Limits| limits.store.bytes = 5_000;
    let exceed = async |world: &mut World| publish(world, demo::policy("large", &"z".repeat(5_000), 1)).await;
    check("bytes", set, exceed, Code::ResourceExhausted, &["bytes are limited to 5000"]).await;

    let set = |limits: &mut Limits| limits.publishers = 1;
    let exceed = async |world: &mut World| publish(world, demo::policy("x", "a", 1)).await;
    check("publishers", set, exceed, Code::ResourceExhausted, &["publishers are limited to 1"]).await;

    let other = || v1::Object { spec: Some(demo::pack("demo.v1.Other", Vec::new())), ..demo::policy("x", "a", 1) };
    let set = |limits: &mut Limits| limits.store.kinds = 1;
    let exceed = async |world: &mut World| publish(world, other()).await;
    check("kinds", set, exceed, Code::ResourceExhausted, &["kinds are limited to 1"]).await;

    let exceed = async |world: &mut World| {
        let steps = [demo::begin("somebody", &[KIND, "demo.v1.Other"]), demo::end()];
        world.writer.sync(tokio_stream::iter(steps)).await
    };
    check("kinds", set, exceed, Code::ResourceExhausted, &["kinds are limited to 1"]).await;
}

#[tokio::test]
async fn what_one_object_may_have_is_limited() {
    let set = |limits: &mut Limits| limits.store.object_bytes = 1_000;
    let exceed = async |world: &mut World| publish(world, demo::policy("x", &"z".repeat(1_000), 1)).await;
    check("object_bytes", set, exceed, Code::InvalidArgument, &["object_bytes", "at most 1000 allowed"]).await;

    let set = |limits: &mut Limits| limits.store.labels = 2;
    let exceed =
        async |world: &mut World| publish(world, v1::Object { labels: labels(3), ..demo::policy("x", "a", 1) }).await;
    check("labels", set, exceed, Code::InvalidArgument, &["labels: 3, at most 2 allowed"]).await;

    let set = |limits: &mut Limits| limits.store.refs = 2;
    let exceed = async |world: &mut World| {
        let refs =
            (0..3).map(|n| v1::Reference { kind: KIND.into(), name: format!("r{n}"), ..v1::Reference::default() });
        publish(world, v1::Object { refs: refs.collect(), ..demo::policy("x", "a", 1) }).await
    };
    check("refs", set, exceed, Code::InvalidArgument, &["refs: 3, at most 2 allowed"]).await;

    let set = |limits: &mut Limits| limits.store.named_agents = 2;
    let exceed = async |world: &mut World| {
        let ids = (0..3).map(|n| format!("agent-{n}")).collect();
        let audience = v1::Audience { to: Some(v1::audience::To::Agents(v1::Agents { ids })) };
        publish(world, v1::Object { audience: Some(audience), ..demo::policy("x", "a", 1) }).await
    };
    check("named_agents", set, exceed, Code::InvalidArgument, &["named_agents: 3, at most 2 allowed"]).await;
}

#[tokio::test]
async fn what_one_request_may_have_is_limited() {
    let set = |limits: &mut Limits| limits.store.steps = 2;
    let exceed = async |world: &mut World| {
        let ops = (0..3).map(|n| demo::upsert(demo::policy(&format!("x{n}"), "a", 1))).collect();
        world.writer.apply(demo::apply("somebody", ops)).await
    };
    check("ops", set, exceed, Code::ResourceExhausted, &["ops are limited to 2"]).await;

    let set = |limits: &mut Limits| limits.request_kinds = 2;
    let exceed = async |world: &mut World| {
        let kinds = (0..3).map(|n| format!("demo.v1.Kind{n}")).collect();
        world.reader.list(v1::ListRequest { kinds, ..v1::ListRequest::default() }).await
    };
    check("request_kinds", set, exceed, Code::ResourceExhausted, &["request_kinds: 3, at most 2 allowed"]).await;

    let set = |limits: &mut Limits| limits.filter_terms = 2;
    let exceed = async |world: &mut World| {
        let filter = v1::Filter { names: ["a", "b", "c"].map(str::to_owned).into(), ..v1::Filter::default() };
        let request = v1::SubscribeRequest { filter: Some(filter), ..v1::SubscribeRequest::default() };
        world.reader.subscribe(request).await
    };
    check("filter_terms", set, exceed, Code::ResourceExhausted, &["filter_terms: 3, at most 2 allowed"]).await;

    let set = |limits: &mut Limits| limits.agent_labels = 2;
    let exceed = async |world: &mut World| {
        let (agent, agent_labels) = ("labelled".to_owned(), labels(3));
        world
            .reader
            .subscribe(v1::SubscribeRequest { agent, agent_labels, ..v1::SubscribeRequest::default() })
            .await
    };
    check("agent_labels", set, exceed, Code::ResourceExhausted, &["agent_labels: 3, at most 2 allowed"]).await;

    let set = |limits: &mut Limits| limits.origins = 2;
    let exceed = async |world: &mut World| {
        let kinds = ["a.A", "a.B", "a.C"].map(str::to_owned).into();
        let origins = vec![v1::Origin { manager: "somebody".to_owned(), kinds }];
        let resume = Some(v1::Resume { origins, ..v1::Resume::default() });
        world
            .reader
            .subscribe(v1::SubscribeRequest { resume, ..v1::SubscribeRequest::default() })
            .await
    };
    check("origins", set, exceed, Code::ResourceExhausted, &["origins: 3, at most 2 allowed"]).await;

    let set = |limits: &mut Limits| limits.message_bytes = 5_000;
    let exceed = async |world: &mut World| publish(world, demo::policy("x", &"z".repeat(6_000), 1)).await;
    check("message_bytes", set, exceed, Code::ResourceExhausted, &["5000 bytes"]).await;
}

/// Requests of a few bytes for each element became some hundred times as large when they were decoded, before anybody could
/// count them: four megabytes of empty exceptions took half a gigabyte.
#[tokio::test]
async fn a_request_of_very_many_parts_is_refused_before_it_is_decoded() {
    let set = |limits: &mut Limits| limits.message_parts = 100;
    let words = &["fields and elements of one message are limited to 100"];
    let exceed = async |world: &mut World| {
        let exceptions = vec![v1::Exception::default(); 100_000];
        let report = v1::ReportRequest { session: 1, sequence: 1, exceptions, ..Default::default() };
        world.reader.report_once(report).await
    };
    check("message_parts", set, exceed, Code::ResourceExhausted, words).await;
    let exceed = async |world: &mut World| {
        let ops = vec![v1::Op::default(); 100_000];
        world.writer.apply(demo::apply("somebody", ops)).await
    };
    check("message_parts", set, exceed, Code::ResourceExhausted, words).await;
    let exceed = async |world: &mut World| {
        let steps = [demo::begin("somebody", &[KIND]), demo::items(vec![v1::Object::default(); 100_000]), demo::end()];
        world.writer.sync(tokio_stream::iter(steps)).await
    };
    check("message_parts", set, exceed, Code::ResourceExhausted, words).await;
}

/// Each of a thousand requests on one connection could be begun, and left there with all but its last byte.
#[tokio::test]
async fn requests_that_are_never_complete_give_way_to_those_that_are() {
    let mut world = World::with(|config| {
        config.limits.incoming_bytes = 300_000;
        config.limits.message_bytes = 100_000;
    })
    .await;
    let mut calls = Vec::new();
    for _ in 0..4 {
        let mut call = raw::open(world.bus.address, "/nimbus.v1.Bus/ReportOnce", &[], false).await;
        call.body.send_data(raw::message(100_000, &[0x0a; 20]), false).unwrap();
        for _ in 0..9 {
            call.body.send_data(vec![0; 10_000].into(), false).unwrap();
        }
        calls.push(call);
    }
    // Which of them was first is up to the network, but it is one, and no more.
    let mut ends = tokio::task::JoinSet::new();
    calls.into_iter().for_each(|call| drop(ends.spawn(call.outcome())));
    let first = wait::for_it("one to give way", ends.join_next()).await.unwrap().unwrap();
    expect_refusal(first, Code::ResourceExhausted, &["bytes of requests that are not complete are limited to 300000"]);
    assert_eq!(world.bus.refusals("incoming_bytes"), 1);
    let large = demo::policy("large", &"z".repeat(90_000), 1);
    world.publish("somebody", vec![large]).await;
    assert_eq!(world.bus.refusals("incoming_bytes"), 2);
    world.goes_on().await;
}

/// A client that asked for a thousand lists and had no room for the answers made the bus keep them all: two gigabytes.
#[tokio::test]
async fn answers_that_nobody_reads_give_way_to_those_that_are_read() {
    let mut world = World::with(|config| config.limits.outgoing_bytes = 100_000).await;
    world.publish("somebody", vec![demo::policy("large", &"z".repeat(80_000), 1)]).await;
    let stream = tokio::net::TcpStream::connect(world.bus.address).await.unwrap();
    // Room for a part of the first piece.
    let mut client = h2::client::Builder::new();
    let (sender, driver) = client.initial_window_size(10_000).handshake::<_, bytes::Bytes>(stream).await.unwrap();
    tokio::spawn(driver);
    let ask = async || {
        let mut sender = sender.clone().ready().await.unwrap();
        let request = http::Request::post(format!("http://{}/nimbus.v1.Bus/List", world.bus.address))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        let (response, mut body) = sender.send_request(request.body(()).unwrap(), false).unwrap();
        body.send_data(raw::message(0, b""), true).unwrap();
        wait::for_it("an answer", response).await.unwrap().into_body()
    };
    let read = async |mut body: h2::RecvStream| {
        let mut read = 0;
        while let Some(data) = wait::for_it("more of an answer", body.data()).await {
            let data = data?;
            read += data.len();
            body.flow_control().release_capacity(data.len())?;
        }
        Ok::<_, h2::Error>(read)
    };
    let (mut first, second) = (ask().await, ask().await);
    // The first has waited longest, and is told that it is given up.
    while let Some(data) = wait::for_it("what was sent of it", first.data()).await {
        first.flow_control().release_capacity(data.unwrap().len()).unwrap();
    }
    let end = wait::for_it("its end", first.trailers()).await.unwrap().expect("trailers");
    let status = tonic::Status::from_header_map(&end).unwrap();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.message().contains("has waited longest"), "{status}");
    assert_eq!(world.bus.refusals("outgoing_bytes"), 1);
    assert!(read(second).await.unwrap() > 80_000);
    world.goes_on().await;
}

#[tokio::test]
async fn connections_are_limited() {
    // The honest world has two, and the test two more.
    let mut world = World::with(|config| config.limits.connections = 6).await;
    let mut kept = Vec::new();
    while world.bus.refusals("connections") == 0 {
        kept.push(tokio::net::TcpStream::connect(world.bus.address).await.unwrap());
        let (metrics, count) = (&world.bus, i64::try_from(kept.len()).unwrap());
        wait::until("a connection to be taken or refused", || {
            metrics.metric("nimbus_bus_connections_accepted_total") + metrics.refusals("connections") >= count
        })
        .await;
        assert!(kept.len() < 10, "they are not limited");
    }
    let mut refused = kept.pop().unwrap();
    let mut nothing = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut refused, &mut nothing);
    assert_eq!(wait::for_it("the end of a connection", read).await.unwrap_or(0), 0);
    world.goes_on().await;
    // When others go there is room again.
    kept.clear();
    let bus = &world.bus;
    wait::until("room", || bus.metric("nimbus_bus_connections") < 6).await;
    let (mut reader, _) = world.bus.clients().await;
    reader.list(v1::ListRequest::default()).await.unwrap();
}

#[tokio::test]
async fn sessions_and_what_they_report_are_limited() {
    let set = |limits: &mut Limits| limits.sessions = 1;
    let exceed = async |world: &mut World| world.reader.subscribe(v1::SubscribeRequest::default()).await;
    check("sessions", set, exceed, Code::ResourceExhausted, &["sessions are limited to 1", "another bus"]).await;

    let set = |limits: &mut Limits| limits.exceptions = 2;
    let exceed = async |world: &mut World| {
        let mut frames = world.reader.subscribe(v1::SubscribeRequest::default()).await.unwrap().into_inner();
        let first = wait::for_it("a welcome", frames.message()).await.unwrap().unwrap();
        let Some(Frame::Welcome(welcome)) = first.frame else { panic!("the first frame is {first:?}") };
        let failed = |n| v1::Exception { key: Some(demo::key(&format!("x{n}"))), ..v1::Exception::default() };
        let exceptions = (0..3).map(failed).collect();
        let report = v1::ReportRequest { session: welcome.session, sequence: 1, exceptions, ..Default::default() };
        world.reader.report_once(report).await
    };
    check("exceptions", set, exceed, Code::ResourceExhausted, &["exceptions of one session are limited to 2"]).await;

    let failing = async |world: &mut World| {
        let subscribe = v1::SubscribeRequest { agent: "failing".to_owned(), ..v1::SubscribeRequest::default() };
        let mut frames = world.reader.subscribe(subscribe).await.unwrap().into_inner();
        let first = wait::for_it("a welcome", frames.message()).await.unwrap().unwrap();
        let Some(Frame::Welcome(welcome)) = first.frame else { panic!("the first frame is {first:?}") };
        let message = "m".repeat(1_000);
        let exceptions = vec![v1::Exception { key: Some(demo::key("x")), message, ..v1::Exception::default() }];
        let report = v1::ReportRequest { session: welcome.session, sequence: 1, exceptions, ..Default::default() };
        world.reader.report_once(report).await
    };
    let words = &["bytes of exceptions of one agent are limited to 1000"];
    check("report_bytes", |limits| limits.report_bytes = 1_000, failing, Code::ResourceExhausted, words).await;
    let words = &["bytes of exceptions of all agents are limited to 1000"];
    check("reports_bytes", |limits| limits.reports_bytes = 1_000, failing, Code::ResourceExhausted, words).await;
}

#[tokio::test]
async fn snapshots_beyond_the_budget_are_told_when_to_come_back() {
    let set = |limits: &mut Limits| (limits.snapshot_rate, limits.snapshot_burst) = (1, 0);
    let exceed = async |world: &mut World| {
        let refused = world.reader.subscribe(v1::SubscribeRequest::default()).await;
        let status = refused.as_ref().expect_err("the honest agent has used up the budget for minutes");
        let retry = status.get_details_retry_info().unwrap_or_else(|| panic!("no details in {status:?}"));
        assert!(retry.retry_delay.is_some_and(|delay| delay.as_secs() > 0), "{retry:?}");
        refused
    };
    check("snapshot_rate", set, exceed, Code::Unavailable, &["come back when it is your turn"]).await;
}

#[tokio::test]
async fn descriptors_are_limited() {
    let more = || {
        let message = DescriptorProto { name: Some("Thing".to_owned()), ..DescriptorProto::default() };
        let file = FileDescriptorProto {
            name: Some("more.proto".to_owned()),
            package: Some("more.v1".to_owned()),
            syntax: Some("proto3".to_owned()),
            message_type: vec![message],
            ..FileDescriptorProto::default()
        };
        FileDescriptorSet { file: vec![file] }
    };
    let register = async |world: &mut World| {
        let descriptor_set = more().encode_to_vec().into();
        world
            .writer
            .register_kinds(v1::RegisterKindsRequest { descriptor_set, kinds: Vec::new() })
            .await
    };
    let demo_bytes = demo::descriptor_set().len();
    let code = Code::ResourceExhausted;
    check("schema_files", |limits| limits.schemas.max_files = 1, register, code, &["registered files: 2"]).await;
    check("schema_kinds", |limits| limits.schemas.max_kinds = 2, register, code, &["registered kinds: 3"]).await;
    let set = |limits: &mut Limits| limits.schemas.max_total_bytes = demo_bytes;
    check("schemas_bytes", set, register, code, &["bytes of all registered files"]).await;
    let large = async |world: &mut World| {
        let descriptor_set = vec![0; demo_bytes + 1].into();
        world
            .writer
            .register_kinds(v1::RegisterKindsRequest { descriptor_set, kinds: Vec::new() })
            .await
    };
    let set = |limits: &mut Limits| limits.schemas.max_set_bytes = demo_bytes;
    check("schema_bytes", set, large, code, &["bytes of the descriptor set"]).await;
}

#[tokio::test]
async fn pages_are_limited_and_a_list_that_waited_too_long_begins_again() {
    let mut world = World::with(|config| {
        config.limits.page_objects = 2;
        config.limits.open_lists = 1;
    })
    .await;
    world.goes_on().await;
    let ask = |page_token: &str| v1::ListRequest {
        page_size: 1_000,
        page_token: page_token.to_owned(),
        ..v1::ListRequest::default()
    };
    let first = world.reader.list(ask("")).await.unwrap().into_inner();
    assert_eq!(first.objects.len(), 2, "a page has no more than the limit");
    world.publish("somebody", vec![demo::policy("zzz", "a", 1)]).await;
    let second = world.reader.list(ask(&first.next_page_token)).await.unwrap().into_inner();
    assert_eq!((second.revision, second.objects.len()), (first.revision, 1), "all pages are read at one revision");
    assert_eq!(second.next_page_token, "");

    let newer = world.reader.list(ask("")).await.unwrap().into_inner();
    world.publish("somebody", vec![demo::policy("zzz", "a", 2)]).await;
    let result = world.reader.list(ask(&first.next_page_token)).await;
    expect_refusal(result, Code::Aborted, &["too many lists were begun since"]);
    let rest = world.reader.list(ask(&newer.next_page_token)).await.unwrap().into_inner();
    assert_eq!(rest.objects.len(), 2);
}

#[tokio::test]
async fn every_limit_has_a_metric() {
    let world = World::new().await;
    for (limit, value) in Limits::default().named() {
        let shown = world.bus.metric(&format!("nimbus_bus_limit{{limit=\"{limit}\"}}"));
        assert_eq!(u64::try_from(shown).unwrap(), value, "{limit}");
    }
}
