//! Many subscribers, each on a connection of its own, that count what they are sent.

use std::{
    cell::RefCell,
    future::poll_fn,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use anyhow::{Context as _, anyhow, bail, ensure};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead as _, AsyncWriteExt as _, ReadBuf},
    net::{TcpSocket, TcpStream},
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::Instant,
};

use crate::{histogram::Histogram, protocol::Protocol};

/// Many subscribers. They read until this value is dropped.
#[derive(Debug)]
pub(crate) struct Crowd {
    shared: Arc<Shared>,
    readers: JoinSet<()>,
    count: u64,
}

/// How a subscriber begins: the protocol, and what it says first.
pub(crate) type Begin = Arc<dyn Fn(u64) -> anyhow::Result<(Protocol, Vec<u8>)> + Send + Sync>;

/// What all subscribers together have seen.
#[derive(Debug, Default)]
struct Shared {
    /// Subscribers that have everything that there was when they came.
    ready: AtomicU64,
    /// Each is to have so many events since then.
    target: AtomicU64,
    /// So many subscribers have fewer.
    behind: AtomicU64,
    events: AtomicU64,
    bytes: AtomicU64,
    failure: Mutex<Option<anyhow::Error>>,
    /// Something above has changed that somebody may wait for.
    news: Notify,
    schedule: Mutex<Option<Schedule>>,
}

/// When each event was published, and how long after that it came.
#[derive(Debug)]
struct Schedule {
    /// Of the first event that is measured.
    first: u64,
    published: Vec<Instant>,
    latencies: Histogram,
}

/// Which events count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// Those that come after a subscriber has everything that there was.
    News,
    /// All.
    Everything,
}

/// Subscribers that connect at the same time; more would overrun the queue of the listener.
const CONNECTING: usize = 128;

/// Connections from one address: there are not many more ports.
const PORTS: u64 = 25_000;

/// One who was turned away comes back as often, after this long each time.
const ATTEMPTS: u32 = 600;
const LATER: Duration = Duration::from_millis(200);

/// Large enough for all that a socket holds.
const BUFFER: usize = 1 << 20;

thread_local! {
    /// What was read is counted at once, so that all readers share one buffer.
    static READ: RefCell<Vec<u8>> = RefCell::new(vec![0; BUFFER]);
}

// === impl Crowd ===

impl Crowd {
    /// Connects as many subscribers, and waits until they have everything that there was.
    pub(crate) async fn open(address: SocketAddr, count: u64, begin: &Begin) -> anyhow::Result<Self> {
        let crowd = Self::begin(address, count, CONNECTING, Counting::News, begin);
        crowd.wait_ready().await?;
        Ok(crowd)
    }

    /// Begins to connect as many subscribers, so many at a time.
    pub(crate) fn begin(address: SocketAddr, count: u64, at_once: usize, counting: Counting, begin: &Begin) -> Self {
        let shared = Arc::new(Shared::default());
        let turns = Arc::new(Semaphore::new(at_once));
        let mut readers = JoinSet::new();
        for number in 0..count {
            let (turns, shared, begin) = (turns.clone(), shared.clone(), begin.clone());
            readers.spawn(async move {
                let Ok(turn) = turns.acquire_owned().await else { return };
                let mut reader =
                    Reader { number, address, shared, turn: Some(turn), counting, events: 0, ready: false };
                let mut attempts = 0;
                while let Err(error) = reader.run(&begin).await {
                    attempts += 1;
                    if reader.ready || reader.events > 0 || attempts > ATTEMPTS {
                        let error = error.context(format!("subscriber {number}"));
                        reader.shared.failure.lock().get_or_insert(error);
                        reader.shared.news.notify_one();
                        return;
                    }
                    tokio::time::sleep(LATER).await;
                }
            });
        }
        Self { shared, readers, count }
    }

    /// Waits until all have everything that there was.
    pub(crate) async fn wait_ready(&self) -> anyhow::Result<()> {
        let count = self.count;
        self.wait(|shared| shared.ready.load(Ordering::Relaxed) >= count).await
    }

    /// From now on, each is to get so many more events.
    pub(crate) fn expect(&self, more: u64) {
        self.shared.target.fetch_add(more, Ordering::Relaxed);
        self.shared.behind.store(self.count, Ordering::Relaxed);
    }

    /// Waits until each has what it is to get.
    pub(crate) async fn wait_for_all(&self) -> anyhow::Result<()> {
        self.wait(|shared| shared.behind.load(Ordering::Relaxed) == 0).await
    }

    /// Subscribers that do not have yet what they are to get.
    pub(crate) fn behind(&self) -> u64 {
        self.shared.behind.load(Ordering::Relaxed)
    }

    /// Events since each had everything, and bytes from the beginning.
    pub(crate) fn seen(&self) -> (u64, u64) {
        (self.shared.events.load(Ordering::Relaxed), self.shared.bytes.load(Ordering::Relaxed))
    }

    /// Measures from now on when events come, the first to come being the first that is published from now on.
    pub(crate) fn schedule(&self) {
        let first = self.shared.target.load(Ordering::Relaxed);
        let schedule = Schedule { first, published: Vec::new(), latencies: Histogram::default() };
        *self.shared.schedule.lock() = Some(schedule);
    }

    /// The next event is published, or was to be, at this time.
    pub(crate) fn published(&self, at: Instant) {
        if let Some(schedule) = &mut *self.shared.schedule.lock() {
            schedule.published.push(at);
        }
    }

    /// How long events have taken.
    pub(crate) fn latencies(&self) -> Histogram {
        self.shared.schedule.lock().take().map(|schedule| schedule.latencies).unwrap_or_default()
    }

    async fn wait(&self, done: impl Fn(&Shared) -> bool) -> anyhow::Result<()> {
        loop {
            if let Some(error) = self.shared.failure.lock().take() {
                return Err(error);
            }
            if done(&self.shared) {
                return Ok(());
            }
            ensure!(!self.readers.is_empty(), "there are no subscribers");
            self.shared.news.notified().await;
        }
    }
}

/// One subscriber.
#[derive(Debug)]
struct Reader {
    number: u64,
    address: SocketAddr,
    shared: Arc<Shared>,
    turn: Option<OwnedSemaphorePermit>,
    counting: Counting,
    events: u64,
    ready: bool,
}

// === impl Reader ===

impl Reader {
    /// Reads until the server ends it, which is an error.
    async fn run(&mut self, begin: &Begin) -> anyhow::Result<()> {
        let (mut protocol, hello) = begin(self.number)?;
        let mut stream = self.connect().await?;
        stream.write_all(&hello).await?;
        let mut answer = Vec::new();
        loop {
            poll_fn(|cx| {
                READ.with_borrow_mut(|buffer| {
                    let mut buffer = ReadBuf::new(buffer);
                    match Pin::new(&mut stream).poll_read(cx, &mut buffer) {
                        Poll::Pending => Poll::Pending,
                        Poll::Ready(Err(error)) => Poll::Ready(Err(anyhow!(error).context("cannot read"))),
                        Poll::Ready(Ok(())) => Poll::Ready(self.take(buffer.filled(), &mut protocol, &mut answer)),
                    }
                })
            })
            .await?;
            if !answer.is_empty() {
                stream.write_all(&answer).await?;
                answer.clear();
            }
        }
    }

    async fn connect(&self) -> anyhow::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        let block = u8::try_from(self.number / PORTS)?;
        if block > 0 {
            socket.bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1 + block)), 0))?;
        }
        let stream = socket.connect(self.address).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn take(&mut self, bytes: &[u8], protocol: &mut Protocol, answer: &mut Vec<u8>) -> anyhow::Result<()> {
        if bytes.is_empty() {
            bail!("the server closed the connection");
        }
        let shared = &*self.shared;
        let heard = protocol.take(bytes, answer)?;
        shared.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let was_ready = self.ready;
        if !was_ready && heard.ready {
            self.ready = true;
            self.turn = None;
            shared.ready.fetch_add(1, Ordering::Relaxed);
            shared.news.notify_one();
        }
        if heard.events == 0 || !(was_ready || self.counting == Counting::Everything) {
            return Ok(());
        }
        let before = self.events;
        self.events += heard.events;
        shared.events.fetch_add(heard.events, Ordering::Relaxed);
        if let Some(schedule) = &mut *shared.schedule.lock() {
            schedule.take(before, self.events);
        }
        let target = shared.target.load(Ordering::Relaxed);
        if before < target && self.events >= target && shared.behind.fetch_sub(1, Ordering::Relaxed) == 1 {
            shared.news.notify_one();
        }
        Ok(())
    }
}

// === impl Schedule ===

impl Schedule {
    /// Events from this number to that have come to one subscriber.
    fn take(&mut self, from: u64, to: u64) {
        let now = Instant::now();
        for number in from..to {
            let number = number.checked_sub(self.first).and_then(|number| usize::try_from(number).ok());
            if let Some(published) = number.and_then(|number| self.published.get(number)) {
                self.latencies.add(now.saturating_duration_since(*published));
            }
        }
    }
}
