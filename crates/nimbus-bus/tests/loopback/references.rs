//! References that schemas declare, over the wire: whoever publishes, they are found, and agents get referents first.

use nimbus_bus::{Bus, Limits};
use nimbus_core::{Annotations, Audience, Kind, Labels, ObjectKey, PublisherId, Reference};
use nimbus_store::{Draft, Effect, Op, Txn};
use nimbus_wire::v1::{self, event::Change, frame::Frame, publisher_client::PublisherClient};
use prost::Message as _;
use protox::{
    Compiler,
    file::{ChainFileResolver, DescriptorSetFileResolver, File, FileResolver, GoogleFileResolver},
};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt as _;

use crate::scripted::{Local, config, frame, until_bookmark};

const SOURCE: &str = r#"syntax = "proto3";
package t.v1;
import "nimbus/v1/options.proto";
message Route {
  string via = 1 [(nimbus.v1.refers) = {kind: "t.v1.Route"}];
  repeated string zones = 2 [(nimbus.v1.refers) = {kind: "t.v1.Zone"}];
  string text = 3;
}
message Zone { string text = 1; }"#;

/// The file in which they are declared.
struct Source;

impl FileResolver for Source {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        if name == "t.proto" { File::from_source(name, SOURCE) } else { Err(protox::Error::file_not_found(name)) }
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct Route {
    #[prost(string, tag = "1")]
    via: String,
    #[prost(string, repeated, tag = "2")]
    zones: Vec<String>,
    #[prost(string, tag = "3")]
    text: String,
}

fn register(bus: &Bus) {
    let mut resolver = ChainFileResolver::new();
    resolver.add(Source);
    resolver.add(GoogleFileResolver::new());
    resolver.add(DescriptorSetFileResolver::decode(v1::FILE_DESCRIPTOR_SET).unwrap());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).open_file("t.proto").unwrap();
    let registered = bus.schemas().register(&compiler.encode_file_descriptor_set(), &[]).unwrap();
    assert_eq!(registered, ["t.v1.Route", "t.v1.Zone"]);
}

fn object(kind: &str, name: &str, spec: Vec<u8>) -> v1::Object {
    let spec = prost_types::Any { type_url: format!("type.googleapis.com/t.v1.{kind}"), value: spec };
    v1::Object { kind: format!("t.v1.{kind}"), name: name.into(), spec: Some(spec), ..Default::default() }
}

fn zone(name: &str) -> v1::Object {
    object("Zone", name, Vec::new())
}

fn route(name: &str, via: &str, zones: &[&str]) -> v1::Object {
    let zones = zones.iter().map(ToString::to_string).collect();
    object("Route", name, Route { via: via.into(), zones, text: String::new() }.encode_to_vec())
}

/// A reference, as the bus finds it.
fn declared(kind: &str, name: &str) -> v1::Reference {
    v1::Reference { kind: format!("t.v1.{kind}"), name: name.into(), declared: true, ..Default::default() }
}

async fn apply(
    publisher: &mut PublisherClient<Channel>,
    objects: Vec<v1::Object>,
) -> Result<Vec<v1::Result>, Box<Status>> {
    let op = |object| v1::Op { op: Some(v1::op::Op::Upsert(object)), ..Default::default() };
    let ops = objects.into_iter().map(op).collect();
    let request = v1::ApplyRequest { publisher: "controller".into(), ops, ..Default::default() };
    let answer = publisher.apply(request).await.map_err(Box::new)?.into_inner();
    Ok(answer.outcomes.iter().map(v1::Outcome::result).collect())
}

/// The field that an answer names, and its words.
fn refusal(status: &Status) -> (String, String) {
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    let details = status.get_error_details();
    (details.bad_request().unwrap().field_violations[0].field.clone(), status.message().to_owned())
}

async fn read(local: &Local, name: &str) -> v1::Object {
    let request = v1::ListRequest { kinds: vec!["t.v1.Route".into()], ..Default::default() };
    let page = local.bus().await.list(request).await.unwrap().into_inner();
    page.objects.into_iter().find(|object| object.name == name).unwrap()
}

/// What an agent that comes now is sent until it has everything, in order.
async fn sent(local: &Local, agent: &str) -> Vec<String> {
    let kinds = vec!["t.v1.Route".into(), "t.v1.Zone".into()];
    let request = v1::SubscribeRequest { kinds, agent: agent.into(), ..Default::default() };
    let mut frames = local.bus().await.subscribe(request).await.unwrap().into_inner();
    let mut names = Vec::new();
    loop {
        match frame(&mut frames).await.unwrap() {
            Frame::Batch(batch) => names.extend(batch.events.into_iter().filter_map(|event| match event.change {
                Some(Change::Put(put)) => Some(put.name),
                _ => None,
            })),
            Frame::Bookmark(_) | Frame::SnapshotEnd(_) => return names,
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_specs_refer_to_is_found_whoever_publishes_and_comes_first() {
    let local = Local::start(nimbus_bus::Config { assume_complete: true, ..config() });
    register(&local.bus);
    let publisher = &mut PublisherClient::new(local.channel().await);
    let mut frames = {
        let kinds = vec!["t.v1.Route".into(), "t.v1.Zone".into()];
        let request = v1::SubscribeRequest { kinds, agent: "early".into(), ..Default::default() };
        local.bus().await.subscribe(request).await.unwrap().into_inner()
    };
    until_bookmark(&mut frames).await;
    // Referrers first, in one transaction.
    apply(publisher, vec![route("a", "b", &["z"]), route("b", "", &["y"]), zone("y"), zone("z")])
        .await
        .unwrap();
    let Frame::Batch(batch) = frame(&mut frames).await.unwrap() else { panic!("a batch") };
    let names = batch.events.into_iter().map(|event| match event.change {
        Some(Change::Put(put)) => put.name,
        other => panic!("{other:?}"),
    });
    let names: Vec<_> = names.collect();
    let place = |names: &[String], name: &str| names.iter().position(|found| found == name).unwrap();
    for names in [names, sent(&local, "late").await] {
        assert_eq!(names.len(), 4, "{names:?}");
        for (referrer, referent) in [("a", "b"), ("a", "z"), ("b", "y")] {
            assert!(place(&names, referent) < place(&names, referrer), "{names:?}");
        }
    }
    assert_eq!(read(&local, "a").await.refs, [declared("Route", "b"), declared("Zone", "z")]);
}

#[tokio::test(start_paused = true)]
async fn publishing_again_what_a_spec_refers_to_changes_nothing() {
    let local = Local::start(config());
    register(&local.bus);
    let publisher = &mut PublisherClient::new(local.channel().await);
    let results = apply(publisher, vec![route("a", "", &["y", "z"])]).await.unwrap();
    assert_eq!(results, [v1::Result::Created]);
    let again = apply(publisher, vec![route("a", "", &["y", "z"])]).await.unwrap();
    assert_eq!(again, [v1::Result::Unchanged]);
    let there = read(&local, "a").await;
    // What was read can be written back as it is.
    let back = v1::Object { spec: there.spec.clone(), refs: there.refs.clone(), ..route("a", "", &[]) };
    assert_eq!(apply(publisher, vec![back]).await.unwrap(), [v1::Result::Unchanged]);
    // With another spec, nothing is left behind of the old one.
    let edited = v1::Object { refs: there.refs, ..route("a", "", &["x"]) };
    assert_eq!(apply(publisher, vec![edited]).await.unwrap(), [v1::Result::Updated]);
    assert_eq!(read(&local, "a").await.refs, [declared("Zone", "x")]);
    // What a publisher states stays, and is told apart.
    let stated = v1::Reference { declared: false, ..declared("Zone", "w") };
    let both = v1::Object { refs: vec![stated.clone()], ..route("a", "", &["x"]) };
    assert_eq!(apply(publisher, vec![both]).await.unwrap(), [v1::Result::Updated]);
    assert_eq!(read(&local, "a").await.refs, [stated, declared("Zone", "x")]);
}

#[tokio::test(start_paused = true)]
async fn what_was_written_before_its_schema_said_so_gets_its_references_when_it_is_written_again() {
    let local = Local::start(config());
    let publisher = &mut PublisherClient::new(local.channel().await);
    apply(publisher, vec![route("a", "", &["z"])]).await.unwrap();
    register(&local.bus);
    assert_eq!(read(&local, "a").await.refs, []);
    assert_eq!(apply(publisher, vec![route("a", "", &["z"])]).await.unwrap(), [v1::Result::Updated]);
    let there = read(&local, "a").await;
    assert_eq!((there.generation, there.refs), (1, vec![declared("Zone", "z")]));
}

#[tokio::test(start_paused = true)]
async fn a_cycle_is_refused_with_the_field_that_closes_it() {
    let local = Local::start(config());
    register(&local.bus);
    let publisher = &mut PublisherClient::new(local.channel().await);
    apply(publisher, vec![route("a", "b", &[]), route("b", "c", &[])]).await.unwrap();
    let status = apply(publisher, vec![zone("z"), route("c", "a", &["z"])]).await.unwrap_err();
    let (field, words) = refusal(&status);
    assert_eq!(field, "ops[1].upsert.spec.via");
    assert!(words.starts_with("ops[1].upsert.spec.via: t.v1.Route/c: its references form a cycle: "), "{words}");
    // Also of one object.
    let (field, _) = refusal(&apply(publisher, vec![route("d", "d", &[])]).await.unwrap_err());
    assert_eq!(field, "ops[0].upsert.spec.via");
    // And in a sync.
    let step = |step| v1::SyncRequest { step: Some(step) };
    let begin = v1::SyncBegin { publisher: "other".into(), kinds: vec!["t.v1.Route".into()], ..Default::default() };
    let objects = vec![route("x", "y", &[]), route("y", "x", &[])];
    let steps =
        [step(v1::sync_request::Step::Begin(begin)), step(v1::sync_request::Step::Items(v1::SyncItems { objects }))];
    let status = publisher.sync(tokio_stream::iter(steps)).await.unwrap_err();
    assert!(refusal(&status).0.ends_with("].spec.via"), "{status}");
    // A cycle of what publishers state names no field.
    let stated = v1::Reference { declared: false, ..declared("Route", "s") };
    let status = apply(publisher, vec![v1::Object { refs: vec![stated], ..route("s", "", &[]) }])
        .await
        .unwrap_err();
    assert_eq!(refusal(&status).0, "ops[0]");
    assert!(local.metric(r#"nimbus_bus_transactions_refused_total{reason="cycle"} 4"#), "{status}");
}

#[tokio::test(start_paused = true)]
async fn what_a_field_cannot_name_is_refused_with_the_field() {
    let limits = Limits { store: nimbus_store::Limits { refs: 2, ..Default::default() }, ..Limits::default() };
    let local = Local::start(nimbus_bus::Config { limits, ..config() });
    register(&local.bus);
    let publisher = &mut PublisherClient::new(local.channel().await);
    let (field, words) = refusal(&apply(publisher, vec![route("a", "", &["x", "y z"])]).await.unwrap_err());
    assert_eq!(field, "ops[0].upsert.spec.zones[1]");
    assert!(words.contains(r#"name "y z": expected 1 to 253 of"#), "{words}");
    let status = apply(publisher, vec![route("a", "", &["x", "y", "z"])]).await.unwrap_err();
    let (field, words) = refusal(&status);
    assert_eq!(field, "ops[0].upsert.spec.zones[2]");
    assert!(words.ends_with("refs: 3, at most 2 allowed"), "{words}");
    assert_eq!(status.get_error_details().error_info().unwrap().reason, "LIMIT");
    assert!(local.metric(r#"nimbus_bus_refusals_total{limit="refs"} 1"#));
}

#[tokio::test(start_paused = true)]
async fn a_program_gets_what_its_specs_refer_to_as_clients_do() {
    let local = Local::start(config());
    register(&local.bus);
    let draft = |object: v1::Object, refs: &[Reference]| Draft {
        key: ObjectKey::new(Kind::new(&object.kind).unwrap(), "", &object.name).unwrap(),
        uid: None,
        generation: None,
        labels: Labels::default(),
        refs: refs.into(),
        owner: None,
        annotations: Annotations::default(),
        audience: Audience::Everyone,
        spec: object.spec.unwrap().encode_to_vec().into(),
    };
    let publisher = PublisherId::new("controller").unwrap();
    let txn = |drafts: Vec<Draft>| {
        let steps = drafts.into_iter().map(|draft| Op::Upsert(draft).into()).collect();
        Txn { publisher: publisher.clone(), fence: 0, leases: Vec::new(), steps }
    };
    local.bus.submit(&txn(vec![draft(route("a", "b", &[]), &[])])).await.unwrap();
    let there = read(&local, "a").await;
    assert_eq!(there.refs, [declared("Route", "b")]);
    // It is what a client would have written.
    let client = &mut PublisherClient::new(local.channel().await);
    assert_eq!(apply(client, vec![route("a", "b", &[])]).await.unwrap(), [v1::Result::Unchanged]);
    // What it sends back as it has read it is nothing that it states.
    let old = Reference::try_from(&there.refs[0]).unwrap();
    local.bus.submit(&txn(vec![draft(route("a", "c", &[]), &[old])])).await.unwrap();
    assert_eq!(read(&local, "a").await.refs, [declared("Route", "c")]);

    let refused = local.bus.submit(&txn(vec![draft(route("c", "a", &[]), &[])])).await.unwrap_err();
    assert!(refused.to_string().contains("field via of the spec: its references form a cycle"), "{refused}");
    let refused = local.bus.submit(&txn(vec![draft(route("c", "?", &[]), &[])])).await.unwrap_err();
    assert!(refused.to_string().contains(r#"field via of the spec: name "?""#), "{refused}");

    let kinds = [Kind::new("t.v1.Route").unwrap()].into();
    let mut sync = local.bus.begin_sync(&publisher, 0, &kinds, Vec::new()).await.unwrap();
    let done = sync.items(vec![draft(route("a", "c", &[]), &[])]).await.unwrap();
    assert_eq!(done.outcomes[0].effect, Effect::Unchanged);
    let done = sync.items(vec![draft(route("d", "", &["z"]), &[])]).await.unwrap();
    assert_eq!(done.outcomes[0].effect, Effect::Created);
    assert_eq!(read(&local, "d").await.refs, [declared("Zone", "z")]);
    let refused = sync.items(vec![draft(route("e", "e", &[]), &[])]).await.unwrap_err();
    assert!(refused.to_string().contains("field via"), "{refused}");
}
