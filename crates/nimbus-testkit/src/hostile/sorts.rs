//! The sorts of attack, and how much memory each may cost the bus.

mod calls;
mod crowds;
mod floods;
mod reports;
mod talk;

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
};

use tokio::{task::JoinSet, time::Instant};

use crate::hostile::{
    attackers::Counts,
    wire::{self, Wire},
};

/// One sort of attack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sort {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// What is sent, as it is counted.
    pub(crate) unit: &'static str,
    /// If less than this is sent, nothing is proven.
    least: u64,
    /// MiB that the bus may take for it, whatever the number of connections.
    base: u64,
    /// KiB that it may take for each of the connections that are held.
    each: u64,
    attack: Attack,
}

/// How it is done.
#[derive(Debug, Clone, Copy)]
enum Attack {
    Silence,
    Garbage,
    HalfMessages,
    Idle,
    Unread,
    UnreadAnswers,
    Trickle,
    RapidReset,
    GiantHeaders,
    ContinuationFlood,
    SettingsFlood,
    PingFlood,
    Reports,
    Replay,
    UnreadWatches,
    Subscriptions,
    Churn,
}

/// Where to, for how long, and what came of it.
#[derive(Debug, Clone)]
pub(crate) struct Assault {
    pub(crate) address: SocketAddr,
    pub(crate) deadline: Instant,
    /// How many connections are held at once, where many are.
    pub(crate) connections: usize,
    /// The session of somebody honest.
    pub(crate) session: u64,
    pub(crate) counts: Arc<Counts>,
}

/// What an attack must reach to prove anything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Least {
    /// Of what it sends.
    pub(crate) sent: u64,
    /// Connections, or subscriptions, at once.
    pub(crate) held: u64,
}

/// A connection, or a subscription, that is held.
pub(crate) struct Hold(Arc<Counts>);

/// What any attack may cost: requests under way, buffers of sockets, and what an allocator keeps.
const ANY: u64 = 64;

/// All of them.
pub(crate) const SORTS: [Sort; 17] = [
    Sort::new(Attack::Silence, "silence", "connections on which nothing is said", ("connections", 0), (ANY, 48)),
    Sort::new(
        Attack::Garbage,
        "garbage",
        "random bytes, with and without a preface",
        ("pieces of noise", 100),
        (ANY, 0),
    ),
    // As much as --max-incoming-bytes, and what decoders round it up to. There must be more of it than fits.
    Sort::new(
        Attack::HalfMessages,
        "half-messages",
        "thousands of large requests, each without its end",
        ("half messages", 300),
        (512 + ANY, 0),
    ),
    Sort::new(Attack::Idle, "idle", "connections that say hello, and no more", ("greetings", 0), (ANY, 48)),
    Sort::new(Attack::Unread, "unread", "subscribers that never read", ("subscriptions", 0), (ANY, 512)),
    // As much as --max-outgoing-bytes, of which there must be more, too.
    Sort::new(
        Attack::UnreadAnswers,
        "unread-answers",
        "thousands of lists whose answers have no window",
        ("lists", 1_000),
        (256 + ANY, 0),
    ),
    Sort::new(Attack::Trickle, "trickle", "subscribers that read one byte a second", ("subscriptions", 0), (ANY, 512)),
    Sort::new(
        Attack::RapidReset,
        "rapid-reset",
        "streams that are opened and reset at once",
        ("calls", 10_000),
        (ANY, 0),
    ),
    Sort::new(Attack::GiantHeaders, "giant-headers", "metadata of a megabyte", ("calls", 16), (ANY, 0)),
    Sort::new(Attack::ContinuationFlood, "continuation-flood", "headers that never end", ("frames", 10_000), (ANY, 0)),
    Sort::new(
        Attack::SettingsFlood,
        "settings-flood",
        "settings without end, whose answers are not read",
        ("frames", 10_000),
        (ANY, 0),
    ),
    Sort::new(
        Attack::PingFlood,
        "ping-flood",
        "pings without end, whose answers are not read",
        ("frames", 10_000),
        (ANY, 0),
    ),
    // Twice --max-reports-bytes.
    Sort::new(
        Attack::Reports,
        "reports",
        "endless reports of ever new objects, and of very many parts",
        ("reports", 128),
        (256 + 2 * ANY, 0),
    ),
    Sort::new(Attack::Replay, "replay", "reports in the name of other sessions", ("reports", 100), (ANY, 0)),
    // As much as --max-outgoing-bytes, what is being encoded, and the agent that is watched.
    Sort::new(
        Attack::UnreadWatches,
        "unread-watches",
        "hundreds who watch an agent that says ten megabytes, and do not read them",
        ("watches", 256),
        (256 + ANY, 0),
    ),
    Sort::new(
        Attack::Subscriptions,
        "subscriptions",
        "thousands of subscriptions on few connections",
        ("subscriptions", 0),
        (ANY, 48),
    ),
    Sort::new(
        Attack::Churn,
        "churn",
        "connections that are opened and closed without end",
        ("connections", 500),
        (ANY, 0),
    ),
];

// === impl Sort ===

impl Sort {
    /// `sent`: what is counted, and the least of it; `memory`: MiB, and KiB for each connection that is held.
    const fn new(
        attack: Attack,
        name: &'static str,
        what: &'static str,
        sent: (&'static str, u64),
        memory: (u64, u64),
    ) -> Self {
        let ((unit, least), (base, each)) = (sent, memory);
        Self { name, what, unit, least, base, each, attack }
    }

    /// The one that is called so.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        SORTS.iter().find(|sort| sort.name == name)
    }

    /// KiB that the bus may take for it.
    pub(crate) fn bound(&self, connections: usize) -> u64 {
        (self.base << 10) + self.each * self.held(connections) as u64
    }

    /// What it must reach.
    pub(crate) fn least(&self, connections: usize) -> Least {
        Least { sent: self.least, held: self.held(connections) as u64 }
    }

    /// Connections, or subscriptions, that are held at once: each of them costs the attacker something, too.
    fn held(&self, connections: usize) -> usize {
        match self.attack {
            Attack::Idle => connections,
            Attack::Silence | Attack::Unread | Attack::Trickle => (connections / 20).max(10),
            Attack::Subscriptions => (connections / 2).max(10),
            _ => 0,
        }
    }

    /// Attacks until the deadline.
    pub(crate) async fn attack(&self, assault: &Assault) {
        let held = self.held(assault.connections);
        let mut attackers = match self.attack {
            Attack::Silence => crowds::silence(assault, held),
            Attack::Idle => crowds::idle(assault, held),
            Attack::Unread => crowds::unread(assault, held),
            Attack::Trickle => crowds::trickle(assault, held),
            Attack::Subscriptions => crowds::subscriptions(assault, held),
            Attack::Garbage => talk::garbage(assault),
            Attack::Churn => talk::churn(assault),
            Attack::HalfMessages => calls::half_messages(assault),
            Attack::UnreadAnswers => calls::unread_answers(assault),
            Attack::Reports => reports::reports(assault),
            Attack::Replay => calls::replay(assault),
            Attack::UnreadWatches => reports::unread_watches(assault),
            Attack::RapidReset => floods::rapid_reset(assault),
            Attack::GiantHeaders => floods::giant_headers(assault),
            Attack::ContinuationFlood => floods::continuations(assault),
            Attack::SettingsFlood => floods::settings(assault),
            Attack::PingFlood => floods::pings(assault),
        };
        // Attackers go on for ever; whatever they hold goes with them.
        drop(tokio::time::timeout_at(assault.deadline, async { while attackers.join_next().await.is_some() {} }).await);
        attackers.shutdown().await;
    }
}

// === impl Assault ===

impl Assault {
    /// Connects, and says hello.
    async fn open(&self, with: &[(u16, u32)]) -> io::Result<Wire> {
        let mut wire = self.silent().await?;
        wire.write(&[wire::PREFACE, &wire::settings(with)].concat()).await?;
        Ok(wire)
    }

    /// Connects, and says nothing.
    async fn silent(&self) -> io::Result<Wire> {
        let wire = Wire::connect(self.address, self.counts.clone()).await?;
        self.opened();
        Ok(wire)
    }

    /// Holds something, for as long as it is not dropped.
    fn hold(&self) -> Hold {
        let held = self.counts.held.fetch_add(1, Ordering::Relaxed) + 1;
        self.counts.most_held.fetch_max(held, Ordering::Relaxed);
        Hold(self.counts.clone())
    }

    /// So many attackers, each of which does something again and again. What fails was refused.
    fn again<F, E>(&self, attackers: usize, attack: impl Fn(Self, usize) -> F + Clone + Send + 'static) -> JoinSet<()>
    where
        F: Future<Output = Result<(), E>> + Send,
    {
        let mut tasks = JoinSet::new();
        for at in 0..attackers {
            let (assault, attack) = (self.clone(), attack.clone());
            tasks.spawn(async move {
                loop {
                    if attack(assault.clone(), at).await.is_err() {
                        assault.counts.refused.fetch_add(1, Ordering::Relaxed);
                    }
                    tokio::task::yield_now().await;
                }
            });
        }
        tasks
    }

    fn opened(&self) {
        self.counts.opened.fetch_add(1, Ordering::Relaxed);
    }

    fn sent(&self, count: usize) {
        self.counts.sent.fetch_add(count as u64, Ordering::Relaxed);
    }

    fn sent_bytes(&self, bytes: usize) {
        self.counts.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The bus has ended a connection, or refused a call.
    fn refused(&self) {
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
    }
}

// === impl Hold ===

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::Relaxed);
    }
}
