//! Instances of one controller around one lease table, in virtual time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    InstanceId, Instances, Shard, ShardEvent, ShardEvents, Shares,
    instances::tests::{
        lease_table::{CONTROLLER, LeaseTable},
        link::Link,
        pausable::{Pausable, Pause},
    },
};

/// Instances of one controller around one lease table, in virtual time.
pub(crate) struct World {
    pub(crate) table: Arc<LeaseTable>,
    pub(crate) instances: Vec<Process>,
    pub(crate) shards: u32,
    /// How long the controllers take to finish what runs.
    pub(crate) drain: Duration,
    pub(crate) margin: Duration,
    pub(crate) tick: Duration,
    seed: u64,
    started: u64,
    tokens: BTreeMap<Shard, (String, u64)>,
    /// Shards without an instance, multiplied by time.
    pub(crate) unserved: Duration,
}

/// One instance.
pub(crate) struct Process {
    pub(crate) id: String,
    pub(crate) shares: Shares,
    pub(crate) link: Arc<Link>,
    pub(crate) pause: Pause,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

pub(crate) const TTL: Duration = Duration::from_secs(15);

/// How often the world looks at itself, unless a test says otherwise.
const TICK: Duration = Duration::from_millis(10);

// === impl World ===

impl World {
    pub(crate) fn new(shards: u32, seed: u64) -> Self {
        Self {
            table: Arc::default(),
            instances: Vec::new(),
            shards,
            drain: Duration::from_millis(100),
            margin: TTL / 5,
            tick: TICK,
            seed,
            started: 0,
            tokens: BTreeMap::new(),
            unserved: Duration::ZERO,
        }
    }

    /// A world in which so many instances have divided the shards.
    pub(crate) async fn settled(shards: u32, instances: usize) -> Self {
        let mut world = Self::new(shards, 1);
        for _ in 0..instances {
            world.start();
        }
        world.run(TTL).await;
        world.assert_settled();
        world
    }

    pub(crate) fn start(&mut self) -> usize {
        self.started += 1;
        let id = format!("i{}", self.started);
        let seed = self.seed * 1000 + self.started;
        let link = Link::new(self.table.clone(), seed);
        let instances = Instances::sharded(CONTROLLER).shards(self.shards).ttl(TTL).margin(self.margin);
        let (shares, events, keeper) = instances.instance(InstanceId::new(&id)).seed(seed).build(link.clone()).unwrap();
        self.table.witness(&id, shares.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let drain = self.drain;
        let process = async move {
            let stopped = async {
                // An error would mean that the world has ended.
                let _ = stopped.await;
            };
            tokio::join!(keeper.run_until(stopped), control(events, drain));
        };
        let pause = Pause::default();
        let task = tokio::spawn(Pausable { process: Box::pin(process), pause: pause.clone() });
        self.instances.push(Process { id, shares, link, pause, stop: Some(stop), task });
        self.instances.len() - 1
    }

    pub(crate) fn stop(&mut self, index: usize) {
        if let Some(stop) = self.instances[index].stop.take() {
            stop.send(()).unwrap();
        }
    }

    pub(crate) fn is_stopping(&self, index: usize) -> bool {
        self.instances[index].stop.is_none()
    }

    /// Ends a process without giving it time for anything.
    pub(crate) fn kill(&mut self, index: usize) {
        let process = self.instances.remove(index);
        process.task.abort();
        self.table.forget(&process.id);
    }

    /// Lets time pass, and looks at every tick whether all is well.
    pub(crate) async fn run(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            sleep(self.tick).await;
            self.check();
        }
    }

    /// Lets time pass until something is true, and says how much.
    pub(crate) async fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&Self) -> bool) -> Duration {
        let begin = Instant::now();
        while !done(self) {
            assert!(begin.elapsed() < limit, "it has not come true within {limit:?}");
            sleep(self.tick).await;
            self.check();
        }
        begin.elapsed()
    }

    /// Who may act on each shard at this instant.
    pub(crate) fn owners(&self) -> Vec<Option<String>> {
        (0..self.shards).map(Shard::new).map(|shard| self.owner(shard)).collect()
    }

    pub(crate) fn is_served(&self) -> bool {
        self.owners().iter().all(Option::is_some)
    }

    /// All shards are served, by all instances alike.
    pub(crate) fn assert_settled(&self) {
        let owners = self.owners();
        assert!(self.is_served(), "{owners:?}");
        let mut counts: BTreeMap<&str, usize> = self.instances.iter().map(|process| (&*process.id, 0)).collect();
        for owner in owners.iter().flatten() {
            *counts.get_mut(owner.as_str()).unwrap() += 1;
        }
        let (least, most) = (counts.values().min().unwrap(), counts.values().max().unwrap());
        assert!(most - least <= 1, "{counts:?}");
    }

    fn owner(&self, shard: Shard) -> Option<String> {
        self.instances
            .iter()
            .find(|process| process.shares.permit(shard).is_some())
            .map(|process| process.id.clone())
    }

    /// At most one instance may act on a shard, and the table agrees with it; tokens rise.
    fn check(&mut self) {
        assert_eq!(self.table.violations(), Vec::<String>::new());
        for shard in (0..self.shards).map(Shard::new) {
            let mut permitted = Vec::new();
            for process in &self.instances {
                permitted.extend(process.shares.permit(shard).map(|permit| (process.id.clone(), permit)));
            }
            assert!(permitted.len() <= 1, "shard {shard}: {permitted:?}");
            let Some((id, permit)) = permitted.pop() else {
                self.unserved += self.tick;
                continue;
            };
            let guard = permit.guard().unwrap();
            assert!(self.table.accepts(guard), "{id} would be refused with {guard:?}");
            let (last_id, last) = self.tokens.entry(shard).or_insert_with(|| (id.clone(), guard.token));
            assert!(*last < guard.token || (*last == guard.token && *last_id == id), "{last} then {}", guard.token);
            (*last_id, *last) = (id, guard.token);
        }
        let gone: BTreeSet<usize> = self
            .instances
            .iter()
            .enumerate()
            .filter_map(|(index, process)| process.task.is_finished().then_some(index))
            .collect();
        for index in gone.into_iter().rev() {
            assert!(self.is_stopping(index), "{} ended by itself", self.instances[index].id);
            let process = self.instances.remove(index);
            self.table.forget(&process.id);
        }
    }
}

/// A controller whose reactions take a while to end.
async fn control(mut events: ShardEvents, drain: Duration) {
    let mut ours = BTreeSet::new();
    let mut draining: BTreeMap<Shard, Instant> = BTreeMap::new();
    loop {
        let next = draining.iter().min_by_key(|(_, at)| **at).map(|(shard, at)| (*shard, *at));
        tokio::select! {
            event = events.next() => match event {
                Some(ShardEvent::Gained(shard, _)) => assert!(ours.insert(shard), "gained twice"),
                Some(ShardEvent::Drain(shard)) => {
                    assert!(ours.contains(&shard), "drain of nothing");
                    draining.insert(shard, Instant::now() + drain);
                }
                Some(ShardEvent::Lost(shard)) => {
                    assert!(ours.remove(&shard), "lost nothing");
                    draining.remove(&shard);
                }
                None => break,
            },
            () = sleep_until(next.map_or_else(Instant::now, |(_, at)| at)), if next.is_some() => {
                if let Some((shard, _)) = next {
                    draining.remove(&shard);
                    ours.remove(&shard);
                    events.drained(shard);
                }
            }
        }
    }
    assert_eq!(ours, BTreeSet::new(), "everything was taken back before the end");
}
