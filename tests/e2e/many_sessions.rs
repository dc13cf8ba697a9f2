//! One agent that connects again and again.

use nimbus_wire::v1::{self, frame::Frame};
use tokio::task::JoinSet;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::{
    honest::{World, expect_refusal},
    wait,
};

const CONNECTIONS: usize = 10;
const SESSIONS: usize = 1_000;

/// On each connection: few enough that requests follow their headers before the bus has waited long for them, on any machine.
const AT_ONCE: usize = 50;

fn subscribe() -> v1::SubscribeRequest {
    v1::SubscribeRequest { agent: "restless".to_owned(), ..v1::SubscribeRequest::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_ten_thousand_sessions_of_one_agent_only_the_last_one_stays() {
    let mut world = World::new().await;
    let mut connections = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (reader, _) = world.bus.clients().await;
        connections.spawn(async move {
            let (mut opening, mut opened) = (JoinSet::new(), Vec::new());
            for _ in 0..SESSIONS {
                if opening.len() == AT_ONCE {
                    opened.push(opening.join_next().await.expect("some are opening").unwrap());
                }
                let mut reader = reader.clone();
                opening.spawn(async move { reader.subscribe(subscribe()).await.unwrap().into_inner() });
            }
            opened.extend(opening.join_all().await);
            opened
        });
    }
    let opened = wait::for_it("ten thousand sessions", connections.join_all()).await;
    let mut last = world.reader.subscribe(subscribe()).await.unwrap().into_inner();

    let mut sessions = std::collections::HashSet::new();
    for mut frames in opened.into_iter().flatten() {
        let ended = loop {
            match wait::for_it("an older session to end", frames.message()).await {
                Ok(Some(v1::Frame { frame: Some(Frame::Welcome(welcome)) })) => drop(sessions.insert(welcome.session)),
                Ok(Some(_)) => {}
                other => break other.map(drop),
            }
        };
        let status = expect_refusal(ended, Code::Aborted, &["a newer session", "of the same agent has taken over"]);
        assert_eq!(status.get_details_error_info().unwrap().reason, "SUPERSEDED");
    }
    let total = i64::try_from(CONNECTIONS * SESSIONS).unwrap();
    assert_eq!(world.bus.metric("nimbus_bus_sessions_superseded_total"), total);
    let bus = &world.bus;
    wait::until("one session beside the honest one", || bus.metric("nimbus_bus_sessions") == 2).await;
    assert_eq!(world.bus.refusals("sessions"), 0);

    world.goes_on().await;
    let mut seen = Vec::new();
    while !seen.contains(&"beat".to_owned()) {
        let frame = wait::for_it("what the last session is sent", last.message()).await.unwrap().unwrap();
        if let Some(Frame::Batch(batch)) = frame.frame {
            seen.extend(batch.events.into_iter().filter_map(|event| match event.change {
                Some(v1::event::Change::Put(object)) => Some(object.name),
                _ => None,
            }));
        }
    }
}
