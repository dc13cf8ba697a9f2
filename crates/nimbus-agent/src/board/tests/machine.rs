//! A machine that checks every call, and a board that makes them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use nimbus_client::Item;
use nimbus_core::{Failure, ObjectKey, Revision};
use rand::{SeedableRng as _, rngs::SmallRng};
use tokio::time::Instant;

use crate::{
    board::{
        Board, Change, Job, Outcome, Work,
        tests::world::{QUARANTINE, RETRY, key, policies, thing},
    },
    handler::{Observation, Reason, Status},
};

pub(crate) const NAMES: [&str; 9] = ["seen-a", "swap-a", "excl-a", "seen-b", "a", "swap-b", "excl-b", "seen-c", "b"];
pub(crate) const ROOM: usize = 4;

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Change(Vec<Edit>),
    Take(usize),
    Finish { which: usize, how: How },
    Wait(u64),
    Crash { trust: bool },
    ResetFloors,
}

/// What should become of a name. It may need only names before it, so that there is no cycle in any version, though there
/// may be one between the version of one and an older version of another.
#[derive(Debug, Clone)]
pub(crate) struct Edit {
    pub(crate) name: usize,
    pub(crate) to: Option<Target>,
}

#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) version: u64,
    pub(crate) life: u64,
    pub(crate) needs: u16,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum How {
    Well,
    Failed,
    Permanently,
    Panicked,
    Dropped,
    /// As well as can be, if it was not a look.
    Drifted,
}

/// One object on the machine, and on the disk of the agent.
#[derive(Debug, Default)]
struct Entry {
    desired: Option<Arc<Item>>,
    applied: Option<Arc<Item>>,
    begun: Option<Arc<Item>>,
    removing: bool,
    unproven: bool,
    running: Option<Call>,
    refused: bool,
    /// The handler panicked on this version.
    poisoned: bool,
    /// The floors of changes that are not finished, oldest first.
    floors: Vec<u64>,
    /// How often `desired` has changed.
    changes: usize,
}

#[derive(Debug)]
struct Call {
    job: Job,
    heals: bool,
    clears: bool,
    outdated: bool,
    /// How many of the floors it finishes.
    finishes: usize,
}

/// A board and the machine that it works on.
pub(crate) struct Machine {
    board: Board,
    now: Instant,
    entries: BTreeMap<ObjectKey, Entry>,
    revision: u64,
    calls: usize,
    /// Only if nothing refers to anything: order within groups yields to references.
    groups: Option<Vec<Group>>,
}

/// Puts and removals of one kind that came together, and how often each had changed by then.
#[derive(Debug, Default)]
struct Group {
    puts: BTreeMap<ObjectKey, usize>,
    deletes: BTreeMap<ObjectKey, usize>,
}

fn board(seed: u64) -> Board {
    Board::new(policies(), RETRY, QUARANTINE, SmallRng::seed_from_u64(seed))
}

fn item(name: usize, target: &Target) -> Arc<Item> {
    let needs: Vec<_> = (0..name)
        .filter(|other| target.needs & (1 << other) != 0)
        .map(|other| NAMES[other])
        .collect();
    thing(NAMES[name]).v(target.version).life(target.life).needs(&needs).item()
}

fn is_same(a: Option<&Arc<Item>>, b: Option<&Arc<Item>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.is_same(b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

// === impl Entry ===

impl Entry {
    /// Whether this is all there is to do.
    fn is_done(&self) -> bool {
        let certain = self.begun.is_none() && (!self.unproven || self.desired.is_none());
        certain && is_same(self.desired.as_ref(), self.applied.as_ref())
    }

    /// Whether something can be built on it.
    fn carries(&self) -> bool {
        let is_newest = is_same(self.desired.as_ref(), self.applied.as_ref());
        let good = self.begun.is_none() && !self.unproven && is_newest;
        self.applied.is_some() && !self.removing && (self.desired.is_none() || good)
    }

    /// Whether something of it is here that needs another.
    fn stands_on(&self, key: &ObjectKey) -> bool {
        let call = self.running.as_ref().and_then(|call| match &call.job.work {
            Work::Apply { item, .. } => Some(item),
            _ => None,
        });
        [&self.applied, &self.begun]
            .into_iter()
            .flatten()
            .chain(call)
            .any(|item| item.needs().any(|other| other == key))
    }
}

// === impl Machine ===

impl Machine {
    pub(crate) fn new(refers: bool) -> Self {
        let entries = NAMES.iter().map(|name| (key(name), Entry::default())).collect();
        Self { board: board(0), now: Instant::now(), entries, revision: 0, calls: 0, groups: (!refers).then(Vec::new) }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match step {
            Step::Change(edits) => {
                let change = |edit: &Edit| match &edit.to {
                    Some(target) => Change::Put(item(edit.name, target)),
                    None => Change::Delete(key(NAMES[edit.name])),
                };
                self.change(edits.iter().map(change).collect());
            }
            Step::Take(room) => self.take(*room),
            Step::Finish { which, how } => {
                let running: Vec<_> = self.running().cloned().collect();
                if !running.is_empty() {
                    self.finish(&running[which % running.len()], *how);
                }
            }
            Step::Wait(millis) => self.now += Duration::from_millis(*millis),
            Step::Crash { trust } => self.crash(*trust),
            Step::ResetFloors => {
                self.board.reset_floors();
                self.entries
                    .values_mut()
                    .for_each(|entry| entry.floors.iter_mut().for_each(|floor| *floor = 0));
            }
        }
        self.check();
    }

    fn running(&self) -> impl Iterator<Item = &ObjectKey> {
        self.entries.iter().filter(|(_, entry)| entry.running.is_some()).map(|(key, _)| key)
    }

    fn change(&mut self, changes: Vec<Change>) {
        let before: BTreeMap<_, _> = self.entries.iter().map(|(key, entry)| (key.clone(), entry.changes)).collect();
        for change in &changes {
            let (key, desired) = match change {
                Change::Put(item) => (item.key(), Some(item.clone())),
                Change::Delete(key) => (key, None),
            };
            let entry = self.entries.get_mut(key).unwrap();
            if !is_same(entry.desired.as_ref(), desired.as_ref()) {
                entry.floors.push(self.revision);
                entry.changes += 1;
                (entry.refused, entry.poisoned) = (false, false);
                entry.running.iter_mut().for_each(|call| call.outdated = true);
            }
            entry.desired = desired;
        }
        self.board.change(changes, Revision(self.revision), self.now);
        self.revision += 1;
        self.group(|key, entry| entry.changes != before[key]);
    }

    /// Notes what came together, of what is still to be done.
    fn group(&mut self, came: impl Fn(&ObjectKey, &Entry) -> bool) {
        let Some(groups) = &mut self.groups else { return };
        let mut kinds: BTreeMap<_, Group> = BTreeMap::new();
        for (key, entry) in self.entries.iter().filter(|(key, entry)| came(key, entry) && !entry.is_done()) {
            let group = kinds.entry(key.kind().clone()).or_default();
            if entry.desired.is_some() { &mut group.puts } else { &mut group.deletes }
                .insert(key.clone(), entry.changes);
        }
        groups.extend(kinds.into_values());
    }

    /// Whether what should go before this within its group is done, or is no longer what it was.
    fn is_its_turn(&self, key: &ObjectKey, apply: bool) -> bool {
        let changes = self.entries[key].changes;
        let is_in = |side: &BTreeMap<ObjectKey, usize>| side.get(key) == Some(&changes);
        let is_over = |(other, changes): (&ObjectKey, &usize)| {
            let entry = &self.entries[other];
            let hopeless = apply && (entry.refused || entry.poisoned);
            entry.changes != *changes || entry.is_done() || hopeless
        };
        self.groups.iter().flatten().all(|group| match key.kind().as_str() {
            "demo.v1.swap" if !apply && is_in(&group.deletes) => group.puts.iter().all(is_over),
            "demo.v1.excl" if apply && is_in(&group.puts) => group.deletes.iter().all(is_over),
            _ => true,
        })
    }

    fn take(&mut self, room: usize) {
        let room = room.min(ROOM - self.running().count());
        for job in self.board.take(room, self.now) {
            self.begin(job);
        }
        assert!(self.running().count() <= ROOM);
        let looks =
            |entry: &&Entry| matches!(&entry.running, Some(Call { job: Job { work: Work::Observe { .. }, .. }, .. }));
        assert!(self.entries.values().filter(looks).count() <= ROOM / 2);
    }

    fn begin(&mut self, job: Job) {
        self.calls += 1;
        let entry = &self.entries[&job.key];
        assert!(entry.running.is_none(), "two calls at once: {job:?}");
        let heals = match &job.work {
            Work::Apply { item, previous, reason, .. } => {
                assert!(is_same(previous.as_ref(), entry.applied.as_ref()), "{job:?} does not follow {entry:?}");
                // A retry of a heal cannot be told from a retry of a change by its reason.
                let settled = entry.is_done() || !is_same(Some(item), entry.desired.as_ref()) || entry.refused;
                let heals = *reason == Reason::Drift || (*reason == Reason::Retry && settled);
                self.may_apply(item, heals);
                assert!(heals || self.is_its_turn(&job.key, true), "{job:?} comes too early");
                heals
            }
            Work::Remove { item, .. } => {
                assert!(is_same(Some(item), entry.applied.as_ref().or(entry.begun.as_ref())), "{job:?} of {entry:?}");
                let unwanted = entry.desired.as_ref().is_none_or(|desired| !desired.is_same_life(item));
                assert!(unwanted, "{job:?} removes what should be here");
                let clears = entry.desired.is_some();
                assert!(clears || self.is_its_turn(&job.key, false), "{job:?} comes too early");
                for (other, entry) in self.entries.iter().filter(|(other, _)| **other != job.key) {
                    assert!(!entry.stands_on(&job.key), "{job:?} takes away what {other} stands on");
                }
                false
            }
            Work::Observe { item } => {
                assert!(is_same(Some(item), entry.applied.as_ref()), "{job:?} of {entry:?}");
                assert!(!job.begins);
                false
            }
        };
        let entry = self.entries.get_mut(&job.key).unwrap();
        match &job.work {
            _ if heals => assert!(!job.begins),
            Work::Apply { item, .. } => {
                let known = is_same(Some(item), entry.applied.as_ref()) || is_same(Some(item), entry.begun.as_ref());
                assert_eq!(job.begins, !known, "{job:?} of {entry:?}");
            }
            Work::Remove { .. } => assert_eq!(job.begins, entry.begun.is_none()),
            Work::Observe { .. } => {}
        }
        if job.begins
            && let Work::Apply { item, .. } | Work::Remove { item, .. } = &job.work
        {
            entry.begun = Some(item.clone());
        }
        entry.removing |= matches!(job.work, Work::Remove { .. });
        let clears = entry.desired.is_some() && matches!(job.work, Work::Remove { .. });
        entry.running = Some(Call { job, heals, clears, outdated: false, finishes: entry.floors.len() });
    }

    fn may_apply(&self, item: &Arc<Item>, heals: bool) {
        let entry = &self.entries[item.key()];
        if heals {
            assert!(is_same(Some(item), entry.applied.as_ref()), "{item:?} does not heal {entry:?}");
        } else {
            assert!(is_same(Some(item), entry.desired.as_ref()), "{item:?} is not wanted: {entry:?}");
            assert!(!entry.is_done(), "{item:?} is applied already");
            assert!(!entry.refused, "{item:?} was refused for good");
        }
        for other in item.needs() {
            let referent = &self.entries[other];
            let stands = if heals { referent.applied.is_some() } else { referent.carries() };
            assert!(stands, "{item:?} needs {other}, which is {referent:?}");
        }
    }

    fn finish(&mut self, key: &ObjectKey, how: How) {
        let entry = self.entries.get_mut(key).unwrap();
        let call = entry.running.take().unwrap();
        let main = !call.heals && !matches!(call.job.work, Work::Observe { .. });
        let outcome = match (how, &call.job.work) {
            (How::Failed, _) => Outcome::Failed(Failure::new("no")),
            (How::Permanently, _) => Outcome::Failed(Failure::new("never").permanent()),
            (How::Panicked, _) => Outcome::Panicked("oops".into()),
            (How::Dropped, _) => Outcome::Dropped,
            (How::Drifted, Work::Observe { .. }) => Outcome::Observed(Observation::Drifted("moved".into())),
            (_, Work::Observe { .. }) => Outcome::Observed(Observation::InSync),
            (_, Work::Apply { .. }) => Outcome::Applied(Status::applied()),
            (_, Work::Remove { .. }) => Outcome::Removed,
        };
        entry.refused |= main && !call.outdated && matches!(how, How::Permanently);
        entry.poisoned =
            main && !call.outdated && (matches!(how, How::Panicked) || (entry.poisoned && matches!(how, How::Dropped)));
        let expected = match (&outcome, &call.job.work) {
            (Outcome::Applied(_), Work::Apply { item, .. }) => Some(Some(item.clone())),
            (Outcome::Removed, _) => Some(None),
            _ => None,
        };
        if main && expected.is_some() && !call.clears {
            entry.floors.drain(..call.finishes);
        }
        let finished = self.board.finish(key, outcome, self.now).expect("it was running");
        assert_eq!(finished.applied, expected);
        if let Some(applied) = finished.applied {
            (entry.applied, entry.begun, entry.unproven, entry.removing) = (applied, None, false, false);
        }
    }

    /// The agent dies, and begins again with what is on its disk.
    fn crash(&mut self, trust: bool) {
        let mut kept = (Vec::new(), Vec::new(), Vec::new());
        for entry in self.entries.values_mut() {
            (entry.running, entry.refused, entry.poisoned) = (None, false, false);
            entry.unproven = !trust && entry.applied.is_some();
            entry.changes += 1;
            entry.floors = vec![0];
            entry.removing = entry.begun.is_some() && is_same(entry.applied.as_ref(), entry.begun.as_ref());
            kept.0.extend(entry.desired.clone());
            kept.1.extend(entry.applied.clone());
            kept.2.extend(entry.begun.clone());
        }
        self.board = board(self.revision);
        self.board.restore(kept.0, kept.1, kept.2, trust, self.now);
        self.group(|_, _| true);
    }

    fn check(&mut self) {
        self.board.audit();
        self.entries
            .values_mut()
            .filter(|entry| entry.is_done())
            .for_each(|entry| entry.floors.clear());
        let unfinished: BTreeMap<_, _> =
            self.board.unfinished().map(|entry| (entry.key.clone(), entry.floor.0)).collect();
        let expected = self.entries.iter().filter(|(_, entry)| !entry.is_done());
        let floor = |entry: &Entry| entry.floors.iter().min().copied().expect("some change is unfinished");
        assert_eq!(unfinished, expected.map(|(key, entry)| (key.clone(), floor(entry))).collect());
        let told: BTreeSet<_> = self.board.degraded().map(|entry| entry.key.clone()).collect();
        assert!(told.iter().all(|key| !unfinished.contains_key(key)), "each object is told once");
        assert!(self.board.unfinished().all(|entry| entry.code != "CYCLE"), "there is no cycle");
    }

    /// Puts what is missing, and changes what was refused for good.
    pub(crate) fn mend(&mut self) {
        let wanted: BTreeSet<_> = self
            .entries
            .values()
            .filter_map(|entry| entry.desired.clone())
            .collect::<Vec<_>>()
            .iter()
            .flat_map(|item| item.needs().cloned().collect::<Vec<_>>())
            .collect();
        let mut changes = Vec::new();
        let mut gone = Vec::new();
        for (name, text) in NAMES.iter().enumerate() {
            let key = key(text);
            let entry = &self.entries[&key];
            let fresh = || Change::Put(item(name, &Target { version: 99, life: 1, needs: 0 }));
            match &entry.desired {
                None if wanted.contains(&key) => changes.push(fresh()),
                None if entry.refused => {
                    changes.push(fresh());
                    gone.push(Change::Delete(key));
                }
                Some(_) if entry.refused => changes.push(fresh()),
                _ => {}
            }
        }
        self.change(changes);
        self.check();
        self.change(gone);
        self.check();
    }

    /// From now on, everything succeeds.
    pub(crate) fn converge(&mut self) {
        let (calls, begin) = (self.calls, self.now);
        for _ in 0..500 {
            self.take(ROOM);
            let running: Vec<_> = self.running().cloned().collect();
            for key in &running {
                self.finish(key, How::Well);
                self.check();
            }
            if running.is_empty() {
                if self.entries.values().all(Entry::is_done) {
                    break;
                }
                let due = self.board.next_due();
                let states: Vec<_> = self.board.unfinished().collect();
                self.now = self.now.max(due.unwrap_or_else(|| panic!("nothing will ever happen: {states:#?}")));
            }
        }
        let left: Vec<_> = self.board.unfinished().collect();
        assert!(left.is_empty(), "{left:#?}");
        let looks = usize::try_from((self.now - begin).as_secs() / 50).unwrap() * NAMES.len();
        assert!(self.calls - calls <= NAMES.len() * 8 + looks, "busy: {} calls", self.calls - calls);
        for (key, entry) in &self.entries {
            assert!(is_same(entry.desired.as_ref(), entry.applied.as_ref()), "{key}: {entry:?}");
        }
        let desired = self.entries.values().filter(|entry| entry.desired.is_some()).count();
        assert_eq!(self.board.nodes.len(), desired, "nothing else is remembered");
        assert_eq!((self.board.barriers.len(), self.board.knots.len()), (0, 0));
        assert!(self.board.is_settled() && !self.board.is_busy());
    }
}
