//! Calls that are made to cost much.

use std::{
    io,
    sync::atomic::{AtomicI64, Ordering},
};

use nimbus_wire::v1::{self, bus_client::BusClient, frame::Frame};
use tokio::{sync::Notify, task::JoinSet, time::sleep_until};
use tonic::{
    Code, Request,
    transport::{Channel, Endpoint},
};

use crate::hostile::{
    beat::BEAT,
    sorts::Assault,
    wire::{self, END_HEADERS, INITIAL_WINDOW_SIZE, Wire, frame, sort, unary},
};

const LIST: &str = "/nimbus.v1.Bus/List";
const REPORT: &str = "/nimbus.v1.Bus/ReportOnce";

const ATTACKERS: usize = 8;

/// Calls at once on one connection; a bus allows a few more.
const STREAMS: u32 = 1_000;

/// As much as one request may have.
const MESSAGE: u32 = 4 << 20;

/// The window of a new stream on this bus, and of a connection before it says otherwise.
const STREAM_WINDOW: usize = 1 << 20;
const CONNECTION_WINDOW: i64 = 65_535;

const PIECE: usize = 16 << 10;

/// What a connection may still send.
struct Window {
    left: AtomicI64,
    grown: Notify,
}

/// On each of a thousand streams, a message of four megabytes begins, of which one comes.
pub(crate) fn half_messages(assault: &Assault) -> JoinSet<()> {
    assault.again(ATTACKERS, |assault, _| async move {
        let Wire { mut reading, mut writing } = assault.open(&[]).await?;
        // The windows of streams are as large as the bus says when it knows that it was heard.
        while wire::next_frame(&mut reading).await?.0.sort != sort::SETTINGS {}
        writing.write(&frame(sort::SETTINGS, wire::ACK, 0, &[])).await?;
        let window = Window { left: AtomicI64::new(CONNECTION_WINDOW), grown: Notify::new() };
        let read = async {
            loop {
                let (head, payload) = wire::next_frame(&mut reading).await?;
                if head.sort == sort::GOAWAY {
                    return Err(io::Error::from(io::ErrorKind::ConnectionReset));
                }
                if head.sort == sort::WINDOW_UPDATE && head.stream == 0 {
                    let more = payload.iter().fold(0_i64, |number, byte| number << 8 | i64::from(*byte));
                    window.left.fetch_add(more, Ordering::Relaxed);
                    window.grown.notify_one();
                }
            }
        };
        let write = async {
            let call = wire::call(REPORT);
            for at in 0..STREAMS {
                let stream = 2 * at + 1;
                // One text that does not end, and does not look like a message of many parts.
                let begin = [&[0][..], &MESSAGE.to_be_bytes(), &[0x0a, 0xf0, 0xff, 0xff, 0x01]].concat();
                writing.write(&frame(sort::HEADERS, END_HEADERS, stream, &call)).await?;
                window.take(begin.len()).await;
                writing.write(&frame(sort::DATA, 0, stream, &begin)).await?;
                for _ in 1..STREAM_WINDOW / PIECE {
                    window.take(PIECE).await;
                    writing.write(&frame(sort::DATA, 0, stream, &[7; PIECE])).await?;
                }
                assault.sent(1);
            }
            sleep_until(assault.deadline).await;
            Ok::<_, io::Error>(())
        };
        tokio::select! {
            ended = read => ended,
            ended = write => ended,
        }
    })
}

/// Lists of a megabyte each, a thousand on each connection, for whose answers there is no window, or next to none.
pub(crate) fn unread_answers(assault: &Assault) -> JoinSet<()> {
    assault.again(ATTACKERS, |assault, at| async move {
        // Room for one byte makes the transport ask for more.
        let window = u32::from(at % 2 == 1);
        let mut wire = assault.open(&[(INITIAL_WINDOW_SIZE, window)]).await?;
        for at in 0..STREAMS {
            wire.write(&unary(2 * at + 1, LIST, &v1::ListRequest::default())).await?;
            assault.sent(1);
        }
        wire.until_closed().await;
        Ok::<_, io::Error>(())
    })
}

/// Reports for sessions that are over, that were never there, and that are somebody else's. None may be taken.
pub(crate) fn replay(assault: &Assault) -> JoinSet<()> {
    assault.again(ATTACKERS, |assault, at| async move {
        let mut client = BusClient::new(channel(&assault).await?);
        let (own, frames) = subscribe(&mut client, &format!("mallory-{at}")).await?;
        drop(frames);
        // The end of the stream is on its way; until it is there, the session is still its own.
        while client.report_once(report(own)).await.is_ok() {}
        for step in 1..100_u64 {
            for session in [own, own.wrapping_add(step), own.wrapping_sub(step), own ^ (1 << (step % 64))] {
                let answer = client.report_once(report(session)).await;
                assault.judge(answer.is_err_and(|status| status.code() == Code::NotFound));
            }
            // This one is there, but not for who says to be another.
            let mut theirs = Request::new(report(assault.session));
            theirs.metadata_mut().insert("nimbus-identity", "mallory".parse()?);
            let answer = client.report_once(theirs).await;
            assault.judge(answer.is_err_and(|status| status.code() == Code::PermissionDenied));
        }
        Ok::<_, anyhow::Error>(())
    })
}

fn report(session: u64) -> v1::ReportRequest {
    v1::ReportRequest { session, sequence: u64::MAX, full: true, ..v1::ReportRequest::default() }
}

pub(crate) async fn channel(assault: &Assault) -> anyhow::Result<Channel> {
    let channel = Endpoint::from_shared(format!("http://{}", assault.address))?.connect().await?;
    assault.opened();
    Ok(channel)
}

/// A session of one's own, and the stream that keeps it.
pub(crate) async fn subscribe(
    client: &mut BusClient<Channel>,
    agent: &str,
) -> anyhow::Result<(u64, tonic::Streaming<v1::Frame>)> {
    let (agent, kinds) = (agent.to_owned(), vec![BEAT.to_owned()]);
    let request = v1::SubscribeRequest { agent, kinds, ..v1::SubscribeRequest::default() };
    let mut frames = client.subscribe(request).await?.into_inner();
    while let Some(frame) = frames.message().await? {
        if let Some(Frame::Welcome(welcome)) = frame.frame {
            return Ok((welcome.session, frames));
        }
    }
    anyhow::bail!("nobody says welcome")
}

// === impl Window ===

impl Window {
    /// Waits until so many bytes may be sent.
    async fn take(&self, bytes: usize) {
        while self.left.load(Ordering::Relaxed) < bytes as i64 {
            self.grown.notified().await;
        }
        self.left.fetch_sub(bytes as i64, Ordering::Relaxed);
    }
}

// === impl Assault ===

impl Assault {
    /// Takes note of whether something was refused that must be.
    fn judge(&self, refused: bool) {
        self.sent(1);
        let count = if refused { &self.counts.refused } else { &self.counts.accepted };
        count.fetch_add(1, Ordering::Relaxed);
    }
}
