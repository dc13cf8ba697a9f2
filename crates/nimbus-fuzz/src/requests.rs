//! Requests, as a bus gets them.

use std::{collections::BTreeMap, sync::Arc, sync::LazyLock, time::Duration};

use bytes::{Buf as _, Bytes};
use http_body_util::{BodyExt as _, Full};
use nimbus_bus::{Bus, Config, Metrics};
use nimbus_client::{Effect, Item, Mirror};
use nimbus_core::Epoch;
use nimbus_wire::v1;
use prometheus_client::registry::Registry;
use prost::Message;
use prost_types::FileDescriptorSet;
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};
use tonic::{Code, Status, body::Body};
use tower::ServiceExt as _;

use crate::script::{self, Part};

/// A call that goes on: its message comes after those of the call before, on the same stream.
pub(crate) const GOES_ON: u8 = 0x80;

/// Time stands still where nothing else is left to do, so that this takes none.
const IDLE: Duration = Duration::from_secs(1);

/// A subscriber that is told more often that nothing happens is not told anything else.
const MAX_CHUNKS: usize = 64;

/// The path of every call that there is, those of the contract first.
pub(crate) static PATHS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let set = FileDescriptorSet::decode(v1::FILE_DESCRIPTOR_SET).unwrap();
    let mut paths = Vec::new();
    for file in set.file.iter().filter(|file| file.package() == "nimbus.v1") {
        for service in &file.service {
            let method = |name: &str| format!("/nimbus.v1.{}/{name}", service.name());
            paths.extend(service.method.iter().map(|each| method(each.name())));
        }
    }
    paths.sort();
    paths.push("/grpc.health.v1.Health/Check".to_owned());
    paths.push("/grpc.health.v1.Health/Watch".to_owned());
    paths.push("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo".to_owned());
    paths.push("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo".to_owned());
    paths
});

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) path: &'static str,
    pub(crate) messages: Vec<Bytes>,
    /// How it ended, if it did.
    pub(crate) status: Option<Status>,
    /// Streams stay open until the script ends.
    _open: Option<Body>,
}

/// A script of calls to a new bus. Nothing panics, whoever is refused is told why, a refusal changes nothing, and in the end a
/// subscriber holds exactly what a list shows.
pub(crate) fn check(bytes: &[u8]) {
    let runtime = runtime();
    runtime.block_on(async {
        let (bus, answers) = run(bytes, true).await;
        converges(&bus).await;
        drop(answers);
    });
}

pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

/// Does what a script says, and checks it if that is wanted.
pub(crate) async fn run(bytes: &[u8], checked: bool) -> (Bus, Vec<Answer>) {
    let mut config = Config::new(Epoch(7), 1 << 20);
    config.assume_complete = true;
    let bus = Bus::new(config, Metrics::new(&mut Registry::default()));
    let mut answers = Vec::new();
    let parts = script::read(bytes);
    for call in parts.chunk_by(|_, next| next.tag & GOES_ON != 0) {
        let path = &PATHS[usize::from(call[0].tag & !GOES_ON) % PATHS.len()];
        let messages: Vec<&[u8]> = call.iter().map(|part: &Part<'_>| part.body).collect();
        let head = bus.store().state().head();
        let answer = ask(&bus, path, &messages).await;
        if checked {
            let refused = answer.status.as_ref().filter(|status| status.code() != Code::Ok);
            if let Some(status) = refused {
                is_clear(path, status);
            }
            let is_dry = v1::ApplyRequest::decode(messages[0]).is_ok_and(|request| request.dry_run);
            if path.ends_with("/Apply") && (refused.is_some() || is_dry) {
                assert_eq!(bus.store().state().head(), head, "{path} was refused, or a rehearsal: {refused:?}");
            }
            if path.ends_with("/Apply") && refused.is_none() {
                is_quiet(&bus, path, &messages).await;
            }
        }
        answers.push(answer);
    }
    (bus, answers)
}

/// Every refusal says what is wrong, in words and as a code that a caller can act on.
fn is_clear(path: &str, status: &Status) {
    assert!(!status.message().is_empty(), "{path} was refused without a reason: {status:?}");
    let malformed = status.message().contains("failed to decode Protobuf message");
    let clear = match status.code() {
        Code::Ok | Code::Unknown | Code::DataLoss | Code::Cancelled => false,
        Code::Internal => malformed,
        // Not to be had at all, or not of a bus in memory.
        Code::Unimplemented => !path.starts_with("/nimbus."),
        _ => true,
    };
    assert!(clear, "{path} was refused unclearly: {status:?}");
}

/// Writing what is there changes nothing.
async fn is_quiet(bus: &Bus, path: &'static str, messages: &[&[u8]]) {
    let head = bus.store().state().head();
    let again = ask(bus, path, messages).await;
    if again.status.is_some_and(|status| status.code() == Code::Ok) {
        assert_eq!(bus.store().state().head(), head, "the same was written twice");
    }
}

/// A subscriber that has nothing is given exactly what a list shows.
async fn converges(bus: &Bus) {
    let everything = v1::SubscribeRequest::default().encode_to_vec();
    let answer = ask(bus, "/nimbus.v1.Bus/Subscribe", &[&everything]).await;
    let mut mirror: Mirror<Arc<Item>> = Mirror::default();
    let mut is_exact = false;
    for message in &answer.messages {
        let effect = mirror.take(v1::Frame::decode(message.clone()).unwrap()).unwrap();
        is_exact = match effect {
            Effect::Mismatch { mismatch, .. } => panic!("{mismatch}"),
            Effect::Changes { position, .. } => position.is_some(),
            _ => is_exact,
        };
    }
    assert!(is_exact, "the snapshot did not end: {answer:?}");
    let held: BTreeMap<_, _> = mirror.items().map(|item| (item.key().to_string(), &item.object)).collect();

    let mut listed = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = v1::ListRequest { page_token, ..v1::ListRequest::default() }.encode_to_vec();
        let page = ask(bus, "/nimbus.v1.Bus/List", &[&request]).await;
        let page = v1::ListResponse::decode(page.messages[0].clone()).unwrap();
        listed.extend(page.objects);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(held.into_values().cloned().collect::<Vec<_>>().len(), listed.len());
    let held: Vec<_> = mirror.items().map(|item| &item.object).collect();
    for object in &listed {
        assert!(held.contains(&object), "{object:?} is listed, and not sent like that");
    }
}

/// Makes a call, and reads what comes of it until it ends or nothing more comes.
pub(crate) async fn ask(bus: &Bus, path: &'static str, messages: &[&[u8]]) -> Answer {
    let mut body = Vec::new();
    for message in messages {
        body.push(0);
        body.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
        body.extend(*message);
    }
    let request = http::Request::post(path)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let Ok(response) = timeout(IDLE, bus.routes().oneshot(request)).await else {
        return Answer { path, messages: Vec::new(), status: None, _open: None };
    };
    let (head, mut body) = response.unwrap().into_parts();
    let mut status = Status::from_header_map(&head.headers);
    let mut received = Vec::new();
    let mut ended = status.is_some();
    for _ in 0..MAX_CHUNKS {
        if ended {
            break;
        }
        match timeout(IDLE, body.frame()).await {
            Err(_) => break,
            Ok(None) => ended = true,
            Ok(Some(Err(error))) => {
                status = Some(error);
                ended = true;
            }
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => received.extend(data),
                Err(frame) => {
                    status = frame.trailers_ref().and_then(Status::from_header_map);
                    ended = true;
                }
            },
        }
    }
    Answer { path, messages: split(received.into()), status, _open: (!ended).then_some(body) }
}

fn split(mut bytes: Bytes) -> Vec<Bytes> {
    let mut messages = Vec::new();
    while bytes.len() >= 5 {
        assert_eq!(bytes.get_u8(), 0, "not compressed");
        let length = bytes.get_u32() as usize;
        messages.push(bytes.split_to(length));
    }
    assert!(bytes.is_empty(), "half a message");
    messages
}
