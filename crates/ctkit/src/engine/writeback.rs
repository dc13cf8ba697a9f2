//! What is to be written into the source: statuses, and what was dealt with. Coalesced, until stored or superseded.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use nimbus_core::{Annotations, Audience, Backoff, KeyMap, Labels, LeafHasher, ObjectKey, Revision, Spec as _, Uid};
use nimbus_store::{Draft, Op, Outcome, Record, Step};
use nimbus_wire::v1;
use prost_types::Any;
use tokio::time::Instant;

use crate::{
    context::Edit,
    engine::starting::CATCH_UP,
    source::CommitError,
    standing::{self, READY, Ready, Seen, Write},
};

/// What is to be written into the source. No I/O: it says what to write, and is told what came of it.
#[derive(Debug, Default)]
pub(crate) struct Writeback {
    wanted: KeyMap<Wanted>,
    /// In the order in which they were wanted first.
    order: VecDeque<ObjectKey>,
    /// What is being written.
    flight: Vec<ObjectKey>,
    /// What is read of these is older than what was written: the others do not wait for them.
    parked: Vec<ObjectKey>,
    parked_until: Option<Instant>,
    /// Nothing before this.
    not_before: Option<Instant>,
    failures: u32,
    /// What most statuses say.
    usual: Usual,
}

/// What is wanted of one object.
#[derive(Debug, Default)]
struct Wanted {
    status: Option<StatusWish>,
    memory: Option<Memory>,
    /// The same as it is being written.
    writing: Option<Writing>,
    /// Since when the last status that was written here cannot be read.
    lagging: Option<Instant>,
}

/// What a status should say.
#[derive(Debug, Clone)]
pub(crate) struct StatusWish {
    /// The version of the object that it speaks of.
    pub(crate) seen: Seen,
    /// The controller's own part, if it said anything.
    pub(crate) detail: Option<Any>,
    /// One of each type, but for the one that the kit says itself.
    pub(crate) conditions: Vec<v1::Condition>,
    pub(crate) ready: Option<Ready>,
}

/// The last status that said nothing but how an object fares, encoded: others say the same.
#[derive(Debug, Default)]
struct Usual(Option<(Ready, Bytes)>);

#[derive(Debug)]
struct Writing {
    status: Option<StatusWish>,
    /// There is a step for the status; without one, it says the same already.
    says: bool,
    memory: Option<Memory>,
}

/// What is to be remembered of an object.
#[derive(Debug)]
pub(crate) enum Memory {
    /// This version was dealt with, and these were published for it.
    Version(Arc<Record>, Vec<v1::Published>),
    /// It is gone, and that was dealt with.
    Nothing,
}

/// One transaction of many objects costs the source little more than one of a single object.
const BATCH: usize = 256;

/// The source is busy, or away: long enough to be polite, short enough not to be noticed.
const BACKOFF: Backoff = Backoff { base: Duration::from_millis(100), max: Duration::from_secs(10) };

// === impl Writeback ===

impl Writeback {
    /// The status of an object should say this. What an earlier wish said and this one does not say otherwise still holds.
    pub(crate) fn wish(&mut self, key: &ObjectKey, wish: StatusWish) {
        let wanted = self.entry(key);
        match &mut wanted.status {
            Some(earlier) if earlier.seen.uid == wish.seen.uid => earlier.merge(wish),
            status => *status = Some(wish),
        }
    }

    /// What the status of an object will say when everything is written that is wanted so far.
    pub(crate) fn foresee(&self, key: &ObjectKey, uid: &Uid, standing: &mut v1::Standing) {
        let Some(wanted) = self.wanted.get(key) else { return };
        let writing = wanted.writing.as_ref().and_then(|writing| writing.status.as_ref());
        for wish in writing.into_iter().chain(&wanted.status).filter(|wish| wish.seen.uid == *uid) {
            wish.grant(standing);
        }
    }

    /// What was dealt with is to be remembered.
    pub(crate) fn remember(&mut self, key: &ObjectKey, memory: Memory) {
        self.entry(key).memory = Some(memory);
    }

    /// Objects that are gone, and of which it is not known yet that nobody remembers them.
    pub(crate) fn unforgotten(&self) -> impl Iterator<Item = &ObjectKey> {
        let forgets = |memory: Option<&Memory>| matches!(memory, Some(Memory::Nothing));
        let is_unforgotten = move |wanted: &Wanted| {
            let writing = wanted.writing.as_ref().and_then(|writing| writing.memory.as_ref());
            forgets(wanted.memory.as_ref()) || forgets(writing)
        };
        self.wanted.iter().filter(move |(_, wanted)| is_unforgotten(wanted)).map(|(key, _)| key)
    }

    /// What was published for an object, as it is to be remembered, if that is not known to be written yet.
    pub(crate) fn unwritten(&self, key: &ObjectKey) -> Option<&[v1::Published]> {
        let wanted = self.wanted.get(key)?;
        let writing = wanted.writing.as_ref().and_then(|writing| writing.memory.as_ref());
        match wanted.memory.as_ref().or(writing)? {
            Memory::Version(_, published) => Some(published),
            Memory::Nothing => Some(&[]),
        }
    }

    /// Whether nothing is wanted, and nothing is being written.
    pub(crate) fn is_idle(&self) -> bool {
        self.wanted.is_empty()
    }

    /// When there is something to write, if nothing else happens.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if !self.flight.is_empty() {
            return None;
        }
        let parked = self.parked_until.map(|at| self.not_before.map_or(at, |not_before| at.max(not_before)));
        let queued = self.not_before.filter(|_| !self.order.is_empty());
        parked.into_iter().chain(queued).min()
    }

    /// What to write now. `find` gives the newest version of an object, and says whether a status was written here since.
    pub(crate) fn next(
        &mut self,
        controller: &str,
        now: Instant,
        find: impl Fn(&ObjectKey) -> Option<(Arc<Record>, bool)>,
    ) -> Option<Vec<Step>> {
        if !self.flight.is_empty() || self.not_before.is_some_and(|at| at > now) {
            return None;
        }
        if self.parked_until.is_some_and(|at| at <= now) {
            self.parked_until = None;
            self.order.extend(self.parked.drain(..));
        }
        let mut steps = Vec::new();
        while steps.len() < BATCH
            && let Some(key) = self.order.pop_front()
        {
            let Some(wanted) = self.wanted.get_mut(&key) else { continue };
            let found = wanted.status.as_ref().and_then(|_| find(&key));
            // What was written since may be something else than what this says.
            let is_behind = wanted.is_lagging(found.as_ref().is_some_and(|(_, is_old)| *is_old), now);
            let status = if is_behind { None } else { wanted.status.take() };
            let memory = wanted.memory.take();
            if is_behind {
                self.parked.push(key.clone());
                self.parked_until.get_or_insert(now + BACKOFF.base);
                if memory.is_none() {
                    continue;
                }
            }
            let before = steps.len();
            steps.extend(status.as_ref().and_then(|wish| wish.step(&found.as_ref()?.0, &mut self.usual)));
            let says = steps.len() > before;
            steps.extend(memory.as_ref().map(|memory| memory.step(controller, &key)));
            if steps.len() == before {
                if wanted.writing.is_none() {
                    self.wanted.remove(&key);
                }
                continue;
            }
            wanted.writing = Some(Writing { status, says, memory });
            self.flight.push(key);
        }
        (!steps.is_empty()).then_some(steps)
    }

    /// It was written; says which objects have other statuses now, and since which revision.
    pub(crate) fn stored(&mut self, outcomes: &[Outcome]) -> Vec<(ObjectKey, Revision)> {
        self.failures = 0;
        self.not_before = None;
        let mut outcomes = outcomes.iter();
        let mut stored = Vec::new();
        for key in std::mem::take(&mut self.flight) {
            let Some(wanted) = self.wanted.get_mut(&key) else { continue };
            let Some(writing) = wanted.writing.take() else { continue };
            if wanted.is_empty() {
                self.wanted.remove(&key);
            }
            let status = if writing.says { outcomes.next() } else { None };
            if writing.memory.is_some() {
                outcomes.next();
            }
            stored.extend(status.map(|outcome| (key, outcome.revision)));
        }
        stored
    }

    /// It was not. Everything is wanted again, but for what can never be written.
    pub(crate) fn failed(&mut self, error: &CommitError, now: Instant, random: f64) {
        let hopeless = match error {
            CommitError::NotFound(key) | CommitError::Invalid { key: Some(key), .. } => Some(key.clone()),
            _ => None,
        };
        let conflict = match error {
            CommitError::Conflict { key, .. } if self.flight.contains(key) => Some(key.clone()),
            _ => None,
        };
        for key in std::mem::take(&mut self.flight).into_iter().rev() {
            let Some(wanted) = self.wanted.get_mut(&key) else { continue };
            let Some(writing) = wanted.writing.take() else { continue };
            let is_queued = !wanted.is_empty();
            // What has been wanted meanwhile is newer.
            if let Some(mut status) = writing.status.filter(|_| hopeless.as_ref() != Some(&key)) {
                match wanted.status.take() {
                    Some(newer) if newer.seen.uid == status.seen.uid => status.merge(newer),
                    Some(newer) => status = newer,
                    None => {}
                }
                wanted.status = Some(status);
            }
            wanted.memory = wanted.memory.take().or(writing.memory);
            if wanted.is_empty() {
                self.wanted.remove(&key);
            } else if !is_queued && conflict.as_ref() == Some(&key) {
                self.parked.push(key);
            } else if !is_queued {
                self.order.push_front(key);
            }
        }
        if conflict.is_some() {
            // It is cured by reading again, as soon as there is something else to read.
            self.parked_until.get_or_insert(now + BACKOFF.delay(0, random));
            return;
        }
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(now + BACKOFF.delay(self.failures.min(10), random));
    }

    fn entry(&mut self, key: &ObjectKey) -> &mut Wanted {
        let wanted = self.wanted.entry(key.clone()).or_default();
        if wanted.is_empty() {
            self.order.push_back(key.clone());
        }
        wanted
    }
}

// === impl Wanted ===

impl Wanted {
    /// Whether there is nothing that is not being written already.
    fn is_empty(&self) -> bool {
        self.status.is_none() && self.memory.is_none()
    }

    /// Whether to wait until what was written can be read. If it still cannot when the time is up, the source has begun
    /// again, and counts from elsewhere.
    fn is_lagging(&mut self, is_old: bool, now: Instant) -> bool {
        if !is_old {
            self.lagging = None;
            return false;
        }
        now.duration_since(*self.lagging.get_or_insert(now)) < CATCH_UP
    }
}

// === impl StatusWish ===

impl StatusWish {
    /// Says nothing yet of a version of an object.
    pub(crate) fn of(record: &Record) -> Self {
        let seen = Seen { uid: record.to_uid(), generation: record.generation() };
        Self { seen, detail: None, conditions: Vec::new(), ready: None }
    }

    /// What some edits change in a status.
    pub(crate) fn edited(record: &Record, mut standing: v1::Standing, edits: Vec<Edit>) -> Self {
        let unedited = standing.clone();
        for edit in edits {
            edit(&mut standing);
        }
        let detail = (standing.detail != unedited.detail).then_some(standing.detail).flatten();
        let mut conditions = standing.conditions;
        conditions.retain(|condition| !unedited.conditions.contains(condition));
        Self { detail, conditions, ..Self::of(record) }
    }

    fn merge(&mut self, newer: Self) {
        self.seen = newer.seen;
        self.detail = newer.detail.or(self.detail.take());
        if newer.conditions.iter().any(|condition| condition.r#type == READY) {
            self.ready = None;
        }
        self.say(newer.ready);
        for condition in newer.conditions {
            self.conditions.retain(|older| older.r#type != condition.r#type);
            self.conditions.push(condition);
        }
    }

    /// How the object fares. Whatever was said of that before is forgotten.
    pub(crate) fn say(&mut self, ready: Option<Ready>) {
        if ready.is_some() {
            self.conditions.retain(|older| older.r#type != READY);
            self.ready = ready;
        }
    }

    fn grant(&self, standing: &mut v1::Standing) {
        if let Some(detail) = &self.detail {
            standing.detail = Some(detail.clone());
        }
        for condition in &self.conditions {
            standing::set_condition(standing, condition.clone());
        }
        if let Some(ready) = &self.ready {
            standing::set_condition(standing, ready.to_condition());
        }
    }

    /// Whether the status will say how the object fares, and nothing else.
    fn is_usual(&self, ready: &Ready, record: &Record) -> bool {
        self.detail.is_none()
            && self.conditions.is_empty()
            && record.status_bytes().is_empty()
            && ready.generation <= self.seen.generation
    }

    /// The write that makes it true; `None` if it is, or the object is another one by now.
    fn step(&self, record: &Record, usual: &mut Usual) -> Option<Step> {
        let write = match &self.ready {
            Some(ready) if self.is_usual(ready, record) => {
                standing::write_packed(record, &self.seen, usual.packed(ready))
            }
            _ => {
                let (mut standing, _) = standing::read(record.status_bytes());
                self.grant(&mut standing);
                standing::write(record, &self.seen, standing)
            }
        };
        match write {
            Write::Needed(step) => Some(*step),
            Write::Unchanged | Write::Superseded | Write::Behind => None,
        }
    }
}

// === impl Usual ===

impl Usual {
    /// The status that says this and nothing else.
    fn packed(&mut self, ready: &Ready) -> Bytes {
        match &self.0 {
            Some((last, packed)) if last == ready => packed.clone(),
            _ => {
                let standing = v1::Standing { conditions: vec![ready.to_condition()], ..v1::Standing::default() };
                let packed = Bytes::from(standing.pack_to_vec());
                self.0 = Some((ready.clone(), packed.clone()));
                packed
            }
        }
    }
}

/// Where the version of an object that a controller has dealt with is kept.
pub(crate) fn memory_key(controller: &str, key: &ObjectKey) -> ObjectKey {
    let mut hasher = LeafHasher::new(key);
    hasher.part(controller.as_bytes());
    let name = hasher.finish().to_string();
    ObjectKey::new(v1::Acknowledged::kind(), "", &name).expect("hex digits are a name")
}

// === impl Memory ===

impl Memory {
    /// The write that makes it last. The shard of an object may have had another number before, and so another manager.
    fn step(&self, controller: &str, key: &ObjectKey) -> Step {
        let memory = memory_key(controller, key);
        let Self::Version(record, published) = self else {
            return Step { take_over: true, ..Op::Delete(memory).into() };
        };
        // Only what a reactor looks at: what the kit itself writes on an object must not make another version of it.
        let object = v1::Object {
            revision: 0,
            status: None,
            observed_generation: 0,
            finalizers: Vec::new(),
            ..record.to_wire()
        };
        let (controller, published) = (controller.to_owned(), published.clone());
        let spec = v1::Acknowledged { controller, object: Some(object), published };
        let draft = Draft {
            key: memory,
            uid: None,
            generation: None,
            labels: Labels::default(),
            refs: Arc::default(),
            owner: None,
            annotations: Annotations::default(),
            audience: Audience::Agents(Arc::default()),
            spec: spec.pack_to_vec().into(),
        };
        Step { take_over: true, ..Op::Upsert(draft).into() }
    }
}

#[cfg(test)]
mod tests;
