//! A watch of one kind: an observer's subscription, which comes back by itself.

use std::{sync::Arc, time::Duration};

use nimbus_client::{Advice, Arrival, Effect, Mirror, Uplink};
use nimbus_core::{Kind, Position, Revision};
use nimbus_wire::v1::{self, Mode};
use rand::{RngExt as _, rngs::SmallRng};
use tokio::sync::mpsc::Sender;
use tonic::Status;

use crate::source::{
    Event, WatchError,
    remote::{
        leaf::Leaf,
        link::{Link, News},
        pending::Pending,
    },
};

/// A watch of one kind. Nothing is said of what lies between two positions: changes are kept aside until the next one is
/// reached, and so is the list.
pub(crate) struct Watch {
    link: Arc<Link>,
    kind: Kind,
    mirror: Mirror<Leaf>,
    pending: Pending,
    /// The position that was said last; none before the list is whole.
    told: Option<Position>,
    /// It has said something: everything that there was when it began.
    has_told: bool,
    /// What there was when the bus answered last; less than that is not said.
    head: Revision,
    news: News,
    /// Times in a row that what the bus said was wrong.
    flaws: u32,
    rng: SmallRng,
}

type Events = Sender<Result<Event, WatchError>>;

/// Objects of a list that are handed over at once.
const LISTING: usize = 1024;

/// What operators see as the software of this subscriber.
const SOFTWARE: &str = concat!("ctkit/", env!("CARGO_PKG_VERSION"));

// === impl Watch ===

impl Watch {
    pub(crate) fn new(link: Arc<Link>, kind: Kind, from: Option<Position>) -> Self {
        let rng = link.rng();
        Self {
            link,
            kind,
            mirror: Mirror::observe(from),
            pending: Pending::default(),
            told: from,
            has_told: false,
            head: Revision::ZERO,
            news: News::default(),
            flaws: 0,
            rng,
        }
    }

    /// Goes on until nobody wants to know any more, or no patience helps.
    pub(crate) async fn run(mut self, events: Events) {
        let mut uplink = self.link.uplink();
        loop {
            let Self { kind, mirror, .. } = &self;
            match uplink.next(|| subscribe(kind, mirror.resume())).await {
                Arrival::Connected { endpoint } => tracing::debug!(kind = %self.kind, endpoint, "subscribed"),
                Arrival::Lost { status, advice: Advice::Refused, .. } => {
                    let refused = WatchError::Refused { kind: self.kind, message: status.message().to_owned() };
                    // Nobody to tell is nobody to worry.
                    events.send(Err(refused)).await.ok();
                    return;
                }
                Arrival::Lost { endpoint, status, wait, .. } => self.lose(&endpoint, &status, wait),
                Arrival::Frame(frame) => {
                    let was_partial = self.mirror.is_partial();
                    let effect = self.mirror.take(frame);
                    if was_partial && !self.mirror.is_partial() {
                        // Where it was to begin is not known any more: it begins with a list.
                        self.told = None;
                        self.pending.clear();
                    }
                    match effect {
                        Ok(effect) => {
                            let Some(position) = self.follow(effect, &mut uplink) else { continue };
                            uplink.succeeded();
                            if self.settle(position, &events).await.is_err() {
                                return;
                            }
                        }
                        Err(error) => {
                            tracing::error!(kind = %self.kind, %error, "cannot understand the bus");
                            self.restart(&mut uplink);
                        }
                    }
                }
            }
        }
    }

    fn lose(&mut self, endpoint: &str, status: &Status, wait: Duration) {
        self.mirror.disconnect();
        let (reason, wait_ms) = (status.message(), wait.as_millis());
        if self.news.is(false) {
            tracing::info!(kind = %self.kind, endpoint, reason, wait_ms, "not watching");
        } else {
            tracing::debug!(kind = %self.kind, endpoint, reason, wait_ms, "still not watching");
        }
    }

    /// Follows the bus. Says where it is exact, if it is.
    fn follow(&mut self, effect: Effect<Leaf>, uplink: &mut Uplink) -> Option<Position> {
        match effect {
            Effect::Welcome { mode, head, reason, bookmark_interval, .. } => {
                uplink.expect_every(bookmark_interval);
                self.head = head;
                if mode == Mode::Waiting {
                    tracing::info!(kind = %self.kind, reason, "waiting for publishers to refill the bus");
                }
                None
            }
            Effect::Changes { changes, position } => {
                changes.into_iter().for_each(|change| self.pending.add(change));
                position
            }
            Effect::Exact { position, .. } => Some(position),
            Effect::Mismatch { changes, mismatch } => {
                tracing::error!(kind = %self.kind, %mismatch, "holds something else than the bus, comparing everything");
                changes.into_iter().for_each(|change| self.pending.add(change));
                self.restart(uplink);
                None
            }
            Effect::Drain { reason, .. } => {
                tracing::debug!(kind = %self.kind, reason, "the bus stops");
                None
            }
            Effect::ScopeChanged | Effect::ReportWanted | Effect::Alive => None,
        }
    }

    /// Subscribes again, later each time.
    fn restart(&mut self, uplink: &mut Uplink) {
        self.mirror.disconnect();
        let wait = self.link.backoff.delay(self.flaws, self.rng.random());
        self.flaws = self.flaws.saturating_add(1);
        uplink.restart(wait);
    }

    /// Everything up to this position has come.
    async fn settle(&mut self, position: Position, events: &Events) -> Result<(), Gone> {
        self.flaws = 0;
        // Groups are shared: the first one may end before what there was when the bus answered. The next position will not.
        if position.revision < self.head {
            return Ok(());
        }
        if self.news.is(true) {
            let (epoch, revision) = (position.epoch, position.revision);
            tracing::info!(kind = %self.kind, %epoch, %revision, objects = self.mirror.len(), "watching");
        }
        let told = self.told.replace(position);
        if told.is_none() {
            self.has_told = true;
            let mut list = self.pending.take_list();
            while !list.is_empty() {
                let rest = list.split_off(list.len().min(LISTING));
                tell(events, Event::Listing(std::mem::replace(&mut list, rest))).await?;
            }
            return tell(events, Event::Listed(position)).await;
        }
        let changes = self.pending.take(position.revision);
        if changes.is_empty() && told == Some(position) && self.has_told {
            return Ok(());
        }
        self.has_told = true;
        tell(events, Event::Changes(changes, position)).await
    }
}

/// Nobody watches any more.
struct Gone;

async fn tell(events: &Events, event: Event) -> Result<(), Gone> {
    events.send(Ok(event)).await.map_err(|_| Gone)
}

fn subscribe(kind: &Kind, resume: Option<v1::Resume>) -> v1::SubscribeRequest {
    let (kinds, software) = (vec![kind.to_string()], SOFTWARE.to_owned());
    v1::SubscribeRequest { kinds, resume, software, ..Default::default() }
}
