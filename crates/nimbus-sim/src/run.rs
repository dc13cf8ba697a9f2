//! One run: everything that follows from one seed.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use mad_turmoil::rand::get_rng;
use nimbus_agent::Link;
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use turmoil::Sim;

use crate::{
    case::Case,
    faults::{self, Fault, Planned},
    hosts,
    machine::Machine,
    model::Key,
    net::Line,
    outcome::Outcome,
    setup::{API, BUS, CONTROLLERS, PUBLISHERS, RIVALS, Setup, USER, servers},
    world::{Phase, World},
};

/// A simulation and all that is needed to steer it.
struct Run<'a> {
    sim: Sim<'a>,
    world: World,
    setup: Setup,
    lines: BTreeMap<String, Line>,
    /// Hosts that are down, and links that are not as they should be.
    undo: Vec<(Duration, Fault)>,
    /// How many were inflicted, of each sort.
    faults: BTreeMap<&'static str, u64>,
    rounds: u64,
}

/// How much has happened so far.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Figures {
    /// How often everything failed and came to rest again.
    pub rounds: u64,
    /// Things that somebody did or saw.
    pub events: u64,
    /// Faults that were inflicted.
    pub faults: u64,
    /// Objects that were written.
    pub writes: u64,
    /// How long it would have taken.
    pub time: Duration,
    /// Things that are kept for judging what comes.
    pub kept: usize,
}

/// So many rounds take place on one network. It keeps something for every connection that nobody has taken, and has no more than
/// so many numbers for them.
const NETWORK: u64 = 20;

const TICK: Duration = Duration::from_millis(5);

/// Nothing takes longer once nothing fails any more.
const SETTLES: Duration = Duration::from_secs(150);

/// Long enough for whatever would happen without a reason.
const QUIET: Duration = Duration::from_secs(12);

/// Runs everything that follows from a seed, in this process, of which it must be the first and only run.
pub(crate) fn run(case: &Case, directory: PathBuf, mut go_on: impl FnMut(&Figures) -> bool) -> anyhow::Result<Outcome> {
    let mut setup = Setup::new(case.seed, directory);
    let mut rng = schedule_rng(case.seed);
    let mut left = Some(schedule_of(case, &setup, &mut rng));
    setup.chaos = case.chaos.unwrap_or(setup.chaos);
    let world = World::new(setup.clone());
    let mut run = Run::new(world.clone(), setup);
    let (ended, schedule) = loop {
        // Whoever leaves faults out looks at one round only.
        let schedule = left.take().unwrap_or_else(|| faults::schedule(&run.setup, &mut rng));
        let ended = run.round(&schedule);
        let inner = world.lock();
        let figures = Figures {
            rounds: run.rounds,
            events: inner.count,
            faults: run.faults.values().sum(),
            writes: inner.writes,
            time: inner.elapsed(),
            kept: inner.kept(),
        };
        let over = inner.violation.is_some();
        drop(inner);
        if ended.is_err() || over || !go_on(&figures) {
            break (ended, schedule);
        }
        run.again();
    };
    let (time, faults) = (run.elapsed(), std::mem::take(&mut run.faults));
    drop(run);
    let mut world = world.lock();
    if let Err(error) = ended {
        world.violate("simulation", "Isolated", &error.to_string());
    }
    Ok(Outcome::new(&mut world, &schedule, time, faults))
}

/// What goes wrong in a case, as far as it is not left out.
pub(crate) fn schedule(case: &Case) -> Vec<Planned> {
    schedule_of(case, &Setup::new(case.seed, PathBuf::new()), &mut schedule_rng(case.seed))
}

fn schedule_of(case: &Case, setup: &Setup, rng: &mut SmallRng) -> Vec<Planned> {
    let is_left = |planned: &Planned| {
        case.faults.as_ref().is_none_or(|left| left.contains(&planned.number))
            && case.chaos.is_none_or(|chaos| planned.at < chaos)
    };
    faults::schedule(setup, rng).into_iter().filter(is_left).collect()
}

fn schedule_rng(seed: u64) -> SmallRng {
    SmallRng::seed_from_u64(seed.rotate_left(17))
}

/// A network with everybody on it.
fn network(world: &World, setup: &Setup, lines: &BTreeMap<String, Line>, seed: u64) -> Sim<'static> {
    let mut builder = turmoil::Builder::new();
    builder
        .rng_seed(seed)
        .tick_duration(TICK)
        .simulation_duration(Duration::from_secs(1 << 32))
        .min_message_latency(Duration::from_millis(1))
        .max_message_latency(setup.latency)
        .tcp_capacity(1 << 16);
    if setup.order {
        builder.enable_random_order();
    }
    let mut sim = builder.build();
    for name in [BUS, API] {
        let world = world.clone();
        sim.host(name, move || hosts::bus::run(world.clone(), name));
    }
    for agent in &setup.agents {
        let (world, setup, line) = (world.clone(), agent.clone(), lines[&agent.name].clone());
        sim.host(agent.name.as_str(), move || hosts::agent::run(world.clone(), setup.clone(), line.clone()));
    }
    for reader in &setup.readers {
        let (world, setup, line) = (world.clone(), reader.clone(), lines[&reader.name].clone());
        sim.host(reader.name.as_str(), move || hosts::reader::run(world.clone(), setup.clone(), line.clone()));
    }
    for name in PUBLISHERS {
        let (world, line) = (world.clone(), lines[name].clone());
        sim.host(name, move || hosts::publisher::run(world.clone(), name, line.clone()));
    }
    for name in RIVALS {
        let (world, line) = (world.clone(), lines[name].clone());
        sim.host(name, move || hosts::rival::run(world.clone(), name, line.clone()));
    }
    for name in CONTROLLERS {
        let (world, line) = (world.clone(), lines[name].clone());
        sim.host(name, move || hosts::controller::run(world.clone(), name, line.clone()));
    }
    let (user, line) = (world.clone(), lines[USER].clone());
    sim.host(USER, move || hosts::user::run(user.clone(), line.clone()));
    sim
}

// === impl Run ===

impl Run<'_> {
    fn new(world: World, setup: Setup) -> Self {
        let lines: BTreeMap<_, _> = setup.clients().into_iter().map(|name| (name, Line::new())).collect();
        for agent in &setup.agents {
            world.lock().machines.insert(agent.name.clone(), Machine::new(agent));
        }
        let sim = network(&world, &setup, &lines, setup.seed);
        Self { sim, world, setup, lines, undo: Vec::new(), faults: BTreeMap::new(), rounds: 1 }
    }

    /// Everything fails for a while, then nothing does, and then everything is restarted.
    fn round(&mut self, schedule: &[Planned]) -> turmoil::Result {
        let begun = self.elapsed();
        let mut schedule = schedule.iter();
        let mut next = schedule.next();
        while self.elapsed() - begun < self.setup.chaos {
            while let Some(planned) = next.filter(|planned| planned.at <= self.elapsed() - begun) {
                self.inflict(planned);
                next = schedule.next();
            }
            self.heal(false);
            if self.step()? {
                return Ok(());
            }
        }
        self.heal(true);
        self.world.lock().phase = Phase::Settling;
        self.world.note("simulation", "nothing fails any more");
        if !self.settle()? {
            return Ok(());
        }
        {
            let mut world = self.world.lock();
            world.phase = Phase::Steady;
            world.policies.begin_steady();
        }
        self.world.note("simulation", "nothing fails, and everything is written once more");
        if !self.settle()? {
            return Ok(());
        }
        let judged = self.world.lock().policies.judge_calls();
        if let Err((property, what)) = judged {
            self.world.violate("controllers", property, &what);
            return Ok(());
        }
        self.world.lock().phase = Phase::Quiet;
        self.world.note("simulation", "everything is restarted, and nothing may change");
        for host in [BUS, API].map(str::to_owned).into_iter().chain(self.setup.clients()) {
            // Readers and agents that forget are sent everything again, and so they should.
            let forgets = self.setup.readers.iter().any(|reader| reader.name == host)
                || self.setup.agents.iter().any(|agent| agent.name == host && !agent.cache);
            if !forgets {
                self.sim.bounce(host.as_str());
            }
        }
        let end = self.elapsed() + QUIET;
        while self.elapsed() < end {
            if self.step()? {
                return Ok(());
            }
        }
        self.settle()?;
        Ok(())
    }

    /// Everything begins to fail again.
    fn again(&mut self) {
        self.rounds += 1;
        if self.rounds.is_multiple_of(NETWORK) {
            self.renew();
        }
        let mut world = self.world.lock();
        world.phase = Phase::Chaos;
        world.done.clear();
        world.policies.done = false;
        world.forget();
    }

    /// Everybody dies, and is started again on another network.
    fn renew(&mut self) {
        let begun = self.elapsed();
        self.world.lock().begun = begun;
        self.world.note("simulation", "everybody dies, and so does the network");
        self.sim = network(&self.world, &self.setup, &self.lines, self.setup.seed.wrapping_add(self.rounds));
    }

    /// How long everything has taken so far.
    fn elapsed(&self) -> Duration {
        let begun = self.world.lock().begun;
        begun + self.sim.elapsed()
    }

    /// Whether something was wrong.
    fn step(&mut self) -> Result<bool, Box<dyn std::error::Error>> {
        self.sim.step()?;
        let now = self.elapsed();
        let mut world = self.world.lock();
        world.now = now;
        // Who takes one number more than in another run shows here, whatever comes of it.
        world.count_in(get_rng().next_u64());
        Ok(world.violation.is_some())
    }

    fn inflict(&mut self, planned: &Planned) {
        *self.faults.entry(planned.fault.sort()).or_default() += 1;
        self.world.note("fault", planned.fault.to_string());
        let until = self.elapsed() + planned.lasts;
        match &planned.fault {
            Fault::Crash(host) => {
                if !self.sim.is_host_running(host.as_str()) {
                    return;
                }
                self.sim.crash(host.as_str());
            }
            Fault::Stop => self.world.lock().stopping = true,
            Fault::Partition(host) => self.links(host, |sim, host, server| sim.partition(host, server)),
            Fault::OneWay(from, to) => self.sim.partition_oneway(from.as_str(), to.as_str()),
            Fault::Hold(host) => self.links(host, |sim, host, server| sim.hold(host, server)),
            Fault::Delay(host, delay) => {
                self.links(host, |sim, host, server| sim.set_link_latency(host, server, *delay));
            }
            Fault::Reset(host) => return self.lines[host].reset(),
            Fault::Relabel(host, zone) => {
                if let Some(machine) = self.world.lock().machines.get_mut(host) {
                    machine.zones.push(zone);
                }
                return;
            }
            Fault::Jump(host, by) => {
                *self.world.lock().jumps.entry(host.clone()).or_default() += *by;
                return;
            }
            Fault::Stall(host) => drop(self.world.lock().stalled.insert(host.clone())),
        }
        self.undo.push((until, planned.fault.clone()));
    }

    /// Does something to every link that a host needs.
    fn links(&self, host: &str, change: impl Fn(&Sim<'_>, &str, &str)) {
        servers(host).iter().for_each(|server| change(&self.sim, host, server));
    }

    /// Ends the faults that are over, or all of them.
    fn heal(&mut self, all: bool) {
        let now = self.elapsed();
        let (over, lasting) = std::mem::take(&mut self.undo).into_iter().partition(|(until, _)| all || *until <= now);
        self.undo = lasting;
        let over: Vec<(Duration, Fault)> = over;
        for (_, fault) in over {
            match fault {
                Fault::Crash(host) => {
                    if !self.sim.is_host_running(host.as_str()) {
                        self.sim.bounce(host.as_str());
                    }
                }
                Fault::Stop => {
                    self.world.lock().stopping = false;
                    self.sim.bounce(BUS);
                }
                Fault::Partition(host) => self.links(&host, |sim, host, server| sim.repair(host, server)),
                Fault::OneWay(from, to) => self.sim.repair_oneway(from.as_str(), to.as_str()),
                Fault::Hold(host) => self.links(&host, |sim, host, server| sim.release(host, server)),
                Fault::Delay(host, _) => {
                    let latency = self.setup.latency;
                    self.links(&host, |sim, host, server| {
                        sim.set_link_latency(host, server, Duration::from_millis(1));
                        sim.set_link_max_message_latency(host, server, latency);
                    });
                }
                Fault::Stall(host) => drop(self.world.lock().stalled.remove(&host)),
                Fault::Reset(_) | Fault::Relabel(..) | Fault::Jump(..) => {}
            }
        }
        if all {
            for host in self.setup.clients() {
                self.links(&host, |sim, host, server| sim.repair(host, server));
            }
        }
    }

    /// Waits until everybody has exactly what they should; false if something was wrong.
    fn settle(&mut self) -> Result<bool, Box<dyn std::error::Error>> {
        let end = self.elapsed() + SETTLES;
        // Since when everybody has everything.
        let mut since = None;
        loop {
            for _ in 0..20 {
                if self.step()? {
                    return Ok(false);
                }
            }
            let missing = self.missing();
            since = if missing.is_none() { since.or(Some(self.elapsed())) } else { None };
            let Some(missing) = missing.or_else(|| self.busy(since)) else { break };
            if self.elapsed() > end {
                self.world.violate("simulation", "Converges", &missing);
                return Ok(false);
            }
        }
        let mismatch = {
            let world = self.world.lock();
            world.handles.iter().find_map(|(name, handle)| {
                let mismatches = handle.status().mismatches;
                (mismatches > 0)
                    .then(|| (name.clone(), format!("held something else than the bus, {mismatches} times")))
            })
        };
        if let Some((name, what)) = mismatch {
            self.world.violate(&name, "Reliable", &what);
            return Ok(false);
        }
        self.world.note("simulation", "everybody has everything");
        Ok(true)
    }

    /// A controller that has not been at rest since, or that nobody leads. Whatever it is about to do would count as if it were
    /// because of what comes next.
    fn busy(&self, since: Option<Duration>) -> Option<String> {
        let world = self.world.lock();
        let rested = |name: &str| world.rested.get(name).filter(|(at, _)| Some(*at) >= since);
        if let Some(name) = CONTROLLERS.into_iter().find(|name| rested(name).is_none()) {
            return Some(format!("{name} always has something left to do"));
        }
        let leads = CONTROLLERS.into_iter().filter_map(rested).any(|(_, leads)| *leads);
        (!leads).then(|| "no controller leads".to_owned())
    }

    /// What is not as it should be in the end.
    fn missing(&self) -> Option<String> {
        let world = self.world.lock();
        if let Some(publisher) = PUBLISHERS.iter().find(|&&name| !world.done.contains(name)) {
            return Some(format!("{publisher} has not written everything"));
        }
        if !world.policies.done {
            return Some("the user has not written everything".to_owned());
        }
        match &world.api {
            None => return Some("nobody knows what the user has written".to_owned()),
            Some(state) => {
                if let Some(what) = world.policies.differs_at(state) {
                    return Some(what);
                }
            }
        }
        for (name, reader) in &world.readers {
            if let Some(what) = differs(&world.model.expected(&reader.viewer), &reader.held) {
                return Some(format!("{name}: {what}"));
            }
            if !reader.exact {
                return Some(format!("{name} has no position"));
            }
        }
        for (name, machine) in &world.machines {
            let expected = world.model.expected(&machine.viewer(machine.zone()));
            if let Some(what) = differs(&expected, &machine.applied()) {
                return Some(format!("{name}: {what}"));
            }
            if let Some(key) = machine.remains().find(|key| !expected.contains_key(key)) {
                return Some(format!("{name}: apply of {key} was begun, and it was never removed"));
            }
            if let Some(what) = world.policies.differs(machine.rules.values()) {
                return Some(format!("{name}: {what}"));
            }
            let status = world.handles.get(name)?.status();
            if status.link != Link::InSync || status.unfinished > 0 || !machine.busy().is_empty() {
                return Some(format!("{name} has not finished: {status:?}"));
            }
        }
        None
    }
}

fn differs(expected: &BTreeMap<Key, u64>, held: &BTreeMap<Key, u64>) -> Option<String> {
    let told = |number: Option<&u64>| number.map_or_else(|| "absent".to_owned(), |number| format!("write {number}"));
    let different = |key: &&Key| expected.get(*key) != held.get(*key);
    let key = expected.keys().chain(held.keys()).find(different)?;
    Some(format!("{key} is {}, but should be {}", told(held.get(key)), told(expected.get(key))))
}
