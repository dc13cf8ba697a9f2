//! Finalizers and annotations over the wire.

use nimbus_bus::Limits;
use nimbus_wire::v1::{self, Result as Effect, event::Change, frame::Frame, op::Op, publisher_client::PublisherClient};
use tonic::{Code, Status, Streaming, transport::Channel};
use tonic_types::StatusExt as _;

use crate::scripted::{KIND, Local, agent, config, frame, object, until_bookmark};

fn key(name: &str) -> v1::Key {
    v1::Key { kind: KIND.into(), name: name.into(), ..Default::default() }
}

fn edit(name: &str, add: &[&str], remove: &[&str]) -> Op {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    Op::Finalizers(v1::FinalizersWrite { key: Some(key(name)), add: names(add), remove: names(remove) })
}

async fn apply(publisher: &mut PublisherClient<Channel>, op: Op) -> Result<Effect, Status> {
    let ops = vec![v1::Op { op: Some(op), ..Default::default() }];
    let request = v1::ApplyRequest { publisher: "controller".into(), ops, ..Default::default() };
    publisher.apply(request).await.map(|answer| answer.into_inner().outcomes[0].result())
}

/// The last change up to a revision.
async fn last_change(frames: &mut Streaming<v1::Frame>, revision: u64) -> Change {
    loop {
        let Frame::Batch(mut batch) = frame(frames).await.unwrap() else { continue };
        if batch.revision >= revision {
            return batch.events.pop().unwrap().change.unwrap();
        }
    }
}

fn expect_bad(done: Result<Effect, Status>, field: &str, words: &str) {
    let status = done.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert_eq!(status.get_error_details().bad_request().unwrap().field_violations[0].field, field);
    assert!(status.message().contains(words), "{status}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_sees_that_an_object_is_being_deleted_and_then_its_end() {
    let local = Local::start(config());
    local.sync(1, 10).await;
    let mut publisher = PublisherClient::new(local.channel().await);
    let mut frames = local.bus().await.subscribe(agent("a")).await.unwrap().into_inner();
    until_bookmark(&mut frames).await;
    let mut seen = Vec::new();
    let ops = [
        edit("o0", &["dns"], &[]),
        Op::Delete(key("o0")),
        Op::Delete(key("o0")),
        edit("o0", &[], &["dns"]),
        Op::Delete(key("o0")),
    ];
    for op in ops {
        seen.push(apply(&mut publisher, op).await.unwrap());
    }
    assert_eq!(seen, [Effect::Updated, Effect::Deleting, Effect::Deleting, Effect::Deleted, Effect::Absent]);
    // Asking again made no revision.
    let Change::Delete(end) = last_change(&mut frames, 4).await else { panic!("it is gone") };
    assert_eq!((&*end.name, end.revision), ("o0", 4));

    let annotations = [("owner".to_owned(), "team a".to_owned())].into();
    let created = v1::Object { annotations, ..object("o1", 10) };
    assert_eq!(apply(&mut publisher, Op::Upsert(created)).await.unwrap(), Effect::Created);
    apply(&mut publisher, edit("o1", &["firewall", "dns"], &[])).await.unwrap();
    apply(&mut publisher, Op::Delete(key("o1"))).await.unwrap();
    let Change::Put(put) = last_change(&mut frames, 7).await else { panic!("it is still there") };
    assert_eq!((&put.finalizers[..], put.deleting), (&["dns".to_owned(), "firewall".to_owned()][..], true));
    assert_eq!(put.annotations["owner"], "team a");
}

#[tokio::test(start_paused = true)]
async fn finalizers_that_cannot_be_are_refused_by_field() {
    let limits = Limits { store: nimbus_store::Limits { finalizers: 2, ..Default::default() }, ..Limits::default() };
    let local = Local::start(nimbus_bus::Config { limits, ..config() });
    local.sync(1, 10).await;
    let publisher = &mut PublisherClient::new(local.channel().await);
    let long = "n".repeat(254);
    expect_bad(apply(publisher, edit("o0", &[], &[])).await, "ops[0].finalizers", "to add, or to remove");
    expect_bad(apply(publisher, edit("o0", &["a b"], &[])).await, "ops[0].finalizers.add", "finalizer \"a b\"");
    expect_bad(apply(publisher, edit("o0", &[], &[""])).await, "ops[0].finalizers.remove", "1 to 253");
    expect_bad(apply(publisher, edit("o0", &[&long], &[])).await, "ops[0].finalizers.add", "1 to 253");
    expect_bad(apply(publisher, edit("o0", &["x"], &["x"])).await, "ops[0].finalizers.remove", "same operation");
    expect_bad(apply(publisher, edit("", &["x"], &[])).await, "ops[0].finalizers.key", "name \"\"");
    let no_key = Op::Finalizers(v1::FinalizersWrite { add: vec!["x".into()], ..Default::default() });
    expect_bad(apply(publisher, no_key).await, "ops[0].finalizers.key", "the key of the object");
    expect_bad(apply(publisher, edit("o0", &["x", "y", "z"], &[])).await, "ops[0]", "finalizers: 3, at most 2 allowed");
    assert!(local.metric(r#"nimbus_bus_refusals_total{limit="finalizers"} 1"#));
    assert_eq!(apply(publisher, edit("nothing", &["x"], &[])).await.unwrap_err().code(), Code::NotFound);

    for wrong in [
        v1::Object { finalizers: vec!["x".into()], ..object("o0", 10) },
        v1::Object { deleting: true, ..object("o0", 10) },
    ] {
        let words = "use an op with finalizers, or delete";
        expect_bad(apply(publisher, Op::Upsert(wrong)).await, "ops[0].upsert.finalizers", words);
    }
    let annotations = [("a b".to_owned(), String::new())].into();
    let wrong = v1::Object { annotations, ..object("o0", 10) };
    expect_bad(apply(publisher, Op::Upsert(wrong)).await, "ops[0].upsert.annotations", "a b");
}

#[tokio::test(start_paused = true)]
async fn writes_to_an_object_that_is_being_deleted_say_for_whom_it_waits() {
    let local = Local::start(config());
    local.sync(1, 10).await;
    let publisher = &mut PublisherClient::new(local.channel().await);
    apply(publisher, edit("o0", &["dns"], &[])).await.unwrap();
    let new_life = || Op::Upsert(v1::Object { uid: "other".into(), ..object("o0", 10) });
    let expect = |done: Result<Effect, Status>, words: &str| {
        let status = done.unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
        let details = status.get_error_details();
        assert_eq!(details.precondition_failure().unwrap().violations[0].r#type, "finalizers");
        assert!(status.message().contains(words), "{status}");
    };
    expect(apply(publisher, new_life()).await, "has the finalizers dns");
    apply(publisher, Op::Delete(key("o0"))).await.unwrap();
    expect(apply(publisher, Op::Upsert(object("o0", 20))).await, "waits for dns");
    expect(apply(publisher, edit("o0", &["late"], &[])).await, "waits for dns");
    // A publisher that syncs again without it does not delete it twice.
    local.sync(0, 0).await;
    assert_eq!(local.bus.store().state().objects(), 1);
}
