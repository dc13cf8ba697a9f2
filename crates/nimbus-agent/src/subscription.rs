//! The lower level: a stream of events, for those who want to do the rest themselves.

use std::{
    collections::VecDeque,
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use nimbus_client::{Arrival, Change, Effect, Item, Mirror, Uplink};
use nimbus_core::{Object, ObjectKey};
use nimbus_wire::v1;
use prost_types::Any;
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
use tokio::time::Instant;
use tonic::{Code, Status};

use crate::{
    board::{Board, Policies},
    cache::{CacheError, Delta, Keeper, Memory},
    journal::Journal,
    report::{Call, Reporter},
    settings::Settings,
};

/// What should be here, as it changes. Reconnects by itself; what comes after a reconnect is the difference.
///
/// Asking for the next event acknowledges all events before it: the bus is told that they are applied.
pub struct Subscription {
    settings: Settings,
    uplink: Uplink,
    mirror: Mirror,
    keeper: Keeper,
    reporter: Reporter,
    journal: Journal,
    /// Nothing is unfinished here: whoever reads the events sees to that.
    board: Board,
    rng: SmallRng,
    events: VecDeque<Event>,
    initial: bool,
    /// There is something to report once all events are taken.
    unreported: bool,
    call: Call,
}

/// What should be here, as it changes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// What follows until [`Event::InitDone`] is what there is at the beginning.
    Init,
    /// An object that is there at the beginning, or was when this process last ran.
    InitApply(Arc<Object<Any>>),
    /// Everything that there was at the beginning has been said.
    InitDone,
    /// An object is new, or has changed.
    Apply(Arc<Object<Any>>),
    /// An object is gone, or no longer for this agent.
    Delete(ObjectKey),
}

// === impl Subscription ===

impl Subscription {
    pub(crate) fn open(settings: Settings) -> Result<Self, CacheError> {
        let (keeper, memory, aside) = match &settings.cache {
            None => (Keeper::forgetful(), Memory::default(), None),
            Some(path) => Keeper::open(path, &settings.id, settings.inline_disk)?,
        };
        if let Some(aside) = aside {
            tracing::error!(agent.id = %settings.id, moved.to = %aside.path.display(), reason = %aside.reason, "cache cannot be used, starting without");
        }
        let mut rng = SmallRng::seed_from_u64(settings.seed);
        let (endpoints, connector) = (settings.endpoints.clone(), settings.connector.clone());
        let fork = SmallRng::from_rng(&mut rng);
        let uplink = Uplink::new(endpoints, connector, Some(settings.id.to_string()), settings.reconnect, fork);
        let board = Board::new(Policies::default(), settings.retry, settings.quarantine, SmallRng::from_rng(&mut rng));
        let mirror = Mirror::restore(memory.desired.into_values(), memory.position);
        let mut events = VecDeque::from([Event::Init]);
        events.extend(mirror.items().filter_map(|item| packed(item)).map(Event::InitApply));
        Ok(Self {
            settings,
            uplink,
            mirror,
            keeper,
            reporter: Reporter::default(),
            journal: Journal::default(),
            board,
            rng,
            events,
            initial: true,
            unreported: false,
            call: Call::default(),
        })
    }

    /// The next event. It never ends: a bus that goes away comes back.
    ///
    /// # Cancel safety
    /// Nothing is lost if it is dropped.
    pub async fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            self.report();
            let Self { uplink, settings, mirror, call, .. } = self;
            tokio::select! {
                arrival = uplink.next(|| settings.subscribe(&settings.labels, mirror.resume())) => self.arrive(arrival),
                answer = call.answer() => self.reported(&answer),
            }
        }
    }

    fn report(&mut self) {
        if !self.unreported || self.call.is_under_way() {
            return;
        }
        let Some(client) = self.uplink.client() else { return };
        self.unreported = false;
        let (reached, now) = (self.mirror.reached(), Instant::now());
        if let Some(report) = self.reporter.compose(&self.board, &mut self.journal, reached, false, now) {
            self.call.begin(client, report);
        }
    }

    fn reported(&mut self, answer: &Result<v1::ReportResponse, Status>) {
        match answer {
            Ok(answer) => {
                self.reporter.taken();
                if answer.full_wanted {
                    self.reporter.want_full();
                    self.unreported = true;
                }
            }
            // It is told again with the next thing that happens; a bookmark, if nothing else does.
            Err(status) => self.reporter.not_taken(status.code() == Code::ResourceExhausted),
        }
    }

    fn arrive(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Connected { .. } => {}
            Arrival::Lost { endpoint, status, wait, .. } => {
                tracing::info!(agent.id = %self.settings.id, endpoint, reason = status.message(), wait_ms = wait.as_millis(), "no subscription");
                self.disconnect();
            }
            Arrival::Frame(frame) => match self.mirror.take(frame) {
                Ok(effect) => self.follow(effect),
                Err(error) => {
                    tracing::error!(agent.id = %self.settings.id, %error, "cannot understand the bus");
                    self.disconnect();
                    self.uplink.restart(self.settings.reconnect.max.mul_f64(self.rng.random()));
                }
            },
        }
    }

    fn disconnect(&mut self) {
        self.mirror.disconnect();
        self.reporter.end();
        self.call.give_up();
    }

    fn follow(&mut self, effect: Effect) {
        match effect {
            Effect::Alive | Effect::Drain { .. } => {}
            Effect::Welcome { session, bookmark_interval, .. } => {
                self.uplink.expect_every(bookmark_interval);
                self.reporter.begin(session);
                self.unreported = true;
            }
            Effect::Changes { changes, position } => {
                self.change(changes);
                if position.is_some() {
                    self.settle();
                }
            }
            Effect::Exact { .. } => self.settle(),
            Effect::Mismatch { changes, mismatch } => {
                tracing::error!(agent.id = %self.settings.id, %mismatch, "holds something else than the bus, comparing everything");
                self.journal.note("DigestMismatch", None, &mismatch.to_string(), Instant::now());
                self.change(changes);
                self.disconnect();
                self.uplink.restart(self.settings.reconnect.max.mul_f64(self.rng.random()));
            }
            Effect::ScopeChanged => self.reporter.scope_changed(),
            Effect::ReportWanted => {
                self.reporter.want_full();
                self.unreported = true;
            }
        }
    }

    fn change(&mut self, changes: Vec<Change>) {
        let mut delta = Delta { position: Some(self.mirror.position()), ..Delta::default() };
        for change in changes {
            match change {
                Change::Put(item) => {
                    let event = if self.initial { Event::InitApply } else { Event::Apply };
                    self.events.extend(packed(&item).map(event));
                    delta.puts.push(item);
                }
                Change::Delete(key) => {
                    self.events.push_back(Event::Delete(key.clone()));
                    delta.deletes.push(key);
                }
            }
        }
        self.keeper.save(delta);
    }

    fn settle(&mut self) {
        self.uplink.succeeded();
        self.unreported = true;
        if std::mem::take(&mut self.initial) {
            self.events.push_back(Event::InitDone);
        }
    }
}

impl tokio_stream::Stream for Subscription {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        // All that waits is in `self`, so that a future made anew for each poll goes on where the last one was.
        pin!(self.next()).poll(cx).map(Some)
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription")
            .field("agent", &self.settings.id)
            .field("position", &self.mirror.position())
            .finish_non_exhaustive()
    }
}

/// An object without a spec is not one that anybody could apply.
fn packed(item: &Item) -> Option<Arc<Object<Any>>> {
    Object::packed(&item.object).ok().map(Arc::new)
}
