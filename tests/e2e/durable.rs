//! A bus that keeps its objects in a file: what a restart changes for others, which is nothing, and what it does with a
//! file or a disk that is not as it should be.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use nimbus_core::LeafHasher;
use nimbus_wire::v1::{
    self, Mode, bus_client::BusClient, event::Change, frame::Frame, leases_client::LeasesClient,
    publisher_client::PublisherClient,
};
use redb::{Database, ReadableDatabase as _, TableDefinition};
use tempfile::TempDir;
use tonic::{Code, Streaming, transport::Channel};

use crate::{
    demo, http_client,
    server::{Server, binary, program},
    wait,
};

const PUBLISHER: &str = "person";

/// A directory of its own, and a file in it that is not there yet.
fn place() -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("nimbus.redb");
    (directory, file)
}

async fn clients(server: &Server) -> (BusClient<Channel>, PublisherClient<Channel>) {
    let channel = Channel::from_shared(server.url()).unwrap().connect().await.unwrap();
    (BusClient::new(channel.clone()), PublisherClient::new(channel))
}

async fn frame(frames: &mut Streaming<v1::Frame>) -> Frame {
    let frame = wait::for_it("a frame", frames.message()).await.unwrap();
    frame.expect("the stream goes on").frame.expect("a frame says what it is")
}

/// What a bus says that cannot start.
fn refused(file: &Path) -> String {
    let store = format!("redb:{}", file.display());
    let arguments = ["serve", "--admin", "none", "--listen", "127.0.0.1:0", "--store", &store];
    let Output { status, stdout, stderr } =
        Command::new(binary()).args(arguments).env("NIMBUS_LOG", "off").output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!((status.code(), &*stdout), (Some(1), &b""[..]), "{said}");
    assert!(said.contains(&*file.display().to_string()), "{said}");
    said
}

/// A file with one policy in that zone.
async fn make_file(file: &Path, zone: &str) {
    let server = Server::start_in(file, &[]);
    let (_, mut publisher) = clients(&server).await;
    let op = demo::upsert(demo::policy("web", zone, 1));
    publisher.apply(demo::apply(PUBLISHER, vec![op])).await.unwrap();
    assert_eq!(server.stop().code(), Some(0));
}

#[tokio::test]
async fn a_subscriber_goes_on_where_it_was_after_the_bus_was_killed() {
    let (_directory, file) = place();
    let server = Server::start_in(&file, &[]);
    let (mut bus, mut publisher) = clients(&server).await;
    let policies = ["one", "two", "three"].map(|name| demo::policy(name, "a", 1)).into();
    publisher.sync(tokio_stream::iter(demo::sync(PUBLISHER, policies))).await.unwrap();
    let subscribe = v1::SubscribeRequest { agent: "switch".to_owned(), ..v1::SubscribeRequest::default() };
    let mut frames = bus.subscribe(subscribe.clone()).await.unwrap().into_inner();
    let Frame::Welcome(v1::Welcome { position: Some(position), .. }) = frame(&mut frames).await else {
        panic!("no welcome")
    };
    let end = loop {
        if let Frame::SnapshotEnd(end) = frame(&mut frames).await {
            break end;
        }
    };
    // What happens from here on, the subscriber is not there to see.
    drop(frames);
    let ops = vec![demo::upsert(demo::policy("one", "b", 2)), demo::delete(demo::key("two"))];
    let written = publisher.apply(demo::apply(PUBLISHER, ops)).await.unwrap().into_inner();
    server.signal("KILL");
    drop(server);

    let server = Server::start_in(&file, &[]);
    let (mut bus, mut publisher) = clients(&server).await;
    let list = bus.list(v1::ListRequest::default()).await.unwrap().into_inner();
    assert_eq!((list.epoch, list.revision), (written.epoch, written.revision));
    assert_eq!((list.objects.len(), list.incomplete_kinds.len()), (2, 0));
    let position = v1::Position { revision: end.revision, ..position };
    let resume = v1::Resume { position: Some(position), root: end.digest, ..v1::Resume::default() };
    let resumed = v1::SubscribeRequest { resume: Some(resume), ..subscribe };
    let mut frames = bus.subscribe(resumed).await.unwrap().into_inner();
    let Frame::Welcome(welcome) = frame(&mut frames).await else { panic!("no welcome") };
    assert_eq!((welcome.mode(), welcome.position.unwrap().epoch), (Mode::Delta, position.epoch));
    let (mut changes, mut revision) = (Vec::new(), 0);
    // A group may be of several batches; the last one has the revision.
    while revision == 0 {
        let Frame::Batch(batch) = frame(&mut frames).await else { panic!("no changes") };
        changes.extend(batch.events.into_iter().map(|event| match event.change.unwrap() {
            Change::Put(object) => (object.name, true),
            Change::Delete(removal) => (removal.name, false),
        }));
        revision = batch.revision;
    }
    assert_eq!(revision, written.revision);
    assert_eq!(changes, [("one".to_owned(), true), ("two".to_owned(), false)]);

    let op = demo::upsert(demo::policy("four", "a", 1));
    let next = publisher.apply(demo::apply(PUBLISHER, vec![op])).await.unwrap().into_inner();
    assert_eq!((next.epoch, next.revision), (written.epoch, written.revision + 1));
}

#[tokio::test]
async fn leases_fences_and_registered_kinds_outlive_the_bus() {
    let (_directory, file) = place();
    let acquire = async |server: &Server, holder: &str| {
        let request = v1::AcquireRequest { name: "leader".to_owned(), holder: holder.to_owned(), ttl_ms: 600_000 };
        let mut leases = LeasesClient::connect(server.url()).await.unwrap();
        let v1::AcquireResponse { granted, lease } = leases.acquire(request).await.unwrap().into_inner();
        (granted, lease.unwrap())
    };
    let server = Server::start_in(&file, &[]);
    let (_, mut publisher) = clients(&server).await;
    let descriptor_set = demo::descriptor_set().into();
    let register = v1::RegisterKindsRequest { descriptor_set, kinds: Vec::new() };
    publisher.register_kinds(register).await.unwrap();
    let ops = vec![demo::upsert(demo::policy("one", "a", 1)), demo::upsert(demo::policy("two", "b", 1))];
    publisher
        .apply(v1::ApplyRequest { fence: 7, ..demo::apply(PUBLISHER, ops) })
        .await
        .unwrap();
    let (_, first) = acquire(&server, "first").await;
    server.signal("KILL");
    drop(server);

    let server = Server::start_in(&file, &[]);
    let (granted, held) = acquire(&server, "second").await;
    assert_eq!((granted, &*held.holder, held.token), (false, "first", first.token));
    let (mut bus, mut publisher) = clients(&server).await;
    let fenced = publisher.apply(v1::ApplyRequest { fence: 6, ..demo::apply(PUBLISHER, vec![]) }).await;
    assert_eq!(fenced.unwrap_err().code(), Code::FailedPrecondition);
    let kinds = bus.list_kinds(v1::ListKindsRequest {}).await.unwrap().into_inner().kinds;
    assert!(kinds.iter().any(|kind| kind.kind == demo::KIND && kind.registered), "{kinds:?}");
    let filter = v1::Filter { fields: vec!["spec.zone=b".to_owned()], ..v1::Filter::default() };
    let request = v1::ListRequest { kinds: vec![demo::KIND.to_owned()], filter: Some(filter), ..Default::default() };
    let found = bus.list(request).await.unwrap().into_inner().objects;
    assert_eq!(found.iter().map(|object| &*object.name).collect::<Vec<_>>(), ["two"]);

    let release = v1::ReleaseRequest { leases: vec![v1::LeaseToken { name: "leader".to_owned(), token: first.token }] };
    LeasesClient::connect(server.url()).await.unwrap().release(release).await.unwrap();
    assert_eq!(server.stop().code(), Some(0));
    let server = Server::start_in(&file, &[]);
    let (granted, second) = acquire(&server, "second").await;
    assert!(granted && second.token > first.token, "{second:?} after {first:?}");
}

#[tokio::test]
async fn a_second_bus_on_the_same_file_is_refused() {
    let (_directory, file) = place();
    let _server = Server::start_in(&file, &[]);
    let said = refused(&file);
    assert!(said.contains("is in use (hint: is another bus running on it?)"), "{said}");
}

#[tokio::test]
async fn a_damaged_file_is_refused_and_left_as_it_is() {
    const MARK: &str = "a-zone-that-is-nowhere-else";
    let (_directory, file) = place();
    make_file(&file, MARK).await;
    let mut bytes = fs::read(&file).unwrap();
    let at: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(MARK.as_bytes())).collect();
    assert!(!at.is_empty());
    at.iter().for_each(|at| bytes[*at] ^= 1);
    fs::write(&file, &bytes).unwrap();
    for _ in 0..2 {
        let said = refused(&file);
        assert!(said.contains("is damaged: ") && said.contains("hint: restore a backup"), "{said}");
        assert!(fs::read(&file).unwrap() == bytes, "the file has changed");
    }
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused_and_left_as_it_is() {
    const META: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("meta");
    const CHECKSUM: usize = 16;
    let (_directory, file) = place();
    make_file(&file, "a").await;
    let database = Database::open(&file).unwrap();
    let row = database
        .begin_read()
        .unwrap()
        .open_table(META)
        .unwrap()
        .get(&b"meta"[..])
        .unwrap()
        .unwrap();
    let mut body = row.value()[CHECKSUM..].to_vec();
    drop(row);
    assert_eq!(body[..2], [8, 2], "the format comes first");
    body[1] = 3;
    let mut hasher = LeafHasher::extra();
    [&b"meta"[..], b"meta", &body].into_iter().for_each(|part| hasher.part(part));
    let row = [hasher.finish().as_bytes(), &*body].concat();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(META).unwrap().insert(&b"meta"[..], &*row).unwrap();
    transaction.commit().unwrap();
    drop(database);

    let before = fs::read(&file).unwrap();
    let said = refused(&file);
    assert!(said.contains("has format 3, this version reads up to 2 (hint: was this program downgraded?)"), "{said}");
    assert!(fs::read(&file).unwrap() == before, "the file has changed");
}

#[tokio::test]
async fn on_a_full_disk_writes_are_refused_and_reads_go_on() {
    /// In blocks of 512 bytes or of 1024, as the shell likes. Either way there is an end.
    const BLOCKS: u32 = 16 << 10;
    const OBJECT: usize = 200 << 10;
    let (_directory, file) = place();
    // A limit on the size of files fails as a full disk does, if the signal that comes with it is ignored.
    let script = format!(
        "trap '' XFSZ; ulimit -f {BLOCKS}; exec \"$0\" serve --listen 127.0.0.1:0 --admin 127.0.0.1:0 --store \"$1\""
    );
    let store = format!("redb:{}", file.display());
    let server = Server::spawn(Command::new("sh").args(["-c", &script]).arg(binary()).arg(store));
    let (mut bus, mut publisher) = clients(&server).await;
    let object = |n: usize| v1::Object {
        name: format!("o{n}"),
        spec: Some(demo::pack("demo.v1.Blob", vec![n as u8; OBJECT])),
        ..v1::Object::default()
    };
    let mut accepted = 0;
    let refused = loop {
        let request = demo::apply(PUBLISHER, vec![demo::upsert(object(accepted))]);
        match wait::for_it("an answer", publisher.apply(request)).await {
            Ok(_) => accepted += 1,
            Err(status) => break status,
        }
    };
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    let hint = "could not be written, so that nothing is accepted until a restart";
    assert!(refused.message().contains(hint) && refused.message().contains("is the disk full"), "{refused}");
    assert!(accepted > 0);
    let again = publisher.apply(demo::apply(PUBLISHER, vec![demo::upsert(object(0))])).await;
    assert_eq!(again.unwrap_err().code(), Code::Unavailable);
    for page in ["/livez", "/readyz"] {
        let told = http_client::get(&server.admin, page).await;
        assert_eq!(told.status, 503, "{page}: {told:?}");
        assert!(told.body.starts_with("store: ") && told.body.contains(hint), "{page}: {told:?}");
    }
    let metrics = http_client::get(&server.admin, "/metrics").await;
    for line in ["nimbus_bus_store_failed 1", "nimbus_bus_store_failures_total 1", "nimbus_bus_ready 0"] {
        assert!(metrics.body.lines().any(|other| other == line), "{line} is not in {}", metrics.body);
    }
    let last =
        v1::GetRequest { kind: "demo.v1.Blob".to_owned(), name: format!("o{}", accepted - 1), ..Default::default() };
    bus.get(last.clone()).await.unwrap();
    server.signal("KILL");
    drop(server);

    // There is room again.
    let server = Server::start_in(&file, &[]);
    let (mut bus, mut publisher) = clients(&server).await;
    bus.get(last).await.unwrap();
    publisher
        .apply(demo::apply(PUBLISHER, vec![demo::upsert(object(accepted + 1))]))
        .await
        .unwrap();
}

#[test]
fn nothing_is_lost_however_often_the_bus_is_killed() {
    let testkit = program("nimbus-testkit", "nimbus-testkit");
    let arguments = ["powercut", "--kills", "8", "--seed", "7", "--nimbus"];
    let Output { status, stdout, stderr } = Command::new(testkit).args(arguments).arg(binary()).output().unwrap();
    let (said, complained) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{said}{complained}");
}
