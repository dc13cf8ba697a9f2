//! Reports that are made to cost much, and cost whoever makes them next to nothing: they are put together in advance, and only the
//! names in them are new each time.

use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes};
use nimbus_wire::v1::{self, bus_client::BusClient};
use prost::Message as _;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_stream::StreamExt as _;
use tonic::{
    Request, Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::http::uri::PathAndQuery,
    transport::Channel,
};

use crate::hostile::{
    beat::BEAT,
    sorts::{Assault, calls},
    wire::{INITIAL_WINDOW_SIZE, frame, sort, unary},
};

const REPORT: &str = "/nimbus.v1.Bus/ReportOnce";

const ATTACKERS: usize = 32;

/// Exceptions of one report, and small reports that come one after the other.
const EXCEPTIONS: usize = 2_000;
const MESSAGE: usize = 1_000;
const SMALL: usize = 100;

/// Statuses of one report, and their size: as large as a bus takes them.
const STATUSES: usize = 200;
const STATUS: usize = 16_000;

/// Parts of one report, two bytes each on the wire and some hundred in memory.
const PARTS: usize = 1 << 20;

/// Connections that watch, calls on each of them, and for how long.
const WATCHERS: usize = 8;
const WATCHES: u32 = 32;
const WATCHING: Duration = Duration::from_secs(1);
const WATCH: &str = "/nimbus.v1.Fleet/WatchStatus";

/// Room for what the honest report, and for all streams together.
const SMALL_WINDOW: u32 = 8 << 10;
const LARGE_WINDOW: u32 = 1 << 30;

/// Reports of two megabytes each that one agent has room for.
const ROUNDS: usize = 4;

/// In names, the part that is new each time, and what stands for it.
const DIGITS: usize = 12;
const PLACE: &[u8; DIGITS] = b"............";

/// The greater part of a report, with places for what is new each time.
struct Template {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

/// A session of an attacker.
struct Mallory {
    grpc: Grpc<Channel>,
    assault: Assault,
    session: u64,
    sequence: u64,
    names: u64,
}

/// Messages as the bytes that they are.
#[derive(Debug, Clone, Copy, Default)]
struct Raw;

/// Agents that have something to say about ever more objects, as fast as they can: large reports of three sorts, and small ones
/// after them.
pub(crate) fn reports(assault: &Assault) -> JoinSet<()> {
    assault.again(ATTACKERS, |assault, at| async move {
        let channel = calls::channel(&assault).await?;
        let mut client = BusClient::new(channel.clone());
        let (session, mut frames) = calls::subscribe(&mut client, &format!("mallory-{at}")).await?;
        let frames = async { while let Some(Ok(_)) = frames.next().await {} };
        let grpc = Grpc::new(channel);
        let mallory = Mallory { grpc, assault, session, sequence: 0, names: 0 };
        tokio::select! {
            () = frames => anyhow::bail!("the session is over"),
            ended = mallory.report() => ended,
        }
    })
}

/// An agent has much to say again and again, and others watch it, with room for what the honest say and little more.
pub(crate) fn unread_watches(assault: &Assault) -> JoinSet<()> {
    let mut tasks = assault.again(WATCHERS, |assault, _| async move {
        let mut wire = assault.open(&[(INITIAL_WINDOW_SIZE, SMALL_WINDOW)]).await?;
        wire.write(&frame(sort::WINDOW_UPDATE, 0, 0, &LARGE_WINDOW.to_be_bytes())).await?;
        for at in 0..WATCHES {
            wire.write(&unary(2 * at + 1, WATCH, &v1::WatchStatusRequest::default())).await?;
            assault.sent(1);
        }
        // Those that were given up are replaced.
        drop(timeout(WATCHING, wire.until_closed()).await);
        Ok::<_, std::io::Error>(())
    });
    let assault = assault.clone();
    tasks.spawn(async move {
        // Whoever is refused tries again until the attack is over.
        while say_much(&assault).await.is_err() {
            tokio::task::yield_now().await;
        }
    });
    tasks
}

async fn say_much(assault: &Assault) -> anyhow::Result<()> {
    let channel = calls::channel(assault).await?;
    let mut client = BusClient::new(channel.clone());
    let (session, mut frames) = calls::subscribe(&mut client, "mallory").await?;
    let frames = async { while let Some(Ok(_)) = frames.next().await {} };
    let mut mallory = Mallory { grpc: Grpc::new(channel), assault: assault.clone(), session, sequence: 0, names: 0 };
    let speak = async {
        let mut exceptions = Template::new(EXCEPTIONS, |report, key| report.exceptions.push(exception(key)));
        let mut one = Template::new(1, |report, key| report.exceptions.push(exception(key)));
        for _ in 0..ROUNDS {
            mallory.send(&mut exceptions, false).await?;
        }
        loop {
            mallory.send(&mut one, false).await?;
            sleep(WATCHING / 4).await;
        }
    };
    tokio::select! {
        () = frames => anyhow::bail!("the session is over"),
        ended = speak => ended,
    }
}

// === impl Mallory ===

impl Mallory {
    async fn report(mut self) -> anyhow::Result<()> {
        let mut exceptions = Template::new(EXCEPTIONS, |report, key| report.exceptions.push(exception(key)));
        let mut one = Template::new(1, |report, key| report.exceptions.push(exception(key)));
        let mut statuses = Template::new(STATUSES, |report, key| report.statuses.push(status(key)));
        let part = v1::ReportRequest { exceptions: vec![v1::Exception::default()], ..v1::ReportRequest::default() };
        let mut parts = Template { bytes: part.encode_to_vec().repeat(PARTS), places: Vec::new() };
        let mut full = false;
        loop {
            // Once there is no room for more, all that there was goes, and the same again comes.
            full = !self.send(&mut exceptions, full).await?;
            for _ in 0..SMALL {
                self.send(&mut one, false).await?;
            }
            self.send(&mut statuses, false).await?;
            self.send(&mut parts, false).await?;
        }
    }

    /// Sends a report. `false`: it was refused.
    async fn send(&mut self, template: &mut Template, full: bool) -> anyhow::Result<bool> {
        self.sequence += 1;
        let (session, sequence) = (self.session, self.sequence);
        let rest = v1::ReportRequest { session, sequence, full, ..v1::ReportRequest::default() };
        let message = template.with(&mut self.names, &rest);
        self.assault.sent(1);
        self.assault.sent_bytes(message.len());
        self.grpc.ready().await?;
        let path = PathAndQuery::from_static(REPORT);
        let taken = self.grpc.unary::<_, Bytes, _>(Request::new(message), path, Raw).await.is_ok();
        if !taken {
            self.assault.refused();
            // What is refused is not counted, and the next has the same number.
            self.sequence -= 1;
        }
        Ok(taken)
    }
}

// === impl Template ===

impl Template {
    fn new(count: usize, mut add: impl FnMut(&mut v1::ReportRequest, v1::Key)) -> Self {
        let mut report = v1::ReportRequest::default();
        let name = format!("made-up-{}", String::from_utf8_lossy(PLACE));
        for _ in 0..count {
            add(&mut report, v1::Key { kind: BEAT.to_owned(), namespace: String::new(), name: name.clone() });
        }
        let bytes = report.encode_to_vec();
        let places = bytes.windows(DIGITS).enumerate().filter(|(_, window)| window == PLACE).map(|(at, _)| at);
        let places: Vec<_> = places.collect();
        assert_eq!(places.len(), count, "each key has one place");
        Self { bytes, places }
    }

    /// The message, with names that were never there, and with `rest`: fields of messages can be in any order.
    fn with(&mut self, names: &mut u64, rest: &v1::ReportRequest) -> Bytes {
        for place in &self.places {
            *names += 1;
            self.bytes[*place..place + DIGITS].copy_from_slice(format!("{names:0DIGITS$}").as_bytes());
        }
        let mut message = rest.encode_to_vec();
        message.extend_from_slice(&self.bytes);
        message.into()
    }
}

fn exception(key: v1::Key) -> v1::Exception {
    v1::Exception { key: Some(key), message: "m".repeat(MESSAGE), ..v1::Exception::default() }
}

fn status(key: v1::Key) -> v1::ObjectStatus {
    let type_url = "type.googleapis.com/hostile.v1.Beat".to_owned();
    let status = prost_types::Any { type_url, value: vec![1; STATUS] };
    v1::ObjectStatus { key: Some(key), generation: 1, status: Some(status) }
}

// === impl Raw ===

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
