//! `nimbus-testkit powercut`: a durable bus is killed again and again, and must lose nothing.
//!
//! The bus is the real command in a process of its own. Everybody else is in this process, and outlives it: writers who
//! know what was acknowledged, and what may have happened because it was not; subscribers who come back with their
//! positions; a [`Witness`] who remembers what anybody was ever told. After every kill, what the bus then says is compared
//! with all of that.

mod checks;
mod contender;
mod crew;
mod ledger;
mod life;
mod listing;
mod moment;
mod subscriber;
mod summary;
mod syncer;
mod thing;
mod whereabouts;
mod witness;
mod writer;

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use clap::Args;
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
use tempfile::TempDir;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, timeout},
};

use self::{
    checks::{check_content, check_subscribers},
    crew::Crew,
    life::{Life, Pace},
    moment::Moment,
    subscriber::Subscriber,
    summary::Summary,
    whereabouts::Whereabouts,
    witness::Witness,
};
use crate::daemon::{Daemon, Program};

/// Kills a durable bus again and again while it is written to and read, and proves that nothing is lost.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How often to kill it.
    #[arg(long, default_value_t = 200, value_name = "N")]
    kills: u32,

    /// Writes per second, by all writers together.
    #[arg(long, default_value_t = 200.0, value_name = "N", value_parser = parse_rate)]
    rate: f64,

    /// Where randomness begins; the same seed makes the same writes and kills, though not at the same times.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Keep the files, even if nothing is wrong with them.
    #[arg(long)]
    keep: bool,

    /// The command to test; by default the one beside this program.
    #[arg(long, value_name = "PATH")]
    nimbus: Option<PathBuf>,

    /// Subscribers, of several sorts.
    #[arg(long, default_value_t = 8, value_name = "N")]
    subscribers: usize,
}

/// All that outlives the bus.
struct World {
    program: Program,
    bus: Whereabouts,
    witness: Arc<Witness>,
    subscribers: Vec<Subscriber>,
    stalling: watch::Sender<bool>,
    summary: Summary,
    rng: SmallRng,
}

/// Writers share these.
const CONNECTIONS: usize = 4;

/// Syncs are never further apart.
const NEXT_SYNC: Duration = Duration::from_secs(2);

pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut directory = TempDir::with_prefix("nimbus-powercut-")?;
    directory.disable_cleanup(arguments.keep);
    let path = directory.path().to_owned();
    let program = Program::find(arguments.nimbus.as_deref(), &path)?;
    let seed = arguments.seed.unwrap_or_else(|| rand::rng().random());
    let began = Instant::now();
    Summary::begin(seed, arguments.kills, &path);

    let mut rng = SmallRng::seed_from_u64(seed);
    let crew = Crew::new(arguments.rate, SmallRng::from_rng(&mut rng));
    let mut world = World::new(program, arguments.subscribers, rng);
    if let Err(error) = world.play(crew, arguments.kills).await {
        world.witness.accuse(format_args!("{error:#}\n{}", world.program.last_words()));
    }
    world.summary.finish(&world.witness, began.elapsed());
    let violations = world.witness.violations();
    if violations.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    directory.disable_cleanup(true);
    Summary::accuse(&violations, seed, &path);
    Ok(ExitCode::FAILURE)
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (1.0..=100_000.0).contains(&rate) => Ok(rate),
        _ => Err("expected writes per second between 1 and 100000".to_owned()),
    }
}

// === impl World ===

impl World {
    fn new(program: Program, subscribers: usize, mut rng: SmallRng) -> Self {
        let (bus, witness, stalling) = (Whereabouts::unknown(), Arc::default(), watch::Sender::new(true));
        let subscribers = (0..subscribers)
            .map(|at| Subscriber::start(at, &bus, &stalling, &witness, SmallRng::from_rng(&mut rng)))
            .collect();
        Self { program, bus, witness, subscribers, stalling, summary: Summary::default(), rng }
    }

    /// Kills the bus as often, then lets it come to rest, and stops it.
    async fn play(&mut self, mut crew: Crew, kills: u32) -> anyhow::Result<()> {
        let (mut daemon, life, _pace) = self.start(&mut crew).await?;
        crew.prepare(&life).await;
        check_subscribers(&life, self.subscribers.iter().filter(|subscriber| !subscriber.stalls)).await?;
        self.end(daemon, &mut crew, Moment::Load { after: Duration::ZERO }).await?;
        for _ in 1..kills {
            let moment = Moment::choose(&mut self.rng);
            if let Moment::Start { part } = moment {
                crew.restart(Instant::now());
                daemon = self.program.spawn()?;
                sleep(self.summary.last_recovery() * part / 100).await;
                self.end(daemon, &mut crew, moment).await?;
            } else {
                crew = self.live(crew, moment).await?;
            }
            self.summary.progress(kills, &self.witness);
            if !self.witness.violations().is_empty() {
                return Ok(());
            }
        }
        self.stalling.send_replace(false);
        let (daemon, life, _pace) = self.start(&mut crew).await?;
        self.summary.settled(&check_content(&life, &mut crew).await?);
        check_subscribers(&life, self.subscribers.iter()).await?;
        self.bus.set(None);
        if !daemon.stop().await? {
            self.witness.accuse("the bus did not stop well when it was asked to");
        }
        let (_daemon, life, _pace) = self.start(&mut crew).await?;
        self.summary.settled(&check_content(&life, &mut crew).await?);
        check_subscribers(&life, self.subscribers.iter()).await
    }

    /// One life of the bus, under load, and its end.
    async fn live(&mut self, mut crew: Crew, moment: Moment) -> anyhow::Result<Crew> {
        let (daemon, life, pace) = self.start(&mut crew).await?;
        let fates = check_content(&life, &mut crew).await?;
        self.summary.settled(&fates);
        // In some lives there are writes while subscribers are still coming back.
        if self.rng.random_bool(0.6) {
            check_subscribers(&life, self.subscribers.iter().filter(|subscriber| !subscriber.stalls)).await?;
        }
        let mut channels = Vec::new();
        for _ in 0..CONNECTIONS {
            channels.push(self.bus.open().await?);
        }
        let working = crew.work(&life, &channels);
        match moment {
            Moment::Start { .. } => {}
            Moment::Load { after } => sleep(after).await,
            Moment::Commit { after, burst } => {
                sleep(after).await;
                pace.send_replace(Pace::Burst);
                sleep(burst).await;
            }
            Moment::Sync { after, then } => {
                sleep(after).await;
                // If none comes, the kill does.
                drop(timeout(NEXT_SYNC, life.syncing.notified()).await);
                sleep(then).await;
            }
        }
        pace.send_replace(Pace::Over);
        self.bus.set(None);
        let killed = Instant::now();
        daemon.kill().await?;
        let mut crew = working.rest().await?;
        crew.killed(killed);
        self.summary.killed(moment);
        Ok(crew)
    }

    /// Starts a bus.
    async fn start(&mut self, crew: &mut Crew) -> anyhow::Result<(Daemon, Life, watch::Sender<Pace>)> {
        let began = Instant::now();
        crew.restart(began);
        let mut daemon = self.program.spawn()?;
        let address = daemon.address().await.context("the bus does not start")?;
        self.summary.recovered(began.elapsed());
        self.bus.set(Some(address));
        let (sender, pace) = watch::channel(Pace::Steady);
        let syncing = Arc::new(Notify::new());
        let channel = self.bus.open().await?;
        Ok((daemon, Life { channel, witness: self.witness.clone(), pace, syncing }, sender))
    }

    /// Kills a bus that nobody writes to.
    async fn end(&mut self, daemon: Daemon, crew: &mut Crew, moment: Moment) -> anyhow::Result<()> {
        self.bus.set(None);
        let killed = Instant::now();
        daemon.kill().await?;
        crew.killed(killed);
        self.summary.killed(moment);
        Ok(())
    }
}
