//! The lower level: a stream of events.

use nimbus_agent::{Agent, Event, Subscription};
use nimbus_core::Spec;
use nimbus_wire::v1;

use crate::{
    recorder::Alpha,
    world::{World, alpha, alpha_key, put},
};

fn subscribe(world: &World) -> Subscription {
    let builder = Agent::builder("reader", "http://bus:7400")
        .connector(world.net.clone())
        .kind(Alpha::kind());
    builder.seed(1).subscribe().unwrap()
}

fn said(event: &Event) -> String {
    match event {
        Event::Init => "init".to_owned(),
        Event::InitApply(object) => format!("init-apply {}", object.name()),
        Event::InitDone => "init-done".to_owned(),
        Event::Apply(object) => format!("apply {}", object.name()),
        Event::Delete(key) => format!("delete {}", key.name()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_events_begins_with_what_there_is_and_goes_on_after_a_cut() {
    let world = World::start();
    world.sync(vec![alpha("a", "1"), alpha("b", "1")]).await;
    let mut events = subscribe(&world);
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last| last != "init-done") {
        seen.push(said(&events.next().await));
    }
    assert_eq!(seen[0], "init");
    seen[1..3].sort_unstable();
    assert_eq!(seen, ["init", "init-apply a", "init-apply b", "init-done"]);
    world.put(alpha("a", "2")).await;
    assert_eq!(said(&events.next().await), "apply a");
    world.net.cut();
    world.delete(alpha_key("b")).await;
    world.put(alpha("c", "1")).await;
    let mut rest = [said(&events.next().await), said(&events.next().await)];
    rest.sort_unstable();
    assert_eq!(rest, ["apply c", "delete b"]);
}

/// Asking for the next event acknowledges all before it, and nothing else does.
#[tokio::test(start_paused = true)]
async fn an_event_is_acknowledged_by_asking_for_the_next() {
    let world = World::start();
    world.sync(vec![alpha("a", "1")]).await;
    let mut events = subscribe(&world);
    while !matches!(events.next().await, Event::InitDone) {}
    let revision = world.apply(vec![put(alpha("a", "2")), put(alpha("b", "1"))]).await;
    let mut fleet = world.fleet().await;
    let target = Some(v1::Target { target: Some(v1::target::Target::Revision(revision)) });
    let request = v1::GetPropagationRequest { target, ..Default::default() };
    assert!(matches!(events.next().await, Event::Apply(_)));
    let one = fleet.get_propagation(request.clone()).await.unwrap().into_inner().propagation.unwrap();
    assert_eq!((one.agents, one.applied), (1, 0));
    assert!(matches!(events.next().await, Event::Apply(_)));
    let wait = v1::WaitForRequest { target: request.target, timeout_ms: 60_000, ..Default::default() };
    let mut progress = fleet.wait_for(wait).await.unwrap().into_inner();
    loop {
        tokio::select! {
            event = events.next() => panic!("{event:?}"),
            message = progress.message() => {
                if message.unwrap().unwrap().outcome() == v1::wait_for_response::Outcome::Done {
                    break;
                }
            }
        }
    }
}
