//! Subscribers that come back to every bus and go on where they were.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use nimbus_client::{Arrival, Effect, Item, Mirror, Uplink};
use nimbus_core::Backoff;
use nimbus_wire::v1::{self, event::Change, frame::Frame};
use parking_lot::Mutex;
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
use tokio::{sync::watch, task::AbortHandle, time::timeout};

use crate::powercut::{
    thing,
    whereabouts::{Whereabouts, endpoint},
    witness::{Resumed, Sent, Witness, shown},
};

/// A subscriber, in a task of its own, which ends with this value.
#[derive(Debug)]
pub(crate) struct Subscriber {
    pub(crate) name: String,
    pub(crate) stalls: bool,
    request: v1::SubscribeRequest,
    mirror: Arc<Mutex<Mirror>>,
    /// The revision at which it last held exactly what the bus held, by digest.
    exact: watch::Receiver<u64>,
    task: AbortHandle,
}

/// The task.
struct Worker {
    name: String,
    request: v1::SubscribeRequest,
    uplink: Uplink,
    mirror: Arc<Mutex<Mirror>>,
    exact: watch::Sender<u64>,
    /// Whether it stops reading now and then.
    stalling: Option<watch::Receiver<bool>>,
    witness: Arc<Witness>,
    /// What it was last sent of each object.
    last: HashMap<String, u64>,
    /// Lives of objects that ended.
    ended: HashSet<String>,
    /// Whether it had a position when it last asked.
    resumes: bool,
    rng: SmallRng,
}

/// The bus is back soon.
const BACKOFF: Backoff = Backoff { base: Duration::from_millis(5), max: Duration::from_millis(20) };

/// How many frames a subscriber reads between two stalls, at most, and how long those are, in milliseconds.
const FRAMES_BETWEEN: u32 = 30;
const STALL_MS: std::ops::Range<u64> = 50..1500;

/// What comes after a stall comes at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a reason has in common with others.
fn without_figures(reason: &str) -> String {
    let words = reason
        .split(' ')
        .map(|word| if word.starts_with(|c: char| c.is_ascii_digit()) { "N" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

// === impl Subscriber ===

impl Subscriber {
    /// Starts one of several sorts.
    pub(crate) fn start(
        at: usize,
        bus: &Whereabouts,
        stalling: &watch::Sender<bool>,
        witness: &Arc<Witness>,
        mut rng: SmallRng,
    ) -> Self {
        let kinds = vec![thing::KIND.to_owned()];
        let observer = v1::SubscribeRequest { kinds, ..v1::SubscribeRequest::default() };
        let agent = |name: String, zone: &str| v1::SubscribeRequest {
            agent: name,
            agent_labels: [("zone".to_owned(), zone.to_owned())].into(),
            ..observer.clone()
        };
        let filter = v1::Filter { selector: "tier=web".to_owned(), ..v1::Filter::default() };
        let (name, request, stalls) = match at % 8 {
            0 => (format!("observer-{at}"), v1::SubscribeRequest::default(), false),
            1 => (format!("agent-a-{at}"), agent(format!("agent-{at}"), "a"), false),
            2 => (format!("agent-b-{at}"), agent(format!("agent-{at}"), "b"), false),
            3 => (format!("stalled-agent-{at}"), agent(format!("agent-{at}"), "a"), true),
            4 if at < 8 => (thing::NAMED_AGENT.to_owned(), agent(thing::NAMED_AGENT.to_owned(), "none"), false),
            4 => (format!("agent-none-{at}"), agent(format!("agent-{at}"), "none"), false),
            5 => (format!("stalled-observer-{at}"), observer, true),
            6 => (format!("observer-of-kind-{at}"), observer, false),
            _ => (format!("filtered-{at}"), v1::SubscribeRequest { filter: Some(filter), ..observer }, false),
        };
        let mirror = Arc::new(Mutex::new(Mirror::default()));
        let (exact, exactly) = watch::channel(0);
        let uplink_rng = SmallRng::from_rng(&mut rng);
        let worker = Worker {
            name: name.clone(),
            request: request.clone(),
            uplink: Uplink::new(vec![endpoint()], Arc::new(bus.clone()), None, BACKOFF, uplink_rng),
            mirror: mirror.clone(),
            exact,
            stalling: stalls.then(|| stalling.subscribe()),
            witness: witness.clone(),
            last: HashMap::new(),
            ended: HashSet::new(),
            resumes: false,
            rng,
        };
        let task = tokio::spawn(worker.run()).abort_handle();
        Self { name, stalls, request, mirror, exact: exactly, task }
    }

    /// Waits until it is exact at this revision or a later one.
    ///
    /// # Errors
    /// If it never is.
    pub(crate) async fn catch_up(&self, revision: u64) -> Result<(), String> {
        let mut exact = self.exact.clone();
        match timeout(PATIENCE, exact.wait_for(|exact| *exact >= revision)).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(format!("{} is not exact at {revision}, but at {}", self.name, *self.exact.borrow())),
        }
    }

    /// What it should see of the bus.
    pub(crate) fn list_request(&self) -> v1::ListRequest {
        let v1::SubscribeRequest { kinds, filter, agent, agent_labels, .. } = self.request.clone();
        v1::ListRequest { kinds, filter, agent, agent_labels, ..v1::ListRequest::default() }
    }

    /// Compares what it holds with what the bus lists for it.
    ///
    /// # Errors
    /// If they are not the same.
    pub(crate) fn compare(&self, listed: &[v1::Object]) -> Result<(), String> {
        let mirror = self.mirror.lock();
        let held: HashMap<_, &Arc<Item>> = mirror.items().map(|item| (item.key().name(), item)).collect();
        let same = |object: &&v1::Object| {
            held.get(&*object.name)
                .is_some_and(|item| item.object.revision == object.revision && shown(&item.object) == shown(object))
        };
        match listed.iter().find(|object| !same(object)) {
            Some(other) => Err(format!("{} holds {:?}, not {other:?}", self.name, held.get(&*other.name))),
            None if held.len() != listed.len() => {
                Err(format!("{} holds {} objects, not {}", self.name, held.len(), listed.len()))
            }
            None => Ok(()),
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// === impl Worker ===

impl Worker {
    async fn run(mut self) {
        let mut frames = 0;
        loop {
            self.stall(&mut frames).await;
            let (mirror, resumes, request) = (&self.mirror, &mut self.resumes, &self.request);
            let request = || {
                let mirror = mirror.lock();
                *resumes = mirror.position().is_some();
                v1::SubscribeRequest { resume: mirror.resume(), ..request.clone() }
            };
            match self.uplink.next(request).await {
                Arrival::Connected { .. } => {}
                Arrival::Lost { .. } => self.mirror.lock().disconnect(),
                Arrival::Frame(frame) => {
                    frames += 1;
                    self.look(&frame);
                    let effect = self.mirror.lock().take(frame);
                    match effect {
                        Ok(effect) => self.follow(effect),
                        Err(error) => self.accuse(&error.to_string()),
                    }
                }
            }
        }
    }

    /// Reads nothing for a while, whatever happens to the bus meanwhile.
    async fn stall(&mut self, frames: &mut u32) {
        let Some(stalling) = &mut self.stalling else { return };
        if *frames < self.rng.random_range(1..=FRAMES_BETWEEN) || !*stalling.borrow() {
            return;
        }
        *frames = 0;
        let time = Duration::from_millis(self.rng.random_range(STALL_MS));
        // Either it was long enough, or everybody should catch up now.
        drop(timeout(time, stalling.wait_for(|stalling| !*stalling)).await);
    }

    /// Looks at what was sent, whether it is of use or not.
    fn look(&mut self, frame: &v1::Frame) {
        let Some(Frame::Batch(batch)) = &frame.frame else { return };
        for event in &batch.events {
            match &event.change {
                Some(Change::Put(object)) => {
                    self.see(&object.name, object.revision);
                    if self.ended.contains(&object.uid) {
                        self.accuse(&format!("{} has come back: {object:?}", object.uid));
                    }
                    self.witness.written(object.revision, &object.manager);
                    self.witness.sent(&object.name, Sent::Put(Box::new(shown(object)), object.revision));
                }
                Some(Change::Delete(removal)) if !removal.out_of_scope => {
                    self.see(&removal.name, removal.revision);
                    self.ended.insert(removal.uid.clone());
                    self.witness.sent(&removal.name, Sent::Delete(removal.revision));
                }
                _ => {}
            }
        }
    }

    /// Per object, revisions only rise.
    fn see(&mut self, name: &str, revision: u64) {
        let last = self.last.insert(name.to_owned(), revision).unwrap_or_default();
        if revision < last {
            self.accuse(&format!("{name} went back from revision {last} to {revision}"));
        }
    }

    fn follow(&mut self, effect: Effect) {
        match effect {
            Effect::Welcome { mode, reason, bookmark_interval, .. } => {
                self.uplink.expect_every(bookmark_interval.max(PATIENCE));
                self.uplink.succeeded();
                if self.resumes {
                    let (filtered, delta) = (self.request.filter.is_some(), mode == v1::Mode::Delta);
                    if !delta && !filtered {
                        self.accuse(&format!("it was not sent the changes since its position: {reason}"));
                    }
                    let reason = if delta { String::new() } else { without_figures(&reason) };
                    self.witness.resumed(Resumed { mode: mode.as_str_name(), filtered, reason });
                }
            }
            Effect::Changes { position: Some(position), .. } => {
                self.witness.hear(position.epoch.0, position.revision.0);
            }
            Effect::Exact { position, .. } => {
                self.witness.hear(position.epoch.0, position.revision.0);
                self.exact.send_replace(position.revision.0);
            }
            Effect::Mismatch { mismatch, .. } => self.accuse(&mismatch.to_string()),
            _ => {}
        }
    }

    fn accuse(&self, what: &str) {
        self.witness.accuse(format_args!("{}: {what}", self.name));
    }
}
