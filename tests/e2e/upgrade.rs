//! A bus and its controllers are replaced one after the other, again and again, while users write and agents stay.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    machine::Machine,
    process::Process,
    server::Server,
    stopped::{ORDER, TASK, controller},
    user::User,
    wait,
};

/// A bus on a file, two instances of a controller, agents, and a user who writes at a steady rate.
struct Scene {
    folder: TempDir,
    address: String,
    bus: Option<Server>,
    instances: BTreeMap<&'static str, Process>,
    machines: Vec<Machine>,
    stop: watch::Sender<bool>,
    /// Writes that were acknowledged so far.
    written: watch::Receiver<u64>,
    writing: JoinHandle<User>,
}

/// Orders that are written again and again.
const ORDERS: u64 = 40;

/// One of so many writes is a delete.
const DELETES: u64 = 9;

const NAMES: [&str; 2] = ["blue", "green"];

/// What a line of the journal says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line<'a> {
    what: &'a str,
    instance: &'a str,
    order: &'a str,
}

// === impl Scene ===

impl Scene {
    async fn begin() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bus = serve("127.0.0.1:0", folder.path());
        let (url, address) = (bus.url(), bus.address.clone());
        let mut user = User::of(&url, ORDER);
        user.begin().await;
        let (stop, stopped) = watch::channel(false);
        let (written, count) = watch::channel(0);
        let machines = (0..3).map(|n| Machine::start(&format!("m{n}"), &url, TASK)).collect();
        let writing = tokio::spawn(write(user, stopped, written));
        let mut scene = Self {
            folder,
            address,
            bus: Some(bus),
            instances: BTreeMap::new(),
            machines,
            stop,
            written: count,
            writing,
        };
        NAMES.into_iter().for_each(|name| scene.start(name));
        scene
    }

    fn journal(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    fn start(&mut self, name: &'static str) {
        let flags = ["--lease", "2", "--takes", "0.005"];
        let instance = controller(&format!("http://{}", self.address), name, &self.journal(), &flags);
        self.instances.insert(name, instance);
    }

    /// Waits until so many more writes were acknowledged, and agents have something of what was written since.
    async fn go_on(&mut self, writes: u64) {
        let before: Vec<_> = self.machines.iter().map(Machine::applied).collect();
        let goal = *self.written.borrow() + writes;
        wait::for_long("more writes", self.written.wait_for(|written| *written >= goal))
            .await
            .unwrap();
        for (machine, before) in self.machines.iter().zip(before) {
            let moves = async {
                while machine.applied() == before {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            wait::for_long("agents that go on", moves).await;
        }
    }

    async fn restart_bus(&mut self) {
        let bus = self.bus.take().expect("it runs");
        let status = tokio::task::spawn_blocking(|| bus.stop()).await.unwrap();
        assert!(status.success(), "{status}");
        self.bus = Some(serve(&self.address, self.folder.path()));
    }

    async fn restart(&mut self, name: &'static str) {
        self.instances.remove(name).expect("it runs").stop().await;
        self.note("stopped", name);
        self.start(name);
    }

    /// Ends an instance without a chance to say anything, and starts it again.
    fn kill(&mut self, name: &'static str) {
        drop(self.instances.remove(name).expect("it runs"));
        self.note("killed", name);
        self.start(name);
    }

    /// What becomes of instances is in the journal, too.
    fn note(&self, what: &str, name: &str) {
        let mut journal = OpenOptions::new().append(true).open(self.journal()).unwrap();
        journal.write_all(format!("{what} {name} - - -\n").as_bytes()).unwrap();
    }

    /// Ends the writing, and checks everything.
    async fn end(mut self) {
        self.stop.send_replace(true);
        let mut orders = wait::for_long("the last write", &mut self.writing).await.unwrap();
        assert!(orders.retries > 0, "nobody noticed that the bus was away");
        // Every write that was acknowledged is there; and of each order, its task.
        assert_eq!(orders.list(ORDER).await, orders.wanted());
        for machine in &mut self.machines {
            machine.comes_to(&orders).await;
        }
        assert_eq!(orders.list(TASK).await, orders.wanted());
        for machine in &self.machines {
            check_order(machine);
        }
        let journal = fs::read_to_string(self.journal()).unwrap();
        check_journal(&journal);
    }
}

/// A bus on the file in this folder.
fn serve(listen: &str, folder: &Path) -> Server {
    let flags = ["--bookmark-interval", "0.3", "--drain", "0.2"];
    Server::start_in_on(listen, &folder.join("store.redb"), &flags)
}

/// Writes at a steady rate until it is told to stop; every write is another text.
async fn write(mut user: User, stopped: watch::Receiver<bool>, written: watch::Sender<u64>) -> User {
    let mut due = tokio::time::interval(Duration::from_millis(10));
    for number in 0.. {
        due.tick().await;
        if *stopped.borrow() {
            break;
        }
        let name = format!("order-{}", number * 7 % ORDERS);
        if number % DELETES == DELETES - 1 {
            user.delete([name]).await;
        } else {
            user.put([(name, format!("{number:06}"))]).await;
        }
        written.send_replace(number + 1);
    }
    user
}

/// Texts count up, so that an older one after a newer one is seen.
fn check_order(machine: &Machine) {
    for number in 0..ORDERS {
        let name = format!("order-{number}");
        let history = machine.history(&name);
        assert!(history.is_sorted(), "{name} went back: {history:?}");
    }
}

/// No order was ever reacted to by two at once, and whoever stopped had finished what it had begun. The same order may be looked at
/// twice: nothing follows from that, as agents prove.
fn check_journal(text: &str) {
    let lines: Vec<Line<'_>> = text.lines().map(Line::parse).collect();
    let mut under_way: BTreeMap<&str, &str> = BTreeMap::new();
    let mut ended = 0;
    for (number, Line { what, instance, order }) in lines.iter().enumerate() {
        let at = || format!("line {}: {:?}", number + 1, lines[number]);
        match *what {
            "begin" => {
                assert_eq!(under_way.insert(order, instance), None, "{}", at());
            }
            "end" => {
                ended += 1;
                assert_eq!(under_way.remove(order), Some(*instance), "{}", at());
            }
            "drop" => assert_eq!(under_way.remove(order), Some(*instance), "{}", at()),
            "stopped" | "killed" => {
                let was_busy = under_way.values().any(|other| other == instance);
                assert!(*what == "killed" || !was_busy, "it stopped in the middle: {}", at());
                under_way.retain(|_, other| other != instance);
            }
            other => panic!("{other}"),
        }
    }
    assert!(ended > 0);
}

// === impl Line ===

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Self {
        let [what, instance, order, _, _] = line.splitn(5, ' ').collect::<Vec<_>>()[..] else {
            panic!("a line of the journal is torn: {line:?}")
        };
        Self { what, instance, order }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_upgrade_under_load_loses_nothing_and_does_nothing_twice() {
    let mut scene = Scene::begin().await;
    for _ in 0..3 {
        scene.go_on(40).await;
        scene.restart_bus().await;
        scene.go_on(40).await;
        for name in NAMES {
            scene.restart(name).await;
            scene.go_on(40).await;
        }
    }
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn controllers_that_are_killed_under_load_lose_nothing() {
    let mut scene = Scene::begin().await;
    scene.go_on(40).await;
    // So that there is something to be noticed.
    scene.restart_bus().await;
    for _ in 0..2 {
        for name in NAMES {
            scene.kill(name);
            scene.go_on(40).await;
        }
    }
    scene.end().await;
}
