//! An agent that keeps nothing of what it is sent, and reports.

use std::{net::SocketAddr, sync::Arc};

use anyhow::{Context as _, ensure};
use nimbus_wire::v1::{self, Mode, Phase, event::Change, frame::Frame, notice::Notice};
use tokio::{
    sync::{Semaphore, mpsc},
    task::{JoinHandle, JoinSet},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use crate::{
    client::Connection,
    objects::agent,
    operator::key,
    subscriber::{CONNECTING, connect},
};

/// An agent on a connection of its own that only counts what it is sent: thousands fit into one process, whatever the
/// number of objects.
#[derive(Debug)]
pub(crate) struct Session {
    connection: Connection,
    frames: Streaming<v1::Frame>,
    id: u64,
    /// What the bus answered to what was offered.
    pub(crate) mode: Mode,
    /// Everything up to this revision has arrived.
    pub(crate) revision: u64,
    pub(crate) puts: u64,
    /// Of the last report.
    sequence: u64,
    stream: Option<Reports>,
}

/// An open `Report` call.
#[derive(Debug)]
struct Reports {
    sender: mpsc::Sender<v1::ReportRequest>,
    answer: JoinHandle<Result<v1::ReportResponse, Status>>,
}

/// Reports are small and go out at once; a full queue makes the sender wait.
const REPORTS: usize = 16;

// === impl Session ===

impl Session {
    /// Subscribes as the agents `0..count`, all of which offer the same, and reads until they have everything.
    pub(crate) async fn open_all(
        address: SocketAddr,
        count: u64,
        resume: Option<v1::Resume>,
    ) -> anyhow::Result<Vec<Self>> {
        let turns = Arc::new(Semaphore::new(CONNECTING));
        let resume = Arc::new(resume);
        let mut opening = JoinSet::new();
        for number in 0..count {
            let (turns, resume) = (turns.clone(), resume.clone());
            opening.spawn(async move {
                let _turn = turns.acquire().await?;
                Self::open(address, &agent(number), (*resume).as_ref()).await
            });
        }
        opening.join_all().await.into_iter().collect()
    }

    async fn open(address: SocketAddr, agent: &str, resume: Option<&v1::Resume>) -> anyhow::Result<Self> {
        let (connection, frames) = connect(address, agent, 0, resume).await?;
        let mode = Mode::Unspecified;
        let mut session = Self { connection, frames, id: 0, mode, revision: 0, puts: 0, sequence: 0, stream: None };
        session.read_until(1).await?;
        Ok(session)
    }

    /// Reads until everything up to `revision` has arrived.
    ///
    /// Nobody reads otherwise: what little comes meanwhile waits in the window of the connection.
    pub(crate) async fn read_until(&mut self, revision: u64) -> anyhow::Result<()> {
        while self.revision < revision {
            let frame = self.frames.message().await?.context("the bus ended the subscription")?;
            match frame.frame.context("a frame without content")? {
                Frame::Welcome(welcome) => (self.id, self.mode) = (welcome.session, welcome.mode()),
                Frame::Batch(batch) => {
                    let puts = batch.events.iter().filter(|event| matches!(event.change, Some(Change::Put(_))));
                    self.puts += puts.count() as u64;
                    self.revision = self.revision.max(batch.revision);
                }
                Frame::SnapshotEnd(end) => self.revision = end.revision,
                Frame::Bookmark(bookmark) => self.revision = bookmark.revision,
                Frame::SnapshotBegin(_) => {}
                Frame::Notice(notice) => {
                    let harmless = matches!(notice.notice, Some(Notice::GroupRestarted(_)));
                    ensure!(harmless, "an unexpected notice: {notice:?}");
                }
            }
        }
        Ok(())
    }

    /// Says that everything up to `revision` is received and applied, but for what failed, and waits for the answer.
    pub(crate) async fn report_once(&mut self, revision: u64, failed: Vec<v1::Exception>) -> anyhow::Result<()> {
        let report = self.report(revision, failed);
        let answer = self.connection.bus().report_once(report).await.context("a report was refused")?;
        self.check(&answer.into_inner())
    }

    /// Says the same without an answer, on a stream that is opened with the first.
    pub(crate) async fn report_on_stream(&mut self, revision: u64, failed: Vec<v1::Exception>) -> anyhow::Result<()> {
        let report = self.report(revision, failed);
        let stream = self.stream.get_or_insert_with(|| Reports::open(&self.connection));
        stream.sender.send(report).await.context("the bus ended the reports")
    }

    /// Ends the stream, and checks that the bus has taken all of it.
    pub(crate) async fn end_stream(&mut self) -> anyhow::Result<()> {
        let Some(Reports { sender, answer }) = self.stream.take() else { return Ok(()) };
        drop(sender);
        let answer = answer.await?.context("the reports were refused")?;
        self.check(&answer)
    }

    fn report(&mut self, revision: u64, exceptions: Vec<v1::Exception>) -> v1::ReportRequest {
        self.sequence += 1;
        v1::ReportRequest {
            session: self.id,
            sequence: self.sequence,
            received: revision,
            applied: revision,
            exceptions,
            ..v1::ReportRequest::default()
        }
    }

    fn check(&self, answer: &v1::ReportResponse) -> anyhow::Result<()> {
        let (sequence, seen) = (self.sequence, answer.sequence);
        ensure!(!answer.full_wanted, "the bus lost a report before number {sequence}");
        ensure!(seen == sequence, "the bus has taken reports up to number {seen}, not {sequence}");
        Ok(())
    }
}

// === impl Reports ===

impl Reports {
    fn open(connection: &Connection) -> Self {
        let (sender, stream) = mpsc::channel(REPORTS);
        let mut bus = connection.bus();
        let reports = async move { bus.report(ReceiverStream::new(stream)).await.map(tonic::Response::into_inner) };
        Self { sender, answer: tokio::spawn(reports) }
    }
}

/// An object that could not be applied, and will be tried again.
pub(crate) fn failure(name: String, generation: u64, attempts: u32) -> v1::Exception {
    v1::Exception {
        key: Some(key(name)),
        generation,
        phase: Phase::Failed.into(),
        code: "BENCH".to_owned(),
        message: "it failed, as the measurement wants it".to_owned(),
        retryable: true,
        attempts,
        ..v1::Exception::default()
    }
}
