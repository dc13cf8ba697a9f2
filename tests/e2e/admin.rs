//! Health and metrics over HTTP, for those who mean well and those who do not.

use std::{collections::BTreeSet, fs, path::Path};

use http::{Method, header};
use nimbus_wire::v1::{
    self, bus_client::BusClient, frame::Frame, leases_client::LeasesClient, publisher_client::PublisherClient,
};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use crate::{
    demo,
    http_client::{Answer, ask, get},
    metrics::{metric, metric_becomes},
    raw,
    server::Server,
    wait,
};

async fn connect(server: &Server) -> Channel {
    Channel::from_shared(server.url()).unwrap().connect().await.unwrap()
}

/// What `/readyz` says.
async fn readiness(server: &Server) -> (u16, String) {
    let Answer { status, body, .. } = get(&server.admin, "/readyz").await;
    (status, body)
}

#[tokio::test]
async fn every_page_is_listed_and_nothing_else_is_there() {
    let server = Server::start(&[]);
    let index = get(&server.admin, "/").await;
    assert_eq!(index.status, 200);
    let paths: Vec<&str> = index.body.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(paths, ["/livez", "/readyz", "/metrics"]);
    for path in paths {
        let page = get(&server.admin, path).await;
        assert_eq!(page.status, 200, "{path}: {page:?}");
        let head = ask(&server.admin, Method::HEAD, path).await;
        assert_eq!((head.status, &*head.body), (200, ""), "{path}");
        let refused = ask(&server.admin, Method::POST, path).await;
        assert_eq!(refused.status, 405, "{path}");
        assert_eq!(refused.headers[header::ALLOW], "GET, HEAD");
    }
    assert_eq!(get(&server.admin, "/livez").await.body, "ok\n");
    assert_eq!(get(&server.admin, "/readyz?verbose").await.body, "ready\n");
    let metrics = get(&server.admin, "/metrics").await;
    assert_eq!(metrics.headers[header::CONTENT_TYPE], "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert!(metrics.body.ends_with("# EOF\n"));
    let absent = get(&server.admin, "/nimbus").await;
    assert_eq!((absent.status, &*absent.body), (404, "there is no such page (hint: / lists what there is)\n"));
}

#[tokio::test]
async fn readiness_names_what_is_missing_until_nothing_is() {
    let server = Server::start(&[]);
    let mut publisher = PublisherClient::new(connect(&server).await);
    assert_eq!(readiness(&server).await, (200, "ready\n".to_owned()), "nobody has published anything");

    publisher
        .apply(demo::apply("person", vec![demo::upsert(demo::policy("a", "z", 1))]))
        .await
        .unwrap();
    let nobody = format!("kind {}: waits for a sync, which no publisher has begun\n", demo::KIND);
    assert_eq!(readiness(&server).await, (503, nobody));

    let (steps, received) = tokio::sync::mpsc::channel(1);
    steps.send(demo::begin("controller", &[demo::KIND, "demo.v1.Other"])).await.unwrap();
    let syncing = tokio::spawn(async move { publisher.sync(ReceiverStream::new(received)).await });
    let waits = format!(
        "kind {}: waits for the sync of controller\nkind demo.v1.Other: waits for the sync of controller\n",
        demo::KIND
    );
    let poll = async { while readiness(&server).await != (503, waits.clone()) {} };
    wait::for_it("the sync to begin", poll).await;
    assert_eq!(metric(&server, "nimbus_bus_kinds_incomplete").await, 2.0);
    assert_eq!(metric(&server, "nimbus_bus_ready").await, 0.0);
    assert_eq!(get(&server.admin, "/livez").await.status, 200, "a restart would not help");

    steps.send(demo::end()).await.unwrap();
    syncing.await.unwrap().unwrap();
    assert_eq!(readiness(&server).await, (200, "ready\n".to_owned()));
    assert_eq!(metric(&server, "nimbus_bus_ready").await, 1.0);
}

#[tokio::test]
async fn a_bus_that_drains_is_alive_and_not_ready() {
    let server = Server::start(&["--drain", "3600"]);
    let mut publisher = PublisherClient::new(connect(&server).await);
    // A call under way keeps the bus from being done.
    let (steps, received) = tokio::sync::mpsc::channel(1);
    steps.send(demo::begin("controller", &[demo::KIND])).await.unwrap();
    let syncing = tokio::spawn(async move { publisher.sync(ReceiverStream::new(received)).await });
    let poll = async { while readiness(&server).await.0 == 200 {} };
    wait::for_it("the sync to begin", poll).await;

    server.signal("TERM");
    let poll = async { while !readiness(&server).await.1.starts_with("draining: the bus is shutting down\n") {} };
    wait::for_it("the drain to begin", poll).await;
    assert_eq!(get(&server.admin, "/livez").await.status, 200);
    steps.send(demo::end()).await.unwrap();
    syncing.await.unwrap().unwrap();
    let code = tokio::task::spawn_blocking(move || server.wait()).await.unwrap().code();
    assert_eq!(code, Some(0), "it ends when nothing is under way any more");
}

#[tokio::test]
async fn who_stalls_or_sends_garbage_hurts_neither_the_bus_nor_those_who_mean_well() {
    let server = Server::start(&[]);
    let admin = server.admin.parse().unwrap();
    // More than are kept, some of which have begun to speak.
    let mut stalled = Vec::new();
    for at in 0..200 {
        let mut stream = TcpStream::connect(admin).await.unwrap();
        // The oldest ones are ended meanwhile.
        drop(stream.write_all(&b"GET /metrics HTTP/1.1\r\nhost: x\r\n"[..at % 30]).await);
        stalled.push(stream);
    }
    let cases: [(&str, Vec<u8>, &str); 5] = [
        ("a preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), "HTTP/1.1 4"),
        ("no HTTP at all", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), ""),
        ("headers without end", [&b"GET / HTTP/1.1\r\nx: "[..], &[b'x'; 1 << 20]].concat(), "HTTP/1.1 431"),
        ("many headers", [&b"GET / HTTP/1.1\r\n"[..], &b"x: y\r\n".repeat(1_000), b"\r\n"].concat(), "HTTP/1.1 431"),
        ("two requests at once", b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(2), "HTTP/1.1 200"),
    ];
    for (what, bytes, begins) in cases {
        let answer = raw::talk_back(admin, bytes).await;
        let answer = String::from_utf8_lossy(&answer);
        // Bytes that nobody read may reset the connection before the answer is read.
        assert!(answer.is_empty() || answer.starts_with(begins), "{what}: {answer}");
        assert!(answer.matches("HTTP/1.1").count() <= 1, "{what}: one connection is for one request: {answer}");
        assert_eq!(get(&server.admin, "/livez").await.body, "ok\n", "after {what}");
    }
    let mut publisher = PublisherClient::new(connect(&server).await);
    publisher
        .apply(demo::apply("person", vec![demo::upsert(demo::policy("a", "z", 1))]))
        .await
        .unwrap();
    assert!(metric(&server, "process_open_fds").await < 150.0, "those who stall are few");
}

#[tokio::test]
async fn metrics_say_what_publishers_agents_and_leases_do() {
    let server = Server::start(&["--assume-complete"]);
    let channel = connect(&server).await;
    let (mut publisher, mut bus) = (PublisherClient::new(channel.clone()), BusClient::new(channel.clone()));
    let put = |name: &str, priority| vec![demo::upsert(demo::policy(name, "z", priority))];
    publisher.apply(demo::apply("person", put("a", 1))).await.unwrap();
    let subscribe = v1::SubscribeRequest { agent: "switch-1".to_owned(), ..v1::SubscribeRequest::default() };
    let mut frames = bus.subscribe(subscribe).await.unwrap().into_inner();
    let Some(Frame::Welcome(welcome)) = frames.message().await.unwrap().unwrap().frame else { panic!("no welcome") };
    let mut sequence = 0;
    let mut report = async |revision: u64| {
        sequence += 1;
        let (session, received, applied) = (welcome.session, revision, revision);
        let report = v1::ReportRequest { session, sequence, received, applied, ..v1::ReportRequest::default() };
        bus.clone().report_once(report).await.unwrap();
    };
    report(1).await;

    let revision = publisher.apply(demo::apply("person", put("a", 2))).await.unwrap().into_inner().revision;
    assert_eq!(metric(&server, "nimbus_bus_lag_revisions_max").await, 1.0);
    assert!(metric(&server, "nimbus_bus_lag_seconds_max").await > 0.0);
    assert_eq!(metric(&server, "nimbus_bus_agents_behind").await, 1.0);
    loop {
        let frame = wait::for_it("a frame", frames.message()).await.unwrap().unwrap().frame.unwrap();
        if matches!(&frame, Frame::Batch(batch) if batch.revision == revision) {
            break;
        }
    }
    report(revision).await;
    publisher.apply(demo::apply("person", put("a", 2))).await.unwrap();
    publisher.apply(demo::apply("person", vec![demo::delete(demo::key("a"))])).await.unwrap();
    let fenced = v1::ApplyRequest { fence: 7, ..demo::apply("person", put("b", 1)) };
    publisher.apply(fenced).await.unwrap();
    publisher.apply(demo::apply("person", put("b", 2))).await.unwrap_err();
    let lease = v1::AcquireRequest { name: "leader".to_owned(), holder: "one".to_owned(), ttl_ms: 100 };
    LeasesClient::new(channel).acquire(lease).await.unwrap();

    for (name, value) in [
        ("nimbus_bus_sessions", 1.0),
        ("nimbus_bus_subscriptions{state=\"live\"}", 1.0),
        ("nimbus_bus_agents{state=\"connected\"}", 1.0),
        ("nimbus_bus_answers_total{mode=\"MODE_SNAPSHOT\"}", 1.0),
        ("nimbus_bus_reports_total", 2.0),
        ("nimbus_bus_received_seconds_count", 1.0),
        ("nimbus_bus_applied_seconds_count", 1.0),
        ("nimbus_bus_kind_applied_seconds_count{kind=\"demo.v1.NetworkPolicy\"}", 1.0),
        ("nimbus_bus_transactions_total{outcome=\"committed\"}", 5.0),
        ("nimbus_bus_transactions_refused_total{reason=\"fenced\"}", 1.0),
        ("nimbus_bus_errors_total{code=\"FAILED_PRECONDITION\"}", 1.0),
        ("nimbus_bus_errors_total{code=\"INTERNAL\"}", 0.0),
        ("nimbus_bus_changes_total{effect=\"created\"}", 2.0),
        ("nimbus_bus_changes_total{effect=\"updated\"}", 1.0),
        ("nimbus_bus_changes_total{effect=\"unchanged\"}", 1.0),
        ("nimbus_bus_changes_total{effect=\"deleted\"}", 1.0),
        ("nimbus_bus_commit_seconds_count", 5.0),
        ("nimbus_bus_used{limit=\"objects\"}", 1.0),
        ("nimbus_bus_used{limit=\"tombstones\"}", 1.0),
        ("nimbus_bus_used{limit=\"publishers\"}", 1.0),
        ("nimbus_bus_revision", 4.0),
        ("nimbus_bus_leases_acquired_total", 1.0),
        ("nimbus_bus_connections_accepted_total", 1.0),
        ("nimbus_bus_connections", 1.0),
    ] {
        assert_eq!(metric(&server, name).await, value, "{name}");
    }
    assert!(metric(&server, "nimbus_bus_sent_events_total").await >= 2.0);
    assert!(metric(&server, "nimbus_bus_sent_batches_total").await >= 2.0);
    metric_becomes(&server, "nimbus_bus_leases_expired_total", 1.0).await;

    // What is followed is the newest change, and everybody has it when the agent says so.
    report(metric(&server, "nimbus_bus_revision").await as u64).await;
    metric_becomes(&server, "nimbus_bus_lag_revisions_max", 0.0).await;
    let poll = async { while metric(&server, "nimbus_bus_propagated_seconds_count").await < 1.0 {} };
    wait::for_it("a sample of how long it takes", poll).await;
}

/// The names in a table of Markdown whose first column is a metric.
fn documented() -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/OPERATIONS.md");
    let text = fs::read_to_string(path).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let metrics = rows.filter(|name| name.starts_with("nimbus_") || name.starts_with("process_"));
    metrics.map(str::to_owned).collect()
}

#[tokio::test]
async fn every_metric_is_documented_and_every_documented_one_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start_in(&directory.path().join("nimbus.redb"), &[]);
    let metrics = get(&server.admin, "/metrics").await.body;
    let told: BTreeSet<String> = (metrics.lines())
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .map(str::to_owned)
        .collect();
    let documented = documented();
    let missing: Vec<_> = told.difference(&documented).collect();
    let surplus: Vec<_> = documented.difference(&told).collect();
    assert!(missing.is_empty(), "not in docs/OPERATIONS.md: {missing:#?}");
    assert!(surplus.is_empty(), "in docs/OPERATIONS.md, but not told: {surplus:#?}");
}
