//! What a seed decides before anything happens.

use std::{path::PathBuf, time::Duration};

use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};

use crate::model::{KINDS, Viewer, ZONES};

/// What a seed decides before anything happens.
#[derive(Debug, Clone, Default)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    /// Where files are, if there are any.
    pub(crate) directory: PathBuf,
    /// The bus keeps everything in a file, or forgets everything when it dies.
    pub(crate) durable: bool,
    /// How long everybody writes, and everything fails.
    pub(crate) chaos: Duration,
    pub(crate) frame_bytes: usize,
    pub(crate) group_bytes: usize,
    pub(crate) tombstones: usize,
    /// Names for each publisher and kind.
    pub(crate) names: usize,
    /// Pauses between writes, in milliseconds.
    pub(crate) pause: u64,
    pub(crate) agents: Vec<AgentSetup>,
    pub(crate) readers: Vec<ReaderSetup>,
    pub(crate) order: bool,
    pub(crate) latency: Duration,
}

/// A machine with an agent.
#[derive(Debug, Clone)]
pub(crate) struct AgentSetup {
    pub(crate) name: String,
    pub(crate) zone: &'static str,
    pub(crate) kinds: Vec<&'static str>,
    pub(crate) cache: bool,
    pub(crate) trust: bool,
}

/// A client that speaks the protocol by itself.
#[derive(Debug, Clone)]
pub(crate) struct ReaderSetup {
    pub(crate) name: String,
    pub(crate) viewer: Viewer,
    /// It reads slowly, and is told to wait by the window of its connection.
    pub(crate) slow: bool,
}

pub(crate) const PUBLISHERS: [&str; 2] = ["pub-1", "pub-2"];
pub(crate) const RIVALS: [&str; 2] = ["rival-1", "rival-2"];
pub(crate) const BUS: &str = "bus";

/// A second bus, which never forgets: what users write, and controllers watch.
pub(crate) const API: &str = "api";
pub(crate) const USER: &str = "user";
pub(crate) const CONTROLLERS: [&str; 2] = ["ctl-1", "ctl-2"];

// === impl Setup ===

impl Setup {
    pub(crate) fn new(seed: u64, directory: PathBuf) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let agents = (1..=3).map(|number| {
            let cache = rng.random_bool(0.5);
            AgentSetup {
                name: format!("agent-{number}"),
                zone: ZONES[number % ZONES.len()],
                kinds: if rng.random_bool(0.2) { KINDS[..2].to_vec() } else { KINDS.to_vec() },
                cache,
                trust: cache && rng.random_bool(0.5),
            }
        });
        let agents = agents.collect();
        let tier = |rng: &mut SmallRng| rng.random_bool(0.4).then_some("gold");
        let raw = Viewer { agent: Some(("raw".into(), ZONES[0].into())), kinds: KINDS.to_vec(), tier: tier(&mut rng) };
        let slow = Viewer { tier: tier(&mut rng), ..Viewer::observer() };
        Self {
            seed,
            directory,
            durable: rng.random_bool(0.5),
            chaos: Duration::from_secs(rng.random_range(15..40)),
            frame_bytes: pick(&mut rng, &[200, 1_000, 256 << 10]),
            group_bytes: pick(&mut rng, &[2_000, 512 << 20]),
            tombstones: pick(&mut rng, &[2, 8, 1_000]),
            names: pick(&mut rng, &[2, 4, 12]),
            pause: pick(&mut rng, &[30, 150, 600]),
            agents,
            readers: vec![
                ReaderSetup { name: "eye".into(), viewer: Viewer::observer(), slow: false },
                ReaderSetup { name: "raw".into(), viewer: raw, slow: false },
                ReaderSetup { name: "slow".into(), viewer: slow, slow: true },
            ],
            order: rng.random_bool(0.5),
            latency: Duration::from_millis(pick(&mut rng, &[5, 40, 150])),
        }
    }

    /// Everybody but the buses.
    pub(crate) fn clients(&self) -> Vec<String> {
        let agents = self.agents.iter().map(|agent| agent.name.clone());
        let readers = self.readers.iter().map(|reader| reader.name.clone());
        let others = PUBLISHERS
            .iter()
            .chain(&RIVALS)
            .chain(&CONTROLLERS)
            .chain(&[USER])
            .map(|&name| name.to_owned());
        agents.chain(readers).chain(others).collect()
    }
}

/// Whom a client talks to.
pub(crate) fn servers(client: &str) -> &'static [&'static str] {
    match client {
        USER => &[API],
        _ if CONTROLLERS.contains(&client) => &[BUS, API],
        _ => &[BUS],
    }
}

pub(crate) fn pick<T: Clone>(rng: &mut SmallRng, choices: &[T]) -> T {
    choices[rng.random_range(0..choices.len())].clone()
}
