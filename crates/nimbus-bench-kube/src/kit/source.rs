//! A source that has something to list and then nothing to say.

use std::{
    fmt::Write as _,
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arrayvec::ArrayString;
use bytes::Bytes;
use ctkit::{Acquired, CommitError, Event, Guard, Held, Leases, Record, Source, WatchError};
use nimbus_core::{
    Annotations, Audience, Epoch, Finalizers, Generation, Kind, Labels, ObjectKey, Position, PublisherId, Revision,
    ScopeHash, Spec as _, Uid,
};
use nimbus_store::{Committed, Content, Op, Slot, Txn};
use parking_lot::Mutex;
use tokio_stream::{Stream, StreamExt as _};

use crate::{progress::Progress, resource::WorkloadMessage};

/// Lists objects, once. Takes what is written, counts it and forgets it.
pub(crate) struct Workloads {
    objects: u64,
    pages: Mutex<Vec<Vec<Arc<Record>>>>,
    writes: Arc<AtomicU64>,
    progress: Arc<Progress>,
}

/// Objects in one part of the list: what a page of an API server has.
const PAGE: u64 = 500;

/// Revisions of the objects begin after this.
const BEFORE: u64 = 1_000_000;

// === impl Workloads ===

impl Workloads {
    pub(crate) fn new(objects: u64, pages: Vec<Vec<Arc<Record>>>, progress: Arc<Progress>) -> Self {
        Self { objects, pages: Mutex::new(pages), writes: Arc::default(), progress }
    }

    /// How many writes it has taken.
    pub(crate) fn writes(&self) -> Arc<AtomicU64> {
        self.writes.clone()
    }
}

impl Source for Workloads {
    fn watch(
        &self,
        kind: &Kind,
        _from: Option<Position>,
    ) -> impl Stream<Item = Result<Event, WatchError>> + Send + 'static {
        let pages = if *kind == WorkloadMessage::kind() { mem::take(&mut *self.pages.lock()) } else { Vec::new() };
        let revision = Revision(BEFORE + self.objects);
        let position = Position { epoch: Epoch(1), revision, scope: ScopeHash(0) };
        let events = pages
            .into_iter()
            .map(Event::Listing)
            .chain(std::iter::once(Event::Listed(position)))
            .map(Ok);
        tokio_stream::iter(events).chain(tokio_stream::pending())
    }

    async fn commit(&self, txn: Txn) -> Result<Committed, CommitError> {
        let before = self.writes.fetch_add(txn.steps.len() as u64, Ordering::Relaxed);
        let statuses = txn.steps.iter().filter(|step| matches!(step.op, Op::Status(_))).count();
        self.progress.wrote(statuses as u64);
        Ok(Committed { revision: Revision(BEFORE + self.objects + before + 1), outcomes: Vec::new() })
    }
}

/// There is one instance only, and it never asks.
impl Leases for Workloads {
    async fn acquire(&self, _name: &str, _holder: &str, _ttl: Duration) -> Result<Acquired, CommitError> {
        Err(CommitError::Unavailable("there are no leases here".to_owned()))
    }

    async fn renew(&self, _held: &[Guard]) -> Result<Vec<Arc<str>>, CommitError> {
        Ok(Vec::new())
    }

    async fn release(&self, _held: &[Guard]) -> Result<(), CommitError> {
        Ok(())
    }

    async fn list(&self, _prefix: &str) -> Result<Vec<Held>, CommitError> {
        Ok(Vec::new())
    }
}

/// What is listed, in pages.
pub(crate) fn pages(objects: u64, payload: u32) -> Vec<Vec<Arc<Record>>> {
    let (kind, manager) = (WorkloadMessage::kind(), PublisherId::new("user").expect("it is a name"));
    let page = |first: u64| {
        let numbers = first..objects.min(first + PAGE);
        numbers.map(|number| record(&kind, &manager, number, payload)).collect()
    };
    (0..objects).step_by(PAGE as usize).map(page).collect()
}

/// The n-th object, with what the other side has in it.
fn record(kind: &Kind, manager: &PublisherId, number: u64, payload: u32) -> Arc<Record> {
    let message = WorkloadMessage::new(number, payload);
    let (mut name, mut uid) = (ArrayString::<16>::new(), ArrayString::<36>::new());
    write!(name, "workload-{number:07}").expect("there is room for it");
    write!(uid, "00000000-0000-4000-8000-{number:012x}").expect("there is room for it");
    let content = Content {
        key: ObjectKey::new(kind.clone(), "default", &name).expect("it is a name"),
        uid: Uid::new(&uid).expect("it is a name"),
        generation: Generation(1),
        labels: Labels::try_from([("zone", &*message.zone)]).expect("it is a label"),
        refs: Arc::default(),
        owner: None,
        manager: manager.clone(),
        annotations: Annotations::default(),
        finalizers: Finalizers::default(),
        deleting: false,
        audience: Audience::Everyone,
        spec: message.pack_to_vec().into(),
        status: Bytes::new(),
        observed: Generation(0),
    };
    Arc::new(Record::new(content, Slot { revision: Revision(BEFORE + number), seq: 0 }))
}
