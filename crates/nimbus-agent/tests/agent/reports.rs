//! Reports that are lost, refused, or too large.

use nimbus_agent::{Agent, Context, Failure, Handler, Link, Object, Status};
use nimbus_core::Labels;
use nimbus_wire::v1::{self, Mode, watch_status_response::Event};
use std::sync::Arc;
use tonic::{Code, Status as Refusal};

use crate::{
    fake::{Fake, put_event},
    recorder::{Alpha, Recorder},
    world::{World, alpha, alpha_key},
    wrong_bus::run,
};

/// A handler that has much to say.
struct Chatty(usize);

impl Handler<Alpha> for Chatty {
    async fn apply(&self, _: &Context, object: Arc<Object<Alpha>>) -> Result<Status, Failure> {
        let detail = Alpha { value: object.spec.value.repeat(self.0) };
        Ok(if object.name() == "quiet" { Status::applied() } else { Status::applied().with_detail(&detail) })
    }

    async fn remove(&self, _: &Context, _: Arc<Object<Alpha>>) -> Result<(), Failure> {
        Ok(())
    }
}

fn labels(zone: &str) -> Labels {
    Labels::new(&[("zone".to_owned(), zone.to_owned())].into()).unwrap()
}

/// New labels are asked for again until the bus has heard of them.
#[tokio::test(start_paused = true)]
async fn labels_whose_report_was_lost_are_asked_for_again() {
    let (fake, recorder) = (Fake::start(), Recorder::default());
    let script = fake.script();
    let mut agent = run(&fake, &recorder);
    script.welcome(1, Mode::Snapshot).await;
    script.snapshot(1, vec![put_event("a", "1", &[])]).await;
    agent.settled().await;
    fake.reported(|report| report.applied == 1).await;
    fake.refuse_reports(2, Refusal::unavailable("lost"));
    agent.handle.set_labels(labels("b")).await.unwrap();
    let taken = fake.reported(|report| report.rescope.is_some()).await;
    assert!(taken.full, "{taken:?}");
    fake.refuse_reports(1, Refusal::new(Code::InvalidArgument, "too many labels"));
    agent.handle.set_labels(labels("c")).await.unwrap();
    let told = fake
        .reported(|report| report.events.iter().any(|event| event.reason == "LabelsRefused"))
        .await;
    assert_eq!(told.rescope, None, "it is not asked for for ever");
    agent.stop().await;
}

/// A bus that takes little is told less at a time, until it has heard everything that it takes.
#[tokio::test(start_paused = true)]
async fn statuses_of_many_megabytes_do_not_make_an_agent_mute() {
    let world = World::start();
    let objects: Vec<_> = (0..600).map(|n| alpha(&format!("o{n:03}"), "x")).collect();
    world.sync(objects).await;
    let builder = Agent::builder("a", "bus").connector(world.net.clone()).handle(Chatty(12_000)).seed(1);
    let mut agent = world.run(builder);
    agent.settled().await;
    let mut watch = world
        .fleet()
        .await
        .watch_status(v1::WatchStatusRequest::default())
        .await
        .unwrap()
        .into_inner();
    let (mut statuses, mut in_sync) = (std::collections::BTreeSet::new(), false);
    while !in_sync || statuses.len() < 600 {
        let Some(Event::Report(report)) = watch.message().await.unwrap().unwrap().event else { continue };
        statuses.extend(report.statuses.iter().map(|status| status.key.clone().unwrap().name));
        in_sync = report.agent.unwrap().in_sync;
    }
    agent.stop().await;
}

/// A handler that can do nothing with what is bad, and has much to say about it.
struct Picky;

impl Handler<Alpha> for Picky {
    async fn apply(&self, _: &Context, object: Arc<Object<Alpha>>) -> Result<Status, Failure> {
        if object.spec.value == "bad" {
            return Err(Failure::new("m".repeat(1_000)).permanent());
        }
        Ok(Status::applied())
    }

    async fn remove(&self, _: &Context, _: Arc<Object<Alpha>>) -> Result<(), Failure> {
        Ok(())
    }
}

/// A bus that had room for no exception at all was asked for ever to take one: the agent said less and less, but never
/// nothing, and the bus did not even hear what had arrived.
#[tokio::test(start_paused = true)]
async fn a_bus_without_room_for_exceptions_still_hears_how_far_an_agent_is() {
    let world = World::with(|config| config.limits.report_bytes = 1);
    let objects = |value: &str| (0..20).map(|n| alpha(&format!("o{n:02}"), value)).collect();
    world.sync(objects("bad")).await;
    let builder = Agent::builder("a", "bus").connector(world.net.clone()).handle(Picky).seed(1);
    let agent = world.run(builder);
    let mut watch = world
        .fleet()
        .await
        .watch_status(v1::WatchStatusRequest::default())
        .await
        .unwrap()
        .into_inner();
    let mut until = async |wanted: &dyn Fn(&v1::AgentInfo) -> bool| loop {
        let Some(Event::Report(report)) = watch.message().await.unwrap().unwrap().event else { continue };
        if report.agent.as_ref().is_some_and(wanted) {
            break;
        }
    };
    until(&|agent| agent.received > 0 && agent.received == agent.last_relevant && !agent.in_sync).await;
    assert!(world.metric("nimbus_bus_refusals_total{limit=\"report_bytes\"}") > 0);
    world.sync(objects("good")).await;
    until(&|agent| agent.in_sync).await;
    agent.stop().await;
}

/// A status ends with its object, and with an apply that has nothing to say.
#[tokio::test(start_paused = true)]
async fn a_status_that_is_over_is_over_at_the_bus_too() {
    let world = World::start();
    world.sync(vec![alpha("x", "1")]).await;
    let builder = Agent::builder("a", "bus").connector(world.net.clone()).handle(Chatty(1)).seed(1);
    let mut agent = world.run(builder);
    agent.settled().await;
    let mut watch = world
        .fleet()
        .await
        .watch_status(v1::WatchStatusRequest::default())
        .await
        .unwrap()
        .into_inner();
    let mut until = async |wanted: &dyn Fn(&v1::ObjectStatus) -> bool| loop {
        let Some(Event::Report(report)) = watch.message().await.unwrap().unwrap().event else { continue };
        if report.statuses.iter().any(wanted) {
            break;
        }
    };
    until(&|status| status.status.is_some()).await;
    world.delete(alpha_key("x")).await;
    until(&|status| status.key.as_ref().unwrap().name == "x" && status.status.is_none()).await;
    agent.until(|status| status.link == Link::InSync && status.objects == 0).await;
    agent.stop().await;
}
