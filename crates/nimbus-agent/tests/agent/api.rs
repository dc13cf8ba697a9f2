//! What users write.

use std::{io, pin::Pin, sync::Arc};

use nimbus_agent::{Agent, BuildError, Connector, Io, Replace, Status, functions};
use parking_lot::Mutex;

use crate::{
    recorder::{Alpha, Beta, Recorder},
    world::{Net, World, alpha, alpha_key, delete, put},
};

#[tokio::test(start_paused = true)]
async fn closures_are_handlers_too() {
    let world = World::start();
    world.sync(vec![alpha("x", "1")]).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (applied, removed) = (seen.clone(), seen.clone());
    let handler = functions::<Alpha, _, _, _, _>(
        move |cx, object| {
            applied
                .lock()
                .push(format!("{} applies {}={}", cx.agent(), object.name(), object.spec.value));
            async { Ok(Status::applied()) }
        },
        move |_, object| {
            removed.lock().push(format!("removes {}", object.name()));
            async { Ok(()) }
        },
    );
    let mut agent = world.run(Agent::builder("a", "bus").connector(world.net.clone()).handle(handler));
    agent.settled().await;
    world.delete(alpha_key("x")).await;
    agent.until(|status| status.objects == 0 && status.unfinished == 0).await;
    assert_eq!(*seen.lock(), ["a applies x=1", "removes x"]);
    agent.stop().await;
}

/// One struct may handle several kinds, and know the version that it applied before.
#[tokio::test(start_paused = true)]
async fn a_handler_is_told_what_it_applied_before() {
    let world = World::start();
    world.sync(vec![alpha("x", "1")]).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let applied = seen.clone();
    let handler = functions::<Alpha, _, _, _, _>(
        move |cx, object| {
            let previous = cx.previous::<Alpha>().map(|previous| previous.spec.value);
            applied.lock().push((previous, object.spec.value.clone()));
            async { Ok(Status::applied()) }
        },
        |_, _| async { Ok(()) },
    );
    let mut agent = world.run(Agent::builder("a", "bus").connector(world.net.clone()).handle(Arc::new(handler)));
    agent.settled().await;
    world.put(alpha("x", "2")).await;
    agent
        .until(|status| status.position.is_some_and(|at| at.revision.0 == 2) && status.unfinished == 0)
        .await;
    assert_eq!(*seen.lock(), [(None, "1".to_owned()), (Some("1".to_owned()), "2".to_owned())]);
    agent.stop().await;
}

/// Connects to one host only.
struct Choosy(Net, Arc<Mutex<Vec<String>>>);

impl Connector for Choosy {
    fn connect(&self, host: &str, port: u16) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send>> {
        self.1.lock().push(format!("{host}:{port}"));
        if host == "good" {
            return self.0.connect(host, port);
        }
        Box::pin(async { Err(io::Error::new(io::ErrorKind::ConnectionRefused, "nobody listens")) })
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_cannot_be_reached_is_passed_over_for_the_next() {
    let world = World::start();
    world.sync(vec![alpha("x", "1")]).await;
    let (recorder, dialled) = (Recorder::default(), Arc::default());
    let builder = Agent::builder("a", "http://bad")
        .endpoint("http://worse:1")
        .endpoint("http://good:7")
        .connector(Choosy(world.net.clone(), Arc::clone(&dialled)))
        .handle::<Alpha, _>(recorder.clone());
    let mut agent = world.run(builder);
    agent.settled().await;
    assert_eq!(dialled.lock().last().unwrap(), "good:7");
    agent.stop().await;
}

/// F34: the old one goes when the new one is there, and not if the new one fails.
#[tokio::test(start_paused = true)]
async fn make_before_break_removes_the_old_one_only_when_the_new_one_is_there() {
    let world = World::start();
    world.sync(vec![alpha("old", "1")]).await;
    let recorder = Recorder::default();
    let builder = world.builder("a", &recorder).replace::<Alpha>(Replace::MakeBeforeBreak);
    let mut agent = world.run(builder);
    agent.settled().await;
    let gate = recorder.gate("new");
    recorder.take_calls();
    world.apply(vec![put(alpha("new", "1")), delete(&alpha_key("old"))]).await;
    recorder.until(|calls| calls.iter().any(|call| call.starts_with("apply Alpha/new"))).await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!(recorder.world().keys().collect::<Vec<_>>(), ["Alpha/old"], "the old one is still there");
    gate.add_permits(1);
    agent.settled().await;
    let calls = recorder.take_calls();
    let at = |wanted: &str| calls.iter().position(|call| call == wanted).unwrap();
    assert!(at("applied Alpha/new=1") < at("remove Alpha/old"), "{calls:?}");
    agent.stop().await;
}

#[test]
fn what_cannot_work_is_said_when_the_agent_is_built() {
    fn check(builder: nimbus_agent::AgentBuilder, expected: &str) {
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains(expected), "{error:?} does not say {expected:?}");
    }
    let recorder = Recorder::default();
    let good = || Agent::builder("a", "http://bus:7400").handle::<Beta, _>(recorder.clone());
    assert!(good().build().is_ok());
    let wrong_name = Agent::builder("not a name", "http://bus").handle::<Beta, _>(recorder.clone());
    check(wrong_name, "agent id \"not a name\"");
    check(good().endpoint("https://bus"), "TLS is not supported yet");
    check(good().endpoint("ftp://bus"), "expected one such as http://127.0.0.1:7400");
    check(good().endpoint("http://bus/path"), "expected one such as");
    check(good().label("zone", "a b"), "label");
    check(good().concurrency(0), "at least 1");
    assert!(matches!(Agent::builder("a", "http://bus").build(), Err(BuildError::NoHandlers)));
    assert!(Agent::builder("a", "http://bus").subscribe().is_err());
}
