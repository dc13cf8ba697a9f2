//! The sorts of attack, and how much memory each may cost the bus.

mod calls;
mod crowds;
mod floods;
mod talk;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{task::JoinSet, time::Instant};

/// One sort of attack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sort {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
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

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Connections that were made.
    pub(crate) opened: AtomicU64,
    /// Connections that the bus has ended, or did not take.
    pub(crate) refused: AtomicU64,
    /// Frames, messages or calls that were sent.
    pub(crate) sent: AtomicU64,
    /// What must never be accepted, and was.
    pub(crate) accepted: AtomicU64,
}

/// What any attack may cost: requests under way, buffers of sockets, and what an allocator keeps.
const ANY: u64 = 64;

/// All of them.
pub(crate) const SORTS: [Sort; 16] = [
    Sort::new("silence", "connections on which nothing is said", ANY, 48, Attack::Silence),
    Sort::new("garbage", "random bytes, with and without a preface", ANY, 0, Attack::Garbage),
    // As much as --max-incoming-bytes, and what decoders round it up to.
    Sort::new("half-messages", "thousands of large requests, each without its end", 512 + ANY, 0, Attack::HalfMessages),
    Sort::new("idle", "connections that say hello, and no more", ANY, 48, Attack::Idle),
    Sort::new("unread", "subscribers that never read", ANY, 512, Attack::Unread),
    Sort::new("unread-answers", "thousands of lists whose answers have no window", 256 + ANY, 0, Attack::UnreadAnswers),
    Sort::new("trickle", "subscribers that read one byte a second", ANY, 512, Attack::Trickle),
    Sort::new("rapid-reset", "streams that are opened and reset at once", ANY, 0, Attack::RapidReset),
    Sort::new("giant-headers", "metadata of a megabyte", ANY, 0, Attack::GiantHeaders),
    Sort::new("continuation-flood", "headers that never end", ANY, 0, Attack::ContinuationFlood),
    Sort::new("settings-flood", "settings without end, whose answers are not read", ANY, 0, Attack::SettingsFlood),
    Sort::new("ping-flood", "pings without end, whose answers are not read", ANY, 0, Attack::PingFlood),
    // Twice --max-reports-bytes.
    Sort::new(
        "reports",
        "endless reports of ever new objects, and of very many parts",
        256 + 2 * ANY,
        0,
        Attack::Reports,
    ),
    Sort::new("replay", "reports in the name of other sessions", ANY, 0, Attack::Replay),
    Sort::new("subscriptions", "thousands of subscriptions on few connections", ANY, 48, Attack::Subscriptions),
    Sort::new("churn", "connections that are opened and closed without end", ANY, 0, Attack::Churn),
];

// === impl Sort ===

impl Sort {
    const fn new(name: &'static str, what: &'static str, base: u64, each: u64, attack: Attack) -> Self {
        Self { name, what, base, each, attack }
    }

    /// KiB that the bus may take for it.
    pub(crate) fn bound(&self, assault: &Assault) -> u64 {
        (self.base << 10) + self.each * self.held(assault) as u64
    }

    /// Connections, or subscriptions, that are held at once.
    fn held(&self, assault: &Assault) -> usize {
        match self.attack {
            Attack::Idle => assault.connections,
            Attack::Silence | Attack::Unread | Attack::Trickle => assault.some(),
            Attack::Subscriptions => assault.many(),
            _ => 0,
        }
    }

    /// Attacks until the deadline.
    pub(crate) async fn attack(&self, assault: &Assault) {
        let held = self.held(assault);
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
            Attack::Reports => calls::reports(assault),
            Attack::Replay => calls::replay(assault),
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
    /// A part of the connections: each of them costs the attacker something, too.
    fn some(&self) -> usize {
        (self.connections / 20).max(10)
    }

    fn many(&self) -> usize {
        (self.connections / 2).max(10)
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

    /// The bus has ended a connection.
    fn refused(&self) {
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
    }
}
