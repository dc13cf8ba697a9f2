//! Scripted scenarios on in-memory connections with paused time: what happens when, to the millisecond.

use std::{sync::Arc, time::Duration};

use hyper_util::rt::TokioIo;
use nimbus_bus::{Bus, Config, Limits, Metrics};
use nimbus_core::Epoch;
use nimbus_wire::v1::{
    self, Mode, bus_client::BusClient, frame::Frame, notice::Notice, publisher_client::PublisherClient,
};
use tokio::{
    io::DuplexStream,
    sync::{Notify, mpsc},
    time::Instant,
};
use tokio_stream::{StreamExt as _, wrappers::ReceiverStream};
use tonic::{
    Code, Status, Streaming,
    transport::{Channel, Endpoint},
};
use tonic_types::StatusExt as _;

pub(crate) const KIND: &str = "t.v1.Alpha";

/// A bus whose network is memory.
pub(crate) struct Local {
    pub(crate) bus: Bus,
    connections: mpsc::Sender<Result<DuplexStream, std::io::Error>>,
    pub(crate) stop: Arc<Notify>,
    metrics: prometheus_client::registry::Registry,
}

impl Local {
    pub(crate) fn start(config: Config) -> Self {
        let (connections, incoming) = mpsc::channel(16);
        let stop = Arc::new(Notify::new());
        let mut metrics = prometheus_client::registry::Registry::default();
        let bus = Bus::new(config, Metrics::new(&mut metrics));
        let (serving, stopped) = (bus.clone(), stop.clone());
        tokio::spawn(async move {
            serving
                .serve(ReceiverStream::new(incoming), async move { stopped.notified().await })
                .await
                .unwrap();
        });
        Self { bus, connections, stop, metrics }
    }

    pub(crate) async fn channel(&self) -> Channel {
        let connections = self.connections.clone();
        let connect = tower::service_fn(move |_| {
            let connections = connections.clone();
            async move {
                let (near, far) = tokio::io::duplex(1 << 20);
                connections.send(Ok(far)).await.map_err(|_| std::io::Error::other("the bus is gone"))?;
                Ok::<_, std::io::Error>(TokioIo::new(near))
            }
        });
        Endpoint::from_static("http://bus").connect_with_connector(connect).await.unwrap()
    }

    pub(crate) async fn bus(&self) -> BusClient<Channel> {
        BusClient::new(self.channel().await)
    }

    /// Publishes so many objects, of so many bytes each, in a sync.
    pub(crate) async fn sync(&self, objects: usize, bytes: usize) {
        let step = |step| v1::SyncRequest { step: Some(step) };
        let begin =
            v1::SyncBegin { publisher: "controller".into(), fence: 0, kinds: vec![KIND.into()], leases: vec![] };
        let objects = (0..objects).map(|n| object(&format!("o{n}"), bytes)).collect();
        let steps = [
            step(v1::sync_request::Step::Begin(begin)),
            step(v1::sync_request::Step::Items(v1::SyncItems { objects })),
            step(v1::sync_request::Step::End(v1::SyncEnd {})),
        ];
        PublisherClient::new(self.channel().await).sync(tokio_stream::iter(steps)).await.unwrap();
    }

    async fn put(&self, name: &str, bytes: usize) {
        let op = v1::Op { op: Some(v1::op::Op::Upsert(object(name, bytes))), ..Default::default() };
        let request = v1::ApplyRequest { publisher: "controller".into(), ops: vec![op], ..Default::default() };
        PublisherClient::new(self.channel().await).apply(request).await.unwrap();
    }

    pub(crate) fn metric(&self, line: &str) -> bool {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.metrics).unwrap();
        text.lines().any(|found| found == line)
    }
}

pub(crate) fn config() -> Config {
    Config::new(Epoch(7), 7)
}

pub(crate) fn object(name: &str, bytes: usize) -> v1::Object {
    let spec = prost_types::Any { type_url: format!("type.googleapis.com/{KIND}"), value: vec![1; bytes] };
    v1::Object { kind: KIND.into(), name: name.into(), spec: Some(spec), ..Default::default() }
}

/// Where everything in these tests comes from.
pub(crate) fn origins() -> Vec<v1::Origin> {
    vec![v1::Origin { manager: "controller".into(), kinds: vec![KIND.into()] }]
}

pub(crate) fn agent(id: &str) -> v1::SubscribeRequest {
    v1::SubscribeRequest { kinds: vec![KIND.into()], agent: id.into(), ..Default::default() }
}

pub(crate) async fn frame(frames: &mut Streaming<v1::Frame>) -> Result<Frame, Status> {
    frames
        .message()
        .await
        .map(|frame| frame.expect("the stream goes on").frame.expect("a frame says what it is"))
}

pub(crate) async fn until_bookmark(frames: &mut Streaming<v1::Frame>) -> v1::Bookmark {
    loop {
        if let Frame::Bookmark(bookmark) = frame(frames).await.unwrap() {
            return bookmark;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn snapshots_beyond_the_budget_are_told_exactly_when_to_come_back() {
    // Ten agents want 1 MiB each; one per second is allowed, and one at once.
    let limits = Limits { snapshot_rate: 1 << 20, snapshot_burst: 0, ..Limits::default() };
    let local = Local::start(Config { limits, ..config() });
    local.sync(16, 64 << 10).await;
    let mut turns = Vec::new();
    for n in 0..10 {
        match local.bus().await.subscribe(agent(&format!("agent-{n}"))).await {
            Ok(_) => turns.push((n, Duration::ZERO)),
            Err(status) => {
                assert_eq!(status.code(), Code::Unavailable, "{status}");
                let wait = status.get_error_details().retry_info().unwrap().retry_delay.unwrap();
                turns.push((n, wait));
            }
        }
    }
    // The first is sent at once; each of the others comes back a second later than the one before it.
    let seconds: Vec<u64> = turns.iter().map(|(_, wait)| wait.as_secs()).collect();
    assert_eq!(seconds, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "{turns:?}");
    let start = Instant::now();
    for (n, wait) in turns.into_iter().skip(1) {
        tokio::time::sleep_until(start + wait).await;
        let mut frames = local.bus().await.subscribe(agent(&format!("agent-{n}"))).await.unwrap().into_inner();
        until_bookmark(&mut frames).await;
    }
    assert!(local.metric(r#"nimbus_bus_refusals_total{limit="snapshot_rate"} 9"#));
}

#[tokio::test(start_paused = true)]
async fn equal_digests_cost_nothing_of_the_budget() {
    let limits = Limits { snapshot_rate: 1, snapshot_burst: 1, ..Limits::default() };
    let local = Local::start(Config { limits, ..config() });
    local.sync(100, 10).await;
    let mut frames = local.bus().await.subscribe(agent("first")).await.unwrap().into_inner();
    let mark = until_bookmark(&mut frames).await;
    for _ in 0..100 {
        let resume = v1::Resume { root: mark.digest.clone(), origins: origins(), ..Default::default() };
        let request = v1::SubscribeRequest { resume: Some(resume), ..agent("second") };
        let mut frames = local.bus().await.subscribe(request).await.unwrap().into_inner();
        let Frame::Welcome(welcome) = frame(&mut frames).await.unwrap() else { panic!("no welcome") };
        assert_eq!(welcome.mode(), Mode::Unchanged);
        assert!(matches!(frame(&mut frames).await.unwrap(), Frame::Bookmark(_)));
    }
}

/// Somebody published without ever syncing. Subscribers that came back to the same bus with other labels, or whose filter
/// it had let go, waited for that publisher's sync for ever.
#[tokio::test(start_paused = true)]
async fn who_was_exact_in_this_epoch_waits_for_nobody() {
    let local = Local::start(config());
    local.sync(1, 10).await;
    let op = v1::Op { op: Some(v1::op::Op::Upsert(object("other", 10))), ..Default::default() };
    let request = v1::ApplyRequest { publisher: "never-syncs".into(), ops: vec![op], ..Default::default() };
    let head = PublisherClient::new(local.channel().await).apply(request).await.unwrap().into_inner();
    let origins = vec![v1::Origin { manager: "never-syncs".into(), kinds: vec![KIND.into()] }];
    let mode = async |position| {
        let resume = v1::Resume { position: Some(position), origins: origins.clone(), ..Default::default() };
        let request = v1::SubscribeRequest { resume: Some(resume), ..agent("a") };
        let mut frames = local.bus().await.subscribe(request).await.unwrap().into_inner();
        let Frame::Welcome(welcome) = frame(&mut frames).await.unwrap() else { panic!("no welcome") };
        welcome.mode()
    };
    let here = v1::Position { epoch: head.epoch, revision: head.revision, scope: 1 };
    assert_eq!(mode(here).await, Mode::Snapshot);
    assert_eq!(mode(v1::Position { revision: head.revision + 1, ..here }).await, Mode::Waiting);
    assert_eq!(mode(v1::Position { revision: 0, ..here }).await, Mode::Waiting);
    assert_eq!(mode(v1::Position { epoch: head.epoch + 1, ..here }).await, Mode::Waiting);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_is_given_no_more_than_its_credit() {
    let limits = Limits { frame_bytes: 4 << 10, ..Limits::default() };
    let local = Local::start(Config { limits, ..config() });
    local.sync(100, 1 << 10).await;
    let mut bus = local.bus().await;
    let request = v1::SubscribeRequest { credit_bytes: 16 << 10, ..agent("careful") };
    let mut frames = bus.subscribe(request).await.unwrap().into_inner();
    let (mut received, mut acknowledged, mut session, mut sequence, mut objects) = (0, 0, 0, 0, 0);
    loop {
        // Time is paused: a frame that does not come at once is held back.
        match tokio::time::timeout(Duration::from_secs(1), frame(&mut frames)).await {
            Ok(next) => {
                let next = next.unwrap();
                received += prost::Message::encoded_len(&v1::Frame { frame: Some(next.clone()) }) as u64 + 5;
                match next {
                    Frame::Welcome(welcome) => session = welcome.session,
                    Frame::Batch(batch) => objects += batch.events.len(),
                    Frame::SnapshotEnd(end) => break assert_eq!(end.objects, 100),
                    _ => {}
                }
            }
            Err(_) => {
                // The last frame may go beyond the credit, but none begins there.
                let granted = acknowledged + (16 << 10) + (5 << 10);
                assert!(received <= granted, "{received} bytes for a credit of {granted}");
                sequence += 1;
                let received_bytes = received;
                acknowledged = received;
                let report = v1::ReportRequest { session, sequence, received_bytes, ..Default::default() };
                bus.report_once(report).await.unwrap();
            }
        }
    }
    assert_eq!(objects, 100);
    assert!(sequence >= 5, "100 KiB were sent in {sequence} grants");
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_stops_says_when_to_come_back_and_then_ends_every_stream() {
    let local = Local::start(config());
    local.sync(1, 10).await;
    let mut bus = local.bus().await;
    let mut frames = bus.subscribe(agent("a")).await.unwrap().into_inner();
    until_bookmark(&mut frames).await;
    local.stop.notify_one();
    let drain = loop {
        if let Frame::Notice(notice) = frame(&mut frames).await.unwrap() {
            break notice.notice.unwrap();
        }
    };
    let Notice::Drain(drain) = drain else { panic!("{drain:?}") };
    assert!(drain.retry_after_ms < 5_000);
    let status = frame(&mut frames).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    let wait = status.get_error_details().retry_info().unwrap().retry_delay.unwrap();
    assert_eq!(wait, Duration::from_millis(drain.retry_after_ms));
}

#[tokio::test(start_paused = true)]
async fn a_newer_session_ends_the_older_one_of_the_same_agent() {
    let local = Local::start(config());
    local.sync(1, 10).await;
    let mut older = local.bus().await.subscribe(agent("twin")).await.unwrap().into_inner();
    until_bookmark(&mut older).await;
    let mut newer = local.bus().await.subscribe(agent("twin")).await.unwrap().into_inner();
    let Frame::Welcome(welcome) = frame(&mut newer).await.unwrap() else { panic!("no welcome") };
    let status = loop {
        match frame(&mut older).await {
            Ok(_) => {}
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), Code::Aborted);
    let details = status.get_error_details();
    let info = details.error_info().unwrap();
    assert_eq!(info.reason, "SUPERSEDED");
    assert_eq!(info.metadata["session"], format!("{:016x}", welcome.session));
    until_bookmark(&mut newer).await;
    assert!(local.metric("nimbus_bus_sessions 1"));
    assert!(local.metric("nimbus_bus_sessions_superseded_total 1"));
}

#[tokio::test(start_paused = true)]
async fn a_lost_report_makes_the_bus_ask_for_a_full_one() {
    let local = Local::start(config());
    local.sync(1, 10).await;
    let mut bus = local.bus().await;
    let mut frames = bus.subscribe(agent("a")).await.unwrap().into_inner();
    let Frame::Welcome(welcome) = frame(&mut frames).await.unwrap() else { panic!("no welcome") };
    until_bookmark(&mut frames).await;
    let report = |sequence, full| v1::ReportRequest {
        session: welcome.session,
        sequence,
        full,
        received: 1,
        applied: 1,
        ..Default::default()
    };
    assert!(!bus.report_once(report(1, false)).await.unwrap().into_inner().full_wanted);
    assert!(bus.report_once(report(3, false)).await.unwrap().into_inner().full_wanted);
    let notice = loop {
        if let Frame::Notice(notice) = frame(&mut frames).await.unwrap() {
            break notice.notice.unwrap();
        }
    };
    assert!(matches!(notice, Notice::ReportWanted(_)));
    assert!(bus.report_once(report(4, false)).await.unwrap().into_inner().full_wanted);
    assert!(!bus.report_once(report(5, true)).await.unwrap().into_inner().full_wanted);

    let ahead = v1::ReportRequest { received: 99, ..report(6, false) };
    assert_eq!(bus.report_once(ahead).await.unwrap_err().code(), Code::InvalidArgument);
    let strange = v1::ReportRequest { session: 1, ..report(6, false) };
    assert_eq!(bus.report_once(strange).await.unwrap_err().code(), Code::NotFound);
    let mut spoofed = tonic::Request::new(report(6, false));
    spoofed.metadata_mut().insert("nimbus-identity", "somebody-else".parse().unwrap());
    assert_eq!(bus.report_once(spoofed).await.unwrap_err().code(), Code::PermissionDenied);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_tell_how_long_the_publisher_has_been_silent() {
    let local = Local::start(config());
    local.sync(1, 10).await;
    let mut frames = local.bus().await.subscribe(agent("a")).await.unwrap().into_inner();
    until_bookmark(&mut frames).await;
    let ages = [until_bookmark(&mut frames).await, until_bookmark(&mut frames).await].map(|bookmark| {
        assert_eq!(bookmark.publishers.len(), 1);
        assert!(bookmark.publishers[0].synced);
        bookmark.publishers[0].age_ms
    });
    assert!(ages[0] >= 20_000 && ages[1] > ages[0] + 10_000, "{ages:?}");
    local.put("o0", 10).await;
    assert!(until_bookmark(&mut frames).await.publishers[0].age_ms <= 15_000);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_without_anything_is_sent_what_there_is_but_no_end_before_the_kind_is_complete() {
    let local = Local::start(config());
    local.put("early", 10).await;
    let mut frames = local.bus().await.subscribe(agent("fresh")).await.unwrap().into_inner();
    let Frame::Welcome(welcome) = frame(&mut frames).await.unwrap() else { panic!("no welcome") };
    assert_eq!((welcome.mode(), &*welcome.incomplete_kinds), (Mode::Snapshot, &[KIND.to_owned()][..]));
    assert!(matches!(frame(&mut frames).await.unwrap(), Frame::SnapshotBegin(_)));
    let Frame::Batch(batch) = frame(&mut frames).await.unwrap() else { panic!("no batch") };
    assert_eq!((batch.events.len(), batch.revision), (1, 0));
    local.put("later", 10).await;
    let Frame::Batch(batch) = frame(&mut frames).await.unwrap() else { panic!("no batch") };
    assert_eq!((batch.events.len(), batch.revision), (1, 0));
    // Through a minute of signs of life there is no end.
    let minute = Instant::now() + Duration::from_secs(60);
    while Instant::now() < minute {
        assert_eq!(frame(&mut frames).await.unwrap(), Frame::Batch(v1::Batch::default()));
    }
    local.sync(1, 10).await;
    let end = loop {
        match frame(&mut frames).await.unwrap() {
            Frame::SnapshotEnd(end) => break end,
            Frame::Batch(batch) => assert_eq!(batch.revision, 0),
            other => panic!("{other:?}"),
        }
    };
    // The sync named one object and swept the two others, which were the same publisher's.
    assert_eq!(end.objects, 1);
    assert_eq!(local.bus.store().state().objects(), 1);
}

#[tokio::test(start_paused = true)]
async fn sessions_beyond_the_limit_are_refused_by_name() {
    let local = Local::start(Config { limits: Limits { sessions: 2, ..Limits::default() }, ..config() });
    let mut bus = local.bus().await;
    let _a = bus.subscribe(agent("a")).await.unwrap();
    let _b = bus.subscribe(agent("b")).await.unwrap();
    let status = bus.subscribe(agent("c")).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.get_error_details().error_info().unwrap().metadata["limit"], "sessions");
    // One that is there already may come back.
    let _again = bus.subscribe(agent("b")).await.unwrap();
    assert!(local.metric(r#"nimbus_bus_refusals_total{limit="sessions"} 1"#));
    assert!(local.metric(r#"nimbus_bus_limit{limit="sessions"} 2"#));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_says_nothing_is_closed() {
    use tokio::io::AsyncReadExt as _;
    let local = Local::start(config());
    let (mut near, far) = tokio::io::duplex(1 << 16);
    local.connections.send(Ok(far)).await.unwrap();
    let start = Instant::now();
    let mut rest = Vec::new();
    near.read_to_end(&mut rest).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn one_transaction_is_one_batch_at_one_revision() {
    let local = Local::start(config());
    local.sync(0, 0).await;
    let mut frames = local.bus().await.subscribe(agent("a")).await.unwrap().into_inner();
    until_bookmark(&mut frames).await;
    let ops = (0..50).map(|n| {
        let op = v1::op::Op::Upsert(object(&format!("o{n}"), 10));
        v1::Op { op: Some(op), ..Default::default() }
    });
    let request = v1::ApplyRequest { publisher: "controller".into(), ops: ops.collect(), ..Default::default() };
    PublisherClient::new(local.channel().await).apply(request).await.unwrap();
    let Some(batch) = (&mut frames)
        .filter_map(|frame| match frame.unwrap().frame {
            Some(Frame::Batch(batch)) => Some(batch),
            _ => None,
        })
        .next()
        .await
    else {
        panic!("no batch")
    };
    assert_eq!((batch.events.len(), batch.revision), (50, 1));
}

/// A report that was sent again after a reconnect switched the scope back to what it had asked for.
#[tokio::test(start_paused = true)]
async fn a_report_that_was_taken_already_changes_nothing() {
    let local = Local::start(config());
    local.sync(2, 10).await;
    let mut bus = local.bus().await;
    let mut frames = bus.subscribe(agent("a")).await.unwrap().into_inner();
    let Frame::Welcome(welcome) = frame(&mut frames).await.unwrap() else { panic!("no welcome") };
    until_bookmark(&mut frames).await;
    let report = |sequence, name: &str| {
        let filter = Some(v1::Filter { names: vec![name.into()], ..Default::default() });
        let rescope = Some(v1::Rescope { kinds: vec![KIND.into()], filter, ..Default::default() });
        v1::ReportRequest { session: welcome.session, sequence, rescope, ..Default::default() }
    };
    for (sequence, name) in [(1, "o0"), (2, "o1"), (1, "o0")] {
        let answer = bus.report_once(report(sequence, name)).await.unwrap().into_inner();
        assert!(answer.sequence >= sequence);
    }
    until_bookmark(&mut frames).await;
    local.put("o0", 20).await;
    local.put("o1", 20).await;
    let Frame::Batch(batch) = frame(&mut frames).await.unwrap() else { panic!("no batch") };
    let Some(v1::event::Change::Put(put)) = &batch.events[0].change else { panic!("{batch:?}") };
    assert_eq!((batch.events.len(), &*put.name), (1, "o1"));
    let first = v1::ReportRequest { sequence: 0, ..report(1, "o0") };
    assert_eq!(bus.report_once(first).await.unwrap_err().code(), Code::InvalidArgument);
}

/// Who waited for a kind that nobody syncs, and then asked for another one, waited for ever.
#[tokio::test(start_paused = true)]
async fn who_waits_may_ask_for_something_else() {
    let local = Local::start(config());
    local.sync(1, 10).await;
    let mut bus = local.bus().await;
    let resume = Some(v1::Resume { root: vec![1; 16].into(), ..Default::default() });
    let request = v1::SubscribeRequest { kinds: vec!["t.v1.Nobody".into()], resume, ..agent("a") };
    let mut frames = bus.subscribe(request).await.unwrap().into_inner();
    let Frame::Welcome(welcome) = frame(&mut frames).await.unwrap() else { panic!("no welcome") };
    assert_eq!(welcome.mode(), Mode::Waiting);
    let rescope = Some(v1::Rescope { kinds: vec![KIND.into()], ..Default::default() });
    let report = v1::ReportRequest { session: welcome.session, sequence: 1, rescope, ..Default::default() };
    bus.report_once(report).await.unwrap();
    let notice = frame(&mut frames).await.unwrap();
    let Frame::Notice(v1::Notice { notice: Some(Notice::ScopeChanged(_)) }) = notice else { panic!("{notice:?}") };
    let Frame::Welcome(welcome) = frame(&mut frames).await.unwrap() else { panic!("no welcome") };
    assert_eq!(welcome.mode(), Mode::Snapshot);
    assert_eq!(until_bookmark(&mut frames).await.objects, 1);
}
