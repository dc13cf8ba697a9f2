//! A subscriber: one agent on one connection.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use nimbus_wire::v1;
use tokio::{sync::Semaphore, task::JoinSet};
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
    reports: u64,
    pub(crate) held: Held,
}

/// A bus that has too many snapshots to send says to come back; this is how often a subscriber does.
const ATTEMPTS: usize = 60;

/// Subscribers that connect at the same time in the beginning: more would only be told to wait for their turn.
const CONNECTING: usize = 32;

/// A subscriber that finds nobody listening tries again after this long.
const RECONNECT: Duration = Duration::from_millis(10);

/// Objects on one page of a list.
const PAGE: u32 = 1_000;

// === impl Subscriber ===

impl Subscriber {
    /// Connects and subscribes; if `credit` is not 0, it is granted and kept up with reports.
    pub(crate) async fn open(address: SocketAddr, agent: String, credit: u64) -> anyhow::Result<Self> {
        Self::on(Connection::open(address).await?, agent, credit, Held::default()).await
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

    /// Connects as soon as somebody listens, and subscribes with what is held.
    pub(crate) async fn reopen(self, address: SocketAddr) -> anyhow::Result<Self> {
        let Self { agent, credit, mut held, .. } = self;
        held.disconnect();
        loop {
            match Connection::open(address).await {
                Ok(connection) => return Self::on(connection, agent, credit, held).await,
                Err(_) => tokio::time::sleep(RECONNECT).await,
            }
        }
    }

    async fn on(connection: Connection, agent: String, credit: u64, held: Held) -> anyhow::Result<Self> {
        let request = v1::SubscribeRequest {
            kinds: vec![KIND.to_owned()],
            agent: agent.clone(),
            resume: held.resume(),
            credit_bytes: credit,
            ..v1::SubscribeRequest::default()
        };
        for _ in 0..ATTEMPTS {
            match connection.bus().subscribe(request.clone()).await {
                Ok(response) => {
                    let frames = response.into_inner();
                    return Ok(Self { connection, frames, agent, credit, reports: 0, held });
                }
                Err(status) if is_later(&status) => tokio::time::sleep(Duration::from_secs(1)).await,
                Err(status) => return Err(status).context("the subscription was refused"),
            }
        }
        bail!("the bus did not take the subscription within {ATTEMPTS} s")
    }

    /// Reads one frame.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Progress> {
        let frame = self.frames.message().await?.context("the bus ended the subscription")?;
        let progress = self.held.take(frame)?;
        if self.credit > 0 {
            self.report().await?;
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

    /// Says how much was received, so that more may be sent.
    async fn report(&mut self) -> anyhow::Result<()> {
        self.reports += 1;
        let (session, sequence, received_bytes) = (self.held.session, self.reports, self.held.tally.bytes);
        let report = v1::ReportRequest { session, sequence, received_bytes, ..v1::ReportRequest::default() };
        self.connection.bus().report_once(report).await.context("the report was refused")?;
        Ok(())
    }
}

fn is_later(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::ResourceExhausted)
}
