//! How long it takes until ten thousand objects are served again when an instance is killed, or stops.
//!
//! `cargo run --release -p ctkit --example shares`

#![allow(clippy::print_stdout, reason = "figures for people")]

use std::{collections::HashMap, sync::Arc, time::Duration};

use ctkit::{
    Action, Context, Controller, Draft, Failure, InstanceId, Instances, Manager, Object, Reactor, Source, Store,
};
use nimbus_core::PublisherId;
use nimbus_store::{Op, Txn};
use parking_lot::Mutex;
use tokio::{sync::oneshot, task::JoinHandle, time::Instant};

/// How many objects there are, and for how long a lease lasts.
const OBJECTS: usize = 10_000;
const TTL: Duration = Duration::from_secs(3);

#[derive(Clone, PartialEq, prost::Message)]
struct Policy {
    #[prost(string, tag = "1")]
    text: String,
}

impl prost::Name for Policy {
    const NAME: &'static str = "Policy";
    const PACKAGE: &'static str = "shares.v1";
}

/// What is published for a policy.
#[derive(Clone, PartialEq, prost::Message)]
struct Rules {
    #[prost(string, tag = "1")]
    text: String,
}

impl prost::Name for Rules {
    const NAME: &'static str = "Rules";
    const PACKAGE: &'static str = "shares.v1";
}

/// Who reacts to what right now, and who reacted last.
#[derive(Clone, Default)]
struct Board(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    running: HashMap<String, u32>,
    last: HashMap<String, (&'static str, Instant)>,
    reactions: usize,
    doubles: usize,
}

struct Worker(Board, &'static str);

/// A reaction under way.
struct UnderWay<'a>(&'a Worker, String);

impl Reactor<Policy> for Worker {
    async fn on_apply(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        let _under_way = self.begin(policy.name());
        tokio::time::sleep(Duration::from_millis(5)).await;
        let rules = Rules { text: policy.spec.text.clone() };
        cx.publish(Object::derived(&policy, "rules", rules)).await?;
        Ok(Action::done())
    }
}

impl Worker {
    fn begin(&self, name: &str) -> UnderWay<'_> {
        let mut board = self.0.0.lock();
        board.reactions += 1;
        let running = board.running.entry(name.to_owned()).or_default();
        *running += 1;
        let double = *running > 1;
        board.doubles += usize::from(double);
        board.last.insert(name.to_owned(), (self.1, Instant::now()));
        UnderWay(self, name.to_owned())
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        *self.0.0.0.lock().running.entry(std::mem::take(&mut self.1)).or_default() -= 1;
    }
}

/// An instance that runs, and what stops it.
struct Instance(JoinHandle<()>, oneshot::Sender<()>);

fn instance(store: &Store, board: &Board, name: &'static str) -> Instance {
    let manager = Manager::builder(store.clone())
        .instances(Instances::sharded("policies").ttl(TTL).instance(InstanceId::new(name)))
        .controller(Controller::new(Worker(board.clone(), name)).named("policies").publishes::<Rules>())
        .build()
        .expect("names and numbers are fine");
    let (stop, stopped) = oneshot::channel();
    let run = manager.run_until(async { drop(stopped.await) });
    Instance(tokio::spawn(async move { run.await.expect("no bus is served") }), stop)
}

/// Waits until all objects of an instance were reacted to by others since; says how many, and how long it took.
async fn taken_over(board: &Board, from: &'static str, since: Instant) -> (usize, Duration) {
    let of: Vec<String> = {
        let board = board.0.lock();
        board
            .last
            .iter()
            .filter(|(_, (by, _))| *by == from)
            .map(|(name, _)| name.clone())
            .collect()
    };
    loop {
        let times = {
            let board = board.0.lock();
            let time = |name: &String| board.last.get(name).filter(|(by, _)| *by != from).map(|(_, at)| *at);
            of.iter().map(time).collect::<Option<Vec<_>>>()
        };
        if let Some(times) = times {
            return (of.len(), times.into_iter().max().unwrap_or(since) - since);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn all_served(board: &Board) {
    while board.0.lock().last.len() < OBJECTS {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Until instances have divided everything evenly among them.
    tokio::time::sleep(TTL).await;
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (store, board) = (Store::in_memory(), Board::default());
    for n in 0..OBJECTS {
        let spec = Policy { text: n.to_string() };
        let draft = nimbus_store::Draft::try_from(Draft::new(&format!("p{n}"), spec))?;
        let publisher = PublisherId::new("user")?;
        let txn = Txn { publisher, fence: 0, leases: Vec::new(), steps: vec![Op::Upsert(draft).into()] };
        Source::commit(&store, txn).await?;
    }
    let [a, b] = ["a", "b"].map(|name| instance(&store, &board, name));
    all_served(&board).await;

    let killed = Instant::now();
    a.0.abort();
    let (objects, took) = taken_over(&board, "a", killed).await;
    println!("killed:  {objects} objects served again after {took:?} (leases last {TTL:?})");

    let joined = Instant::now();
    let c = instance(&store, &board, "c");
    while !board.0.lock().last.values().any(|(by, _)| *by == "c") {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!("joined:  first object served by the new instance after {:?}", joined.elapsed());
    tokio::time::sleep(TTL * 2).await;

    let stopped = Instant::now();
    // An error means that it has stopped already.
    let _ = b.1.send(());
    let (objects, took) = taken_over(&board, "b", stopped).await;
    println!("stopped: {objects} objects served again after {took:?}");
    b.0.await?;
    let _ = c.1.send(());
    c.0.await?;

    let board = board.0.lock();
    println!("{} reactions, {} of them double", board.reactions, board.doubles);
    Ok(())
}
