//! A sync over a stream that is held open.

use std::{collections::BTreeSet, time::Duration};

use nimbus_core::{Kind, ObjectKey, PublisherId};
use nimbus_store::Guard;
use nimbus_wire::v1::{self, sync_request::Step};
use prost::Message as _;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Response, Status};

use crate::{
    source::{
        CommitError,
        remote::{convert, fault, link::Link},
    },
    target::{OpenSync, SyncEnded},
};

/// A sync that has begun. If its stream breaks off, it is over, and nothing is deleted.
///
/// A bus takes no sync of nothing, so that of a publisher without kinds has no stream.
#[derive(Debug)]
pub struct RemoteSync(Option<Open>);

/// The stream of a sync.
#[derive(Debug)]
struct Open {
    steps: mpsc::Sender<v1::SyncRequest>,
    /// The call that sends the steps. It ends with the answer, and with this value.
    call: Call,
    deadline: Duration,
}

type Call = AbortOnDropHandle<Result<v1::SyncResponse, Status>>;

/// When a publisher was last heard of, as far as the bus said.
#[derive(Debug, Clone, Copy)]
struct Heard {
    /// How long ago that was; none if the bus has never heard of it.
    age: Option<Duration>,
    /// Not later than when the bus was asked.
    asked: Instant,
    /// Not earlier than when the bus answered.
    answered: Instant,
}

/// Steps under way; whoever is faster than the bus waits.
const STEPS: usize = 4;

/// Names that are said at once, in bytes: a bus takes requests of 4 MiB, unless told otherwise.
const CHUNK: usize = 1 << 20;

/// How long to wait before the bus is asked again whether the sync has begun: about as long as an answer takes.
const PAUSE: Duration = Duration::from_millis(5);

/// Ages are said in whole milliseconds.
const ROUNDED: Duration = Duration::from_millis(1);

/// A sweep of everything takes the bus longer than a call does.
const END: u32 = 6;

// === impl RemoteSync ===

impl RemoteSync {
    /// Begins a sync, and waits until the bus has taken note of it. What is committed from then on counts as said: were it
    /// to overtake the beginning, it would be deleted at the end.
    ///
    /// The bus answers a sync when it ends, and not before. But it says when it last heard of a publisher, and while others
    /// of this remote are kept from writing, that it has done so means that the sync has begun.
    pub(crate) async fn begin(
        link: &Link,
        publisher: &PublisherId,
        fence: u64,
        kinds: &BTreeSet<Kind>,
        leases: &[Guard],
    ) -> Result<Self, CommitError> {
        if kinds.is_empty() {
            return Ok(Self(None));
        }
        let begin = v1::SyncBegin {
            publisher: publisher.to_string(),
            fence,
            kinds: kinds.iter().map(ToString::to_string).collect(),
            leases: convert::tokens(leases),
        };
        let beginning = async {
            let _alone = link.gate.write().await;
            let before = heard(link, publisher).await?;
            let line = link.line().await?;
            let (steps, queue) = mpsc::channel(STEPS);
            let request = link.request(ReceiverStream::new(queue));
            let call = async move { line.publisher().sync(request).await.map(Response::into_inner) };
            let call = AbortOnDropHandle::new(tokio::spawn(call));
            let mut sync = Open { steps, call, deadline: link.deadline };
            sync.send(Step::Begin(begin)).await?;
            while !heard(link, publisher).await?.is_news_since(&before) {
                sleep(PAUSE).await;
                // Nothing to say, but the bus hears it.
                sync.send(Step::Items(v1::SyncItems::default())).await?;
            }
            Ok(sync)
        };
        let late = |_| Status::unavailable(format!("no sync has begun within {:.1} s", link.deadline.as_secs_f64()));
        timeout(link.deadline, beginning)
            .await
            .map_err(late)
            .flatten()
            .map(|open| Self(Some(open)))
            .map_err(|status| fault::commit(&status))
    }
}

// === impl Open ===

impl Open {
    async fn send(&mut self, step: Step) -> Result<(), Status> {
        let step = v1::SyncRequest { step: Some(step) };
        if !self.call.is_finished() && self.steps.send(step).await.is_ok() {
            return Ok(());
        }
        // Nobody reads any more, so there is an answer: why not.
        match self.answer().await {
            Ok(_) => Err(Status::unavailable("the sync has ended by itself")),
            Err(status) => Err(status),
        }
    }

    async fn answer(&mut self) -> Result<v1::SyncResponse, Status> {
        match (&mut self.call).await {
            Ok(answer) => answer,
            Err(error) => Err(Status::unavailable(format!("the sync was given up: {error}"))),
        }
    }
}

impl OpenSync for RemoteSync {
    async fn keep(&mut self, keys: Vec<ObjectKey>) -> Result<(), CommitError> {
        let Some(open) = &mut self.0 else { return Ok(()) };
        let mut chunk = v1::SyncKeep::default();
        let mut bytes = 0;
        for key in keys.iter().map(ObjectKey::to_wire) {
            let len = key.encoded_len();
            if bytes + len > CHUNK && !chunk.keys.is_empty() {
                let full = std::mem::take(&mut chunk);
                open.send(Step::Keep(full)).await.map_err(|status| fault::commit(&status))?;
                bytes = 0;
            }
            bytes += len;
            chunk.keys.push(key);
        }
        open.send(Step::Keep(chunk)).await.map_err(|status| fault::commit(&status))
    }

    async fn end(self) -> Result<SyncEnded, CommitError> {
        let Some(mut open) = self.0 else { return Ok(SyncEnded::default()) };
        let deadline = open.deadline * END;
        let ending = async {
            open.send(Step::End(v1::SyncEnd {})).await?;
            open.answer().await
        };
        let late = |_| Status::unavailable("the end of the sync was not answered");
        let answer = timeout(deadline, ending).await.map_err(late).flatten();
        answer.map(|answer| convert::ended(&answer)).map_err(|status| fault::commit(&status))
    }
}

// === impl Heard ===

impl Heard {
    /// Whether the bus has heard of the publisher between the two answers: otherwise, it would be silent for longer by
    /// now.
    fn is_news_since(&self, before: &Self) -> bool {
        match (before.age, self.age) {
            (None, age) => age.is_some(),
            (Some(_), None) => false,
            (Some(before_age), Some(age)) => {
                age + ROUNDED < before_age + self.asked.saturating_duration_since(before.answered)
            }
        }
    }
}

async fn heard(link: &Link, publisher: &PublisherId) -> Result<Heard, Status> {
    let asked = Instant::now();
    let request = v1::ListKindsRequest {};
    let answer = link
        .call(request, |line, request| async move { line.bus().list_kinds(request).await })
        .await?;
    let ages = answer.kinds.iter().flat_map(|kind| &kind.publishers);
    let age = ages.filter(|age| age.publisher == publisher.as_str()).map(|age| age.age_ms).min();
    Ok(Heard { age: age.map(Duration::from_millis), asked, answered: Instant::now() })
}
