//! A client as the protocol describes it: a loop over frames and a map.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::Duration,
};

use nimbus_core::{BucketSet, Buckets, Digest};
use nimbus_wire::v1::{self, bus_client::BusClient, event::Change, frame::Frame, notice::Notice};
use tonic::{
    Streaming,
    transport::{Channel, Endpoint},
};

use crate::world::{History, KINDS, Offer, PUBLISHER};

/// What a client wants to see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    /// A bit for each kind; 0 is all of them.
    pub(crate) kinds: u8,
    pub(crate) label: u8,
    pub(crate) filter: u8,
}

type Key = (String, String, String);

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Held {
    pub(crate) object: v1::Object,
    pub(crate) digest: Digest,
}

pub(crate) struct Client {
    agent: Option<String>,
    wish: Wish,
    /// Asked for, but not in effect yet.
    next_wish: Option<Wish>,
    pub(crate) held: BTreeMap<Key, Held>,
    position: Option<v1::Position>,
    /// The last one that it had, though a snapshot may have taken it away.
    newest: Option<v1::Position>,
    /// Events since somebody set it to 0.
    pub(crate) events: usize,
    session: Option<Session>,
    sequence: u64,
}

struct Session {
    bus: BusClient<Channel>,
    frames: Streaming<v1::Frame>,
    welcome: Option<v1::Welcome>,
    snapshot: Option<(BucketSet, BTreeSet<Key>)>,
    /// Revisions of this session, which only rise.
    revisions: BTreeMap<Key, u64>,
    /// Changes of a group that is not complete yet.
    staged: Vec<v1::Event>,
    /// It holds its feed exactly: neither has the scope changed since, nor is the session too young.
    exact: bool,
}

impl Client {
    pub(crate) fn new(agent: Option<String>, wish: Wish) -> Self {
        Self {
            agent,
            wish,
            next_wish: None,
            held: BTreeMap::new(),
            position: None,
            newest: None,
            events: 0,
            session: None,
            sequence: 0,
        }
    }

    /// Drops the connection, whatever was on it, and makes another one.
    pub(crate) async fn connect(&mut self, address: SocketAddr, offer: Offer) {
        self.session = None;
        if let Some(wish) = self.next_wish.take() {
            self.wish = wish;
        }
        let holds = !self.held.is_empty() || self.position.is_some();
        let resume = holds.then(|| {
            let mut buckets = Buckets::default();
            self.held.values().for_each(|held| buckets.toggle(held.digest));
            v1::Resume {
                position: self.position.filter(|_| offer.position),
                root: if offer.digests { buckets.root().as_bytes().to_vec().into() } else { Vec::new().into() },
                buckets: if offer.digests { buckets.to_vec().into() } else { Vec::new().into() },
                origins: self.origins(),
            }
        });
        let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
        let mut bus = BusClient::new(channel);
        let request = v1::SubscribeRequest {
            kinds: self.wish.kind_names(),
            filter: self.wish.filter(),
            agent: self.agent.clone().unwrap_or_default(),
            agent_labels: if self.agent.is_some() { self.wish.labels() } else { BTreeMap::new() },
            resume,
            ..Default::default()
        };
        let frames = bus.subscribe(request).await.unwrap().into_inner();
        let (snapshot, revisions, staged, exact) = (None, BTreeMap::new(), Vec::new(), false);
        self.session = Some(Session { bus, frames, welcome: None, snapshot, revisions, staged, exact });
        self.sequence = 0;
    }

    fn origins(&self) -> Vec<v1::Origin> {
        let kinds: BTreeSet<_> = self.held.values().map(|held| held.object.kind.clone()).collect();
        let origin = v1::Origin { manager: PUBLISHER.into(), kinds: kinds.into_iter().collect() };
        if origin.kinds.is_empty() { Vec::new() } else { vec![origin] }
    }

    pub(crate) async fn rescope(&mut self, wish: Wish) {
        let session = self.session.as_mut().unwrap();
        let Some(welcome) = &session.welcome else { return };
        if self.next_wish.is_some() {
            return;
        }
        self.sequence += 1;
        let rescope = v1::Rescope {
            kinds: wish.kind_names(),
            filter: wish.filter(),
            agent_labels: if self.agent.is_some() { wish.labels() } else { BTreeMap::new() },
        };
        let report = v1::ReportRequest {
            session: welcome.session,
            sequence: self.sequence,
            rescope: Some(rescope),
            ..Default::default()
        };
        session.bus.report_once(report).await.unwrap();
        self.next_wish = Some(wish);
    }

    pub(crate) fn is_waiting(&self) -> bool {
        let welcome = self.session.as_ref().and_then(|session| session.welcome.as_ref());
        let fresh = self.held.is_empty() && self.position.is_none();
        welcome.is_some_and(|welcome| welcome.mode() == v1::Mode::Waiting) || fresh
    }

    /// Takes one frame, if one comes soon.
    pub(crate) async fn read(&mut self, history: &History, patience: Duration) -> bool {
        let session = self.session.as_mut().unwrap();
        match tokio::time::timeout(patience, session.frames.message()).await {
            Err(_) => false,
            Ok(frame) => {
                let frame = frame.unwrap().expect("the bus does not end a stream").frame.unwrap();
                let alive = matches!(&frame, Frame::Batch(batch) if *batch == v1::Batch::default());
                let waits = matches!(&frame, Frame::Welcome(welcome) if welcome.mode() == v1::Mode::Waiting);
                self.take(frame, history);
                !alive && !waits
            }
        }
    }

    /// Reads until a bookmark says that there is no more.
    pub(crate) async fn read_to(&mut self, history: &History, epoch: u64, head: u64) {
        let guard = tokio::time::Instant::now() + Duration::from_secs(60);
        loop {
            self.read(history, Duration::from_secs(10)).await;
            let there = self.position.is_some_and(|position| position.epoch == epoch && position.revision == head);
            let quiet = self.session.as_ref().is_some_and(|session| session.snapshot.is_none() && session.exact);
            if there && quiet && self.next_wish.is_none() {
                return self.check(history, head);
            }
            assert!(tokio::time::Instant::now() < guard, "no bookmark at {head}: {:?}", self.position);
        }
    }

    fn take(&mut self, frame: Frame, history: &History) {
        let session = self.session.as_mut().unwrap();
        match frame {
            Frame::Welcome(welcome) => {
                assert!(session.welcome.as_ref().is_none_or(|old| old.mode() == v1::Mode::Waiting));
                session.welcome = Some(welcome);
            }
            Frame::SnapshotBegin(begin) => {
                let buckets = BucketSet::from_slice(&begin.buckets).unwrap_or(BucketSet::ALL);
                // Until its end, what is held is that of no revision.
                self.position = None;
                session.snapshot = Some((buckets, BTreeSet::new()));
                // A snapshot may repeat what the client has, but nothing older.
                session.revisions.values_mut().for_each(|revision| *revision = revision.saturating_sub(1));
            }
            Frame::Batch(batch) => {
                let committed = batch.revision != 0;
                session.staged.extend(batch.events);
                if session.snapshot.is_some() || committed {
                    self.apply();
                }
                if committed {
                    assert!(self.session.as_ref().unwrap().snapshot.is_none(), "a position within a snapshot");
                    self.arrive(batch.revision, None, history);
                }
            }
            Frame::SnapshotEnd(end) => {
                let (buckets, seen) = session.snapshot.take().expect("an end without a beginning");
                self.held
                    .retain(|key, held| !buckets.contains(held.digest.bucket()) || seen.contains(key));
                assert_eq!(self.held.len() as u64, end.objects);
                self.arrive(end.revision, Some(&end.digest), history);
            }
            Frame::Bookmark(bookmark) => {
                assert!(session.snapshot.is_none() && session.staged.is_empty());
                assert_eq!(self.held.len() as u64, bookmark.objects);
                self.arrive(bookmark.revision, Some(&bookmark.digest), history);
            }
            Frame::Notice(notice) => match notice.notice.unwrap() {
                Notice::ScopeChanged(_) => {
                    // The switch makes no revision: what leaves or comes back may do so at the revision that it has.
                    session.revisions.clear();
                    session.exact = false;
                    self.wish = self.next_wish.take().unwrap();
                }
                Notice::GroupRestarted(_) => session.staged.clear(),
                other => panic!("{other:?}"),
            },
        }
    }

    /// Applies a group.
    fn apply(&mut self) {
        let session = self.session.as_mut().unwrap();
        for event in std::mem::take(&mut session.staged) {
            self.events += 1;
            let (key, revision) = match event.change.as_ref().unwrap() {
                Change::Put(put) => ((put.kind.clone(), put.namespace.clone(), put.name.clone()), put.revision),
                Change::Delete(end) => ((end.kind.clone(), end.namespace.clone(), end.name.clone()), end.revision),
            };
            let before = session.revisions.insert(key.clone(), revision);
            assert!(before.is_none_or(|before| before < revision), "{key:?} went from {before:?} to {revision}");
            match event.change.unwrap() {
                Change::Put(object) => {
                    if let Some((_, seen)) = &mut session.snapshot {
                        seen.insert(key.clone());
                    }
                    let digest = Digest::from_slice(&event.digest).unwrap();
                    self.held.insert(key, Held { object, digest });
                }
                Change::Delete(_) => drop(self.held.remove(&key)),
            }
        }
    }

    fn arrive(&mut self, revision: u64, digest: Option<&[u8]>, history: &History) {
        let session = self.session.as_mut().unwrap();
        session.exact = true;
        let position = session.welcome.as_ref().unwrap().position.unwrap();
        let before = self.newest.filter(|before| before.epoch == position.epoch).map(|before| before.revision);
        assert!(before.is_none_or(|before| before <= revision), "the position went back");
        let scope = self.wish_hash();
        self.position = Some(v1::Position { revision, scope, ..position });
        self.newest = self.position;
        if let Some(digest) = digest {
            let root: Digest = self.held.values().map(|held| held.digest).collect();
            assert_eq!(root.as_bytes(), digest);
        }
        self.check(history, revision);
    }

    fn check(&self, history: &History, revision: u64) {
        let epoch = self.position.unwrap().epoch;
        let expected: Vec<_> = history
            .expected(epoch, revision, self.agent.as_deref(), self.wish)
            .iter()
            .map(|record| {
                let key = record.key();
                let id = (key.kind().to_string(), key.namespace().to_owned(), key.name().to_owned());
                (id, record.leaf(self.agent.is_none()))
            })
            .collect();
        let held: Vec<_> = self.held.iter().map(|(key, held)| (key.clone(), held.digest)).collect();
        assert_eq!(held, expected, "at revision {revision}, as {:?}", self.agent);
    }

    fn wish_hash(&self) -> u64 {
        self.wish.scope(self.agent.as_deref()).hash().0
    }
}

impl Wish {
    pub(crate) fn kind_names(self) -> Vec<String> {
        KINDS
            .iter()
            .enumerate()
            .filter(|(at, _)| self.kinds & (1 << at) != 0)
            .map(|(_, kind)| (*kind).into())
            .collect()
    }

    pub(crate) fn labels(self) -> BTreeMap<String, String> {
        [("zone".to_owned(), format!("z{}", self.label))].into()
    }

    pub(crate) fn filter(self) -> Option<v1::Filter> {
        match self.filter {
            0 => None,
            1 => Some(v1::Filter { selector: "tier in (t0,t1)".into(), ..Default::default() }),
            _ => Some(v1::Filter { names: vec!["n1".into(), "n2".into(), "n3".into()], ..Default::default() }),
        }
    }
}
