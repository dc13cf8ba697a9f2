//! A subscriber that reads what there is, and keeps what the protocol tells it to keep.

use std::{collections::BTreeMap, future::poll_fn, pin::Pin, sync::Arc, task::Poll};

use http_body::Body as _;
use nimbus_core::{BucketSet, Buckets, Digest};
use nimbus_wire::v1::{self, event::Change, frame::Frame};
use prost::Message as _;
use tonic::{Status, metadata::MetadataMap};

use crate::{
    identity::Identity,
    inner::Inner,
    subscribe::{answer::Answer, stream::FrameStream},
};

/// The only kind.
pub(super) const KIND: &str = "t.v1.Thing";

/// A subscriber; without a name, an observer.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) agent: &'static str,
    pub(super) held: BTreeMap<String, Digest>,
    /// Where it holds exactly what there was.
    pub(super) position: Option<v1::Position>,
    stream: Option<FrameStream>,
    /// The session that it was given.
    pub(super) session: u64,
    position_of_welcome: Option<v1::Position>,
    /// Of a snapshot under way: the buckets that it covers, and what came in it.
    snapshot: Option<(BucketSet, Vec<String>)>,
}

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) modes: Vec<v1::Mode>,
    pub(super) events: usize,
    pub(super) end: Option<Status>,
    /// Roots and counts that the bus said.
    pub(super) marks: Vec<(Vec<u8>, u64)>,
}

// === impl Reader ===

impl Reader {
    pub(super) fn new(agent: &'static str) -> Self {
        Self { agent, ..Self::default() }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.stream.is_some()
    }

    pub(super) fn is_in_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }

    pub(super) fn buckets(&self) -> Buckets {
        let mut buckets = Buckets::default();
        self.held.values().for_each(|digest| buckets.toggle(*digest));
        buckets
    }

    /// The digest of what it holds, or would hold if the snapshot under way ended here: what is held beside it is swept then.
    pub(super) fn root(&self) -> Digest {
        let is_swept = |name: &String, digest: &Digest| {
            let covers =
                |(buckets, seen): &(BucketSet, Vec<String>)| buckets.contains(digest.bucket()) && !seen.contains(name);
            self.snapshot.as_ref().is_some_and(covers)
        };
        self.held
            .iter()
            .filter(|(name, digest)| !is_swept(name, digest))
            .map(|(_, digest)| *digest)
            .collect()
    }

    /// Subscribes again; an older stream is left to `old`, as a connection that nobody has noticed to be dead.
    pub(super) fn connect(
        &mut self,
        inner: &Arc<Inner>,
        resume: Option<v1::Resume>,
    ) -> Result<Option<FrameStream>, Status> {
        let request = v1::SubscribeRequest {
            kinds: vec![KIND.to_owned()],
            agent: self.agent.to_owned(),
            resume,
            ..v1::SubscribeRequest::default()
        };
        let identity = Identity::of(&MetadataMap::new());
        let answer = Answer::to(inner.clone(), &identity, &request)?;
        self.session = answer.session.id;
        self.snapshot = None;
        Ok(self.stream.replace(FrameStream::new(answer)))
    }

    pub(super) fn leave(&mut self) {
        self.stream = None;
    }

    /// Reads everything that there is now.
    pub(super) async fn read(&mut self) -> Read {
        let mut read = Read::default();
        while let Some(stream) = &mut self.stream {
            match next(stream).await {
                None => break,
                Some(Ok(bytes)) => frames(&bytes).into_iter().for_each(|frame| self.take(frame, &mut read)),
                Some(Err(status)) => {
                    read.end = Some(status);
                    self.leave();
                }
            }
        }
        read
    }

    fn take(&mut self, frame: Frame, read: &mut Read) {
        match frame {
            Frame::Welcome(welcome) => {
                assert_eq!(welcome.session, self.session);
                read.modes.push(welcome.mode());
                self.position_of_welcome = welcome.position;
            }
            Frame::SnapshotBegin(begin) => {
                self.position = None;
                self.snapshot = Some((BucketSet::from_slice(&begin.buckets).unwrap_or(BucketSet::ALL), Vec::new()));
            }
            Frame::Batch(batch) => {
                read.events += batch.events.len();
                batch.events.into_iter().for_each(|event| self.change(event));
                if batch.revision > 0 {
                    assert!(self.snapshot.is_none(), "a position within a snapshot");
                    self.arrive(batch.revision);
                }
            }
            Frame::SnapshotEnd(end) => {
                let (buckets, seen) = self.snapshot.take().expect("an end without a beginning");
                self.held.retain(|name, digest| !buckets.contains(digest.bucket()) || seen.contains(name));
                read.marks.push((end.digest.to_vec(), end.objects));
                self.arrive(end.revision);
            }
            Frame::Bookmark(mark) => {
                read.marks.push((mark.digest.to_vec(), mark.objects));
                self.arrive(mark.revision);
            }
            Frame::Notice(_) => {}
        }
        if let Some((root, objects)) = read.marks.last().filter(|_| self.position.is_some()) {
            let is_at_mark = *objects == self.held.len() as u64 && *root == self.buckets().root().as_bytes();
            assert!(is_at_mark || read.events > 0, "what the bus says is held is not what is held");
        }
    }

    fn change(&mut self, event: v1::Event) {
        match event.change.expect("a change") {
            Change::Put(object) => {
                if let Some((_, seen)) = &mut self.snapshot {
                    seen.push(object.name.clone());
                }
                let digest = Digest::from_slice(&event.digest).expect("a digest");
                self.held.insert(object.name, digest);
            }
            Change::Delete(end) => drop(self.held.remove(&end.name)),
        }
    }

    fn arrive(&mut self, revision: u64) {
        let position = self.position_of_welcome.expect("a welcome comes first");
        self.position = Some(v1::Position { revision, ..position });
    }
}

/// What a stream has now: bytes, or its end.
pub(super) async fn next(stream: &mut FrameStream) -> Option<Result<Vec<u8>, Status>> {
    let polled = poll_fn(|cx| Poll::Ready(Pin::new(&mut *stream).poll_frame(cx))).await;
    match polled {
        Poll::Pending | Poll::Ready(None) => None,
        Poll::Ready(Some(Err(status))) => Some(Err(status)),
        Poll::Ready(Some(Ok(frame))) => Some(match frame.into_data() {
            Ok(bytes) => Ok(bytes.to_vec()),
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                Err(Status::from_header_map(&trailers).expect("the trailers of a call have its status"))
            }
        }),
    }
}

/// The frames in bytes as they travel: a flag, a length, a message.
fn frames(mut bytes: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some((prefix, rest)) = bytes.split_at_checked(5) {
        let len = u32::from_be_bytes(prefix[1..].try_into().expect("four bytes")) as usize;
        let (message, rest) = rest.split_at(len);
        frames.extend(v1::Frame::decode(message).expect("a frame").frame);
        bytes = rest;
    }
    assert!(bytes.is_empty(), "half a frame");
    frames
}
