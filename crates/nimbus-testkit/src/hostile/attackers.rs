//! Those who attack, in a process of their own: what they cost their own processor, memory and files is not taken for what they
//! cost the bus, and they do not hold up the honest.

#![allow(clippy::print_stdout, reason = "what came of an attack is told on standard output")]

use std::{
    env,
    net::SocketAddr,
    process::{ExitCode, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use tokio::{
    process::Command,
    time::{Instant, timeout},
};

use crate::hostile::sorts::{Assault, Sort};

/// Attacks a bus in one way, and says what came of it.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    address: SocketAddr,

    #[arg(long)]
    sort: String,

    #[arg(long)]
    seconds: f64,

    #[arg(long)]
    connections: usize,

    /// That of somebody honest.
    #[arg(long)]
    session: u64,
}

/// What attackers count while they are at it.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Connections that were made.
    pub(crate) opened: AtomicU64,
    /// Connections, or calls, that the bus has ended or did not take.
    pub(crate) refused: AtomicU64,
    /// Frames, messages or calls that were sent.
    pub(crate) sent: AtomicU64,
    /// Bytes that were sent, without what HTTP/2 and gRPC add where a library writes them.
    pub(crate) bytes: AtomicU64,
    /// Connections, or subscriptions, that are held now, and the most that were.
    pub(crate) held: AtomicU64,
    pub(crate) most_held: AtomicU64,
    /// What must never be accepted, and was.
    pub(crate) accepted: AtomicU64,
}

/// What came of an attack, as the attackers say.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Volume {
    pub(crate) opened: u64,
    pub(crate) refused: u64,
    pub(crate) sent: u64,
    pub(crate) bytes: u64,
    pub(crate) held: u64,
    pub(crate) accepted: u64,
}

/// To start, and to let go of ten thousand connections, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Attacks, as the command line says.
pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let sort = Sort::named(&arguments.sort).context("there is no such attack")?;
    let counts = Arc::new(Counts::default());
    let assault = Assault {
        address: arguments.address,
        deadline: Instant::now() + Duration::from_secs_f64(arguments.seconds),
        connections: arguments.connections,
        session: arguments.session,
        counts: counts.clone(),
    };
    sort.attack(&assault).await;
    println!("{}", counts.volume().to_json());
    Ok(ExitCode::SUCCESS)
}

/// Has a process attack, and waits until it has.
pub(crate) async fn attack(
    sort: &Sort,
    address: SocketAddr,
    time: Duration,
    connections: usize,
    session: u64,
) -> anyhow::Result<Volume> {
    let values = [address.to_string(), sort.name.to_owned(), time.as_secs_f64().to_string()];
    let numbers = [connections.to_string(), session.to_string()];
    let names = ["--address", "--sort", "--seconds", "--connections", "--session"];
    let mut process = Command::new(env::current_exe()?);
    process.arg("attack");
    for (name, value) in names.into_iter().zip(values.into_iter().chain(numbers)) {
        process.args([name, &value]);
    }
    let attacking = process.stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true).output();
    let output = timeout(time + PATIENCE, attacking).await.context("the attackers do not end")??;
    if !output.status.success() {
        bail!("the attackers failed: {}", output.status);
    }
    let told = serde_json::from_slice(&output.stdout).context("the attackers do not say what came of it")?;
    Ok(Volume::from_json(&told))
}

// === impl Counts ===

impl Counts {
    fn volume(&self) -> Volume {
        let [opened, refused, sent, bytes, held, accepted] =
            [&self.opened, &self.refused, &self.sent, &self.bytes, &self.most_held, &self.accepted]
                .map(|count| count.load(Ordering::Relaxed));
        Volume { opened, refused, sent, bytes, held, accepted }
    }
}

// === impl Volume ===

impl Volume {
    pub(crate) fn to_json(self) -> Value {
        json!({
            "opened": self.opened, "refused": self.refused, "sent": self.sent, "bytes": self.bytes, "held": self.held,
            "accepted": self.accepted,
        })
    }

    fn from_json(told: &Value) -> Self {
        let count = |name: &str| told[name].as_u64().unwrap_or_default();
        Self {
            opened: count("opened"),
            refused: count("refused"),
            sent: count("sent"),
            bytes: count("bytes"),
            held: count("held"),
            accepted: count("accepted"),
        }
    }
}
