//! A subscriber: one agent on one connection.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use nimbus_wire::v1;
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::{
    client::Connection,
    held::{Held, Progress},
    objects::{KIND, agent},
};

/// One agent on one connection.
#[derive(Debug)]
pub(crate) struct Subscriber {
    connection: Connection,
    frames: Streaming<v1::Frame>,
    pub(crate) agent: String,
    credit: u64,
    reports: Option<mpsc::Sender<v1::ReportRequest>>,
    pub(crate) held: Held,
}

/// A bus that has too many snapshots to send says to come back; this is how often a subscriber does, and when.
const ATTEMPTS: usize = 60;
const LATER: Duration = Duration::from_secs(1);

/// Subscribers that connect at the same time in the beginning: more would only be told to wait for their turn.
pub(crate) const CONNECTING: usize = 32;

/// A subscriber that finds nobody listening tries again after this long.
const RECONNECT: Duration = Duration::from_millis(10);

/// Reports are small and go out at once; a full queue slows the reader.
const REPORTS: usize = 16;

/// Objects on one page of a list.
const PAGE: u32 = 1_000;

// === impl Subscriber ===

impl Subscriber {
    /// Connects and subscribes; if `credit` is not 0, it is granted and kept up with reports.
    pub(crate) async fn open(address: SocketAddr, agent: String, credit: u64) -> anyhow::Result<Self> {
        let (connection, frames) = connect(address, &agent, credit, None).await?;
        Ok(Self::new(connection, frames, agent, credit, Held::default()))
    }

    /// Connects and subscribes as the agents `0..count`, and reads until they have everything.
    pub(crate) async fn open_all(address: SocketAddr, count: u64) -> anyhow::Result<Vec<Self>> {
        let turns = Arc::new(Semaphore::new(CONNECTING));
        let mut opening = JoinSet::new();
        for number in 0..count {
            let turns = turns.clone();
            opening.spawn(async move {
                let _turn = turns.acquire().await?;
                let mut subscriber = Self::open(address, agent(number), 0).await?;
                subscriber.catch_up().await?;
                anyhow::Ok(subscriber)
            });
        }
        opening.join_all().await.into_iter().collect()
    }

    /// Connects as soon as somebody answers, and subscribes with what is held.
    pub(crate) async fn reopen(self, address: SocketAddr) -> Self {
        let Self { agent, credit, mut held, .. } = self;
        held.disconnect();
        loop {
            // A bus that is being killed may still take the connection: then the call fails, and is made again.
            if let Ok(connection) = Connection::open(address).await
                && let Ok(frames) = subscribe(&connection, &agent, credit, held.resume()).await
            {
                return Self::new(connection, frames, agent, credit, held);
            }
            tokio::time::sleep(RECONNECT).await;
        }
    }

    fn new(connection: Connection, frames: Streaming<v1::Frame>, agent: String, credit: u64, held: Held) -> Self {
        let reports = (credit > 0).then(|| report_stream(&connection));
        Self { connection, frames, agent, credit, reports, held }
    }

    /// Reads one frame.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Progress> {
        let frame = self.frames.message().await?.context("the bus ended the subscription")?;
        let progress = self.held.take(frame)?;
        let tally = self.held.tally;
        if let Some(reports) = &self.reports {
            let (session, sequence, received_bytes) = (self.held.session, tally.frames, tally.bytes);
            let report = v1::ReportRequest { session, sequence, received_bytes, ..v1::ReportRequest::default() };
            reports.send(report).await.context("the bus ended the reports")?;
        }
        Ok(progress)
    }

    /// Reads until it has everything.
    pub(crate) async fn catch_up(&mut self) -> anyhow::Result<()> {
        while !matches!(self.next().await?, Progress::Snapshot | Progress::Bookmark { .. }) {}
        Ok(())
    }

    /// Bytes read from the socket, with everything that HTTP/2 adds.
    pub(crate) fn received(&self) -> u64 {
        self.connection.received()
    }

    /// Everything that the bus has for this agent.
    pub(crate) async fn list(&self) -> anyhow::Result<Vec<v1::Object>> {
        let mut request = v1::ListRequest {
            kinds: vec![KIND.to_owned()],
            page_size: PAGE,
            agent: self.agent.clone(),
            ..v1::ListRequest::default()
        };
        let mut objects = Vec::new();
        loop {
            let page = self.connection.bus().list(request.clone()).await.context("cannot list")?.into_inner();
            objects.extend(page.objects);
            if page.next_page_token.is_empty() {
                return Ok(objects);
            }
            request.page_token = page.next_page_token;
        }
    }
}

/// Connects and subscribes, as often as it takes.
pub(crate) async fn connect(
    address: SocketAddr,
    agent: &str,
    credit: u64,
    resume: Option<&v1::Resume>,
) -> anyhow::Result<(Connection, Streaming<v1::Frame>)> {
    for _ in 0..ATTEMPTS {
        let connection = Connection::open(address).await?;
        match subscribe(&connection, agent, credit, resume.cloned()).await {
            Ok(frames) => return Ok((connection, frames)),
            Err(status) if is_later(&status) => tokio::time::sleep(LATER).await,
            Err(status) => return Err(status).context("the subscription was refused"),
        }
    }
    bail!("the bus did not take the subscription in {ATTEMPTS} attempts")
}

async fn subscribe(
    connection: &Connection,
    agent: &str,
    credit_bytes: u64,
    resume: Option<v1::Resume>,
) -> Result<Streaming<v1::Frame>, Status> {
    let (kinds, agent) = (vec![KIND.to_owned()], agent.to_owned());
    let request = v1::SubscribeRequest { kinds, agent, resume, credit_bytes, ..v1::SubscribeRequest::default() };
    Ok(connection.bus().subscribe(request).await?.into_inner())
}

/// Says how much was received, so that more may be sent.
///
/// A stream, because nobody waits for its answers: they would share the window of the connection with frames that nobody
/// reads meanwhile.
fn report_stream(connection: &Connection) -> mpsc::Sender<v1::ReportRequest> {
    let (reports, stream) = mpsc::channel(REPORTS);
    let mut bus = connection.bus();
    // If the bus refuses a report, the sender is told that nobody takes more.
    tokio::spawn(async move { drop(bus.report(ReceiverStream::new(stream)).await) });
    reports
}

fn is_later(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::ResourceExhausted)
}
