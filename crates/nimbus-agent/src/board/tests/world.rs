//! A board, a clock, and words to speak of jobs.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use nimbus_client::Item;
use nimbus_core::{Backoff, Failure, Kind, LeafHasher, ObjectKey, Revision};
use nimbus_wire::v1;
use rand::{SeedableRng as _, rngs::SmallRng};
use tokio::time::Instant;

use crate::{
    board::{Board, Change, Exceptional, Job, Outcome, Policies, Policy, Replace, Work, job::Finished, node::Task},
    handler::{Observation, Reason, Status},
};

/// An object under construction. Its name may begin with one of `swap-`, `excl-`, `seen-` and `alien-`, which decides
/// about its kind.
#[derive(Debug, Clone)]
pub(crate) struct Thing {
    name: String,
    version: u64,
    life: u64,
    needs: Vec<String>,
}

/// A board, and the time.
pub(crate) struct World {
    pub(crate) board: Board,
    pub(crate) now: Instant,
    pub(crate) floor: u64,
}

pub(crate) const INTERVAL: Duration = Duration::from_secs(60);
pub(crate) const RETRY: Backoff = Backoff { base: Duration::from_secs(1), max: Duration::from_secs(60) };
pub(crate) const QUARANTINE: Backoff = Backoff { base: Duration::from_secs(300), max: Duration::from_secs(3600) };

pub(crate) fn thing(name: &str) -> Thing {
    Thing { name: name.to_owned(), version: 1, life: 1, needs: Vec::new() }
}

pub(crate) fn key(name: &str) -> ObjectKey {
    let kind = name.split_once('-').map_or("thing", |(kind, _)| kind);
    ObjectKey::new(Kind::new(&format!("demo.v1.{kind}")).unwrap(), "", name).unwrap()
}

pub(crate) fn put(thing: &Thing) -> Change {
    Change::Put(thing.item())
}

pub(crate) fn delete(name: &str) -> Change {
    Change::Delete(key(name))
}

pub(crate) fn policies() -> Policies {
    let policy = |replace, observe_every| Policy { replace, observe_every, ..Policy::default() };
    let kind = |name| Kind::new(name).unwrap();
    let kinds = BTreeMap::from([
        (kind("demo.v1.thing"), Policy::default()),
        (kind("demo.v1.swap"), policy(Replace::MakeBeforeBreak, None)),
        (kind("demo.v1.excl"), policy(Replace::BreakBeforeMake, None)),
        (kind("demo.v1.seen"), policy(Replace::Independent, Some(INTERVAL))),
    ]);
    let handled = kinds.keys().cloned().collect();
    Policies::new(Policy::default(), kinds, handled)
}

/// A job in words: `apply a2`, with what was there before in brackets.
pub(crate) fn words(job: &Job) -> String {
    match &job.work {
        Work::Apply { item, previous: None, .. } => format!("apply {}", label(item)),
        Work::Apply { item, previous: Some(previous), .. } => format!("apply {} ({})", label(item), label(previous)),
        Work::Remove { item, .. } => format!("remove {}", label(item)),
        Work::Observe { item } => format!("observe {}", label(item)),
    }
}

pub(crate) fn label(item: &Item) -> String {
    format!("{}:{}{}", item.key().name(), item.generation().0, if item.meta.uid.as_str() == "1" { "" } else { "'" })
}

// === impl Thing ===

impl Thing {
    pub(crate) fn v(self, version: u64) -> Self {
        Self { version, ..self }
    }

    pub(crate) fn life(self, life: u64) -> Self {
        Self { life, ..self }
    }

    pub(crate) fn needs(mut self, names: &[&str]) -> Self {
        self.needs.extend(names.iter().map(|name| (*name).to_owned()));
        self
    }

    pub(crate) fn item(&self) -> Arc<Item> {
        let key = key(&self.name);
        let reference = |name: &String| {
            let v1::Key { kind, namespace, name } = self::key(name).to_wire();
            v1::Reference { kind, namespace, name, ..v1::Reference::default() }
        };
        let object = v1::Object {
            kind: key.kind().to_string(),
            name: self.name.clone(),
            uid: self.life.to_string(),
            generation: self.version,
            revision: self.version,
            refs: self.needs.iter().map(reference).collect(),
            ..v1::Object::default()
        };
        let mut digest = LeafHasher::new(&key);
        digest.part(format!("{self:?}").as_bytes());
        Item::new(object, digest.finish()).unwrap()
    }
}

// === impl World ===

impl World {
    pub(crate) fn new() -> Self {
        let board = Board::new(policies(), RETRY, QUARANTINE, SmallRng::seed_from_u64(7));
        Self { board, now: Instant::now(), floor: 0 }
    }

    /// One group; the watermark before it is the number of groups before it.
    pub(crate) fn change(&mut self, changes: impl Into<Vec<Change>>) {
        self.board.change(changes.into(), Revision(self.floor), self.now);
        self.floor += 1;
        self.board.audit();
    }

    pub(crate) fn put(&mut self, thing: &Thing) {
        self.change([put(thing)]);
    }

    pub(crate) fn delete(&mut self, name: &str) {
        self.change([delete(name)]);
    }

    pub(crate) fn jobs(&mut self, room: usize) -> Vec<Job> {
        let jobs = self.board.take(room, self.now);
        self.board.audit();
        jobs
    }

    /// What begins now, in words.
    pub(crate) fn take(&mut self) -> Vec<String> {
        self.jobs(1000).iter().map(words).collect()
    }

    pub(crate) fn finish(&mut self, name: &str, outcome: Outcome) -> Finished {
        let finished = self.board.finish(&key(name), outcome, self.now).expect("it was running");
        self.board.audit();
        finished
    }

    /// A job ended well.
    pub(crate) fn done(&mut self, name: &str) -> Finished {
        let outcome = match &self.board.nodes[self.board.nodes.find(&key(name)).unwrap()].running {
            Some(running) if running.task == Task::Observe => Outcome::Observed(Observation::InSync),
            Some(running) if running.task.is_main() && running.task != Task::Apply => Outcome::Removed,
            _ => Outcome::Applied(Status::applied()),
        };
        self.finish(name, outcome)
    }

    pub(crate) fn fail(&mut self, name: &str, message: &str) {
        self.finish(name, Outcome::Failed(Failure::new(message)));
    }

    /// Does everything that can be done at this moment, each with success, and says what it was.
    pub(crate) fn run(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let jobs = self.jobs(1000);
            if jobs.is_empty() {
                return all;
            }
            for job in jobs {
                all.push(words(&job));
                self.done(job.key.name());
            }
        }
    }

    pub(crate) fn wait(&mut self, duration: Duration) {
        self.now += duration;
    }

    /// Until something is due.
    pub(crate) fn wait_until_due(&mut self) {
        self.now = self.now.max(self.board.next_due().expect("something is due"));
    }

    pub(crate) fn exception(&self, name: &str) -> Option<Exceptional<'_>> {
        self.board
            .unfinished()
            .chain(self.board.degraded())
            .find(|exception| exception.key.name() == name)
    }

    /// How an object is, in words: phase, code, and what it waits for.
    pub(crate) fn state(&self, name: &str) -> String {
        let Some(exception) = self.exception(name) else { return "fine".to_owned() };
        let mut words = vec![exception.phase.as_str_name().trim_start_matches("PHASE_"), &exception.code];
        words.extend(exception.waits_for.iter().map(ObjectKey::name));
        words.join(" ")
    }

    pub(crate) fn reason(job: &Job) -> (Reason, u32) {
        match &job.work {
            Work::Apply { reason, attempt, .. } => (*reason, *attempt),
            other => panic!("{other:?} is not an apply"),
        }
    }
}
