//! The model: every object, every agent, and when each was sent which, written down one by one.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{Audience, Revision};
use nimbus_wire::v1::{Phase, exclusion::Reason};

use super::*;

/// All that there is.
#[derive(Default)]
pub(super) struct Naive {
    head: u64,
    objects: BTreeMap<usize, Object>,
    ends: BTreeMap<usize, u64>,
    /// The last change in each lane: kind, and whom it is for.
    lanes: BTreeMap<(String, Address), u64>,
    agents: BTreeMap<&'static str, Agent>,
}

#[derive(Clone)]
struct Object {
    revision: u64,
    generation: u64,
    spec: u8,
    audience: usize,
    /// When named agents were sent it.
    sent: BTreeMap<String, u64>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Address {
    Shared(usize),
    Agent(String),
}

type Wish = (usize, usize);

struct Agent {
    away: Option<Instant>,
    sequence: u64,
    /// Scopes that were asked for, the newest last; the first is that of the session.
    asked: Vec<Wish>,
    /// The number of the one that the stream will take, and of the one that it has taken.
    waiting: Option<usize>,
    taken: Option<usize>,
    /// Those that the agent was told of.
    told: Vec<usize>,
    /// How many of them its marks include.
    included: usize,
    marks: (u64, u64),
    /// The marks are those of the session before.
    carried: bool,
    exceptions: BTreeMap<usize, (Phase, u64, bool)>,
}

/// Agents, received, applied, failed, pending, degraded, failed for good, least applied, and why others do not count.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts([u32; 7], Option<u64>, BTreeMap<i32, BTreeSet<String>>);

fn of(object: usize) -> &'static str {
    OBJECTS[object]
}

fn kind_name(object: usize) -> String {
    key(of(object)).kind().to_string()
}

fn names(at: usize) -> Option<Vec<String>> {
    match audience(at) {
        Audience::Agents(ids) => Some(ids.iter().map(ToString::to_string).collect()),
        _ => None,
    }
}

fn selects(at: usize, zone: &str) -> bool {
    match at {
        0 => true,
        1 => zone == "z0",
        2 => zone == "z0" || zone == "z1",
        _ => false,
    }
}

fn scope_of(id: &str, (zone, kinds): Wish) -> Scope {
    scope(id, ZONES[zone], KINDS[kinds])
}

impl Agent {
    fn wish(&self) -> Wish {
        *self.asked.last().unwrap()
    }

    fn covers(&self, object: usize) -> bool {
        let kinds = KINDS[self.wish().1];
        kinds.is_empty() || kinds.iter().any(|name| kind(name).to_string() == kind_name(object))
    }

    /// Whether the marks are of the scope that was asked for last.
    fn is_current(&self) -> bool {
        let about = if self.included == 0 { 0 } else { self.told[self.included - 1] };
        about == self.asked.len() - 1
    }

    fn marks(&self) -> (u64, u64) {
        if self.is_current() { self.marks } else { (0, 0) }
    }

    fn is_lost(&self, now: Instant) -> bool {
        self.away.is_some_and(|since| now >= since + Duration::from_secs(LOST_AFTER))
    }
}

impl Naive {
    pub(super) fn happen(&mut self, event: &Event, land: &mut Land) {
        match event.clone() {
            Event::Put { object, fresh, audience } => self.put(object, fresh, audience, land),
            Event::Delete(object) => self.delete(object, land),
            Event::Connect { agent, wish, resumes } => self.connect(AGENTS[agent], wish, resumes, land),
            Event::Cut { agent, leaving } => self.cut(AGENTS[agent], leaving, land),
            Event::Report { agent, received, applied, included, full, exceptions, cleared } => {
                let received = (self.head as f64 * received).round();
                let marks = (received as u64, (received * applied).floor() as u64);
                self.report(AGENTS[agent], marks, included, full, &exceptions, cleared, None, land);
            }
            Event::Rescope { agent, wish } => {
                self.report(AGENTS[agent], (0, 0), 0, false, &[], usize::MAX, Some(wish), land);
            }
            Event::Take(agent) => {
                let Some(known) = self.here(AGENTS[agent]) else { return };
                assert_eq!(land.take_rescope(AGENTS[agent]), known.waiting.is_some());
                known.taken = known.waiting.take().or(known.taken);
            }
            Event::Switch(agent) => {
                if let Some(known) = self.here(AGENTS[agent])
                    && let Some(taken) = known.taken.take()
                {
                    known.told.push(taken);
                    land.switch(AGENTS[agent]);
                }
            }
            Event::Pass(seconds) => {
                land.pass(seconds);
                let forgotten = |agent: &Agent| {
                    agent.away.is_some_and(|since| land.now >= since + Duration::from_secs(FORGET_AFTER))
                };
                self.agents.retain(|_, agent| !forgotten(agent));
            }
        }
    }

    fn here(&mut self, id: &str) -> Option<&mut Agent> {
        self.agents.get_mut(id).filter(|agent| agent.away.is_none())
    }

    fn touch(&mut self, object: usize, address: Address) {
        self.lanes.insert((kind_name(object), address), self.head);
    }

    fn put(&mut self, object: usize, fresh: bool, audience: usize, land: &mut Land) {
        let old = self.objects.get(&object).cloned();
        let spec = old.as_ref().map_or(1, |old| if fresh { old.spec.wrapping_add(1) } else { old.spec });
        if old.as_ref().is_some_and(|old| !fresh && old.audience == audience) {
            return;
        }
        self.head += 1;
        let (before, after) = (old.as_ref().map(|old| names(old.audience)), names(audience));
        let mut sent = BTreeMap::new();
        if let (Some(Some(before)), Some(after), Some(old)) = (&before, &after, &old) {
            for id in before.iter().chain(after) {
                let stays = before.contains(id) && after.contains(id);
                if stays && !fresh {
                    sent.insert(id.clone(), old.sent[id]);
                    continue;
                }
                self.touch(object, Address::Agent(id.clone()));
                if after.contains(id) {
                    sent.insert(id.clone(), self.head);
                }
            }
        } else {
            match (&before, &old) {
                (Some(Some(ids)), _) => ids.iter().for_each(|id| self.touch(object, Address::Agent(id.clone()))),
                (Some(None), Some(old)) => self.touch(object, Address::Shared(old.audience)),
                _ => {}
            }
            match &after {
                Some(ids) => ids.iter().for_each(|id| {
                    self.touch(object, Address::Agent(id.clone()));
                    sent.insert(id.clone(), self.head);
                }),
                None => self.touch(object, Address::Shared(audience)),
            }
        }
        let generation = old.as_ref().map_or(1, |old| old.generation + u64::from(fresh));
        self.ends.remove(&object);
        self.objects
            .insert(object, Object { revision: self.head, generation, spec, audience, sent });
        assert_eq!(land.put(of(object), spec, super::audience(audience)), self.head);
    }

    fn delete(&mut self, object: usize, land: &mut Land) {
        let Some(old) = self.objects.remove(&object) else { return };
        self.head += 1;
        match names(old.audience) {
            Some(ids) => ids.into_iter().for_each(|id| self.touch(object, Address::Agent(id))),
            None => self.touch(object, Address::Shared(old.audience)),
        }
        self.ends.insert(object, self.head);
        assert_eq!(land.delete(of(object)), self.head);
    }

    fn connect(&mut self, id: &'static str, wish: Wish, resumes: bool, land: &mut Land) {
        let known = self.agents.get(id);
        let wish = if resumes { known.map_or(wish, Agent::wish) } else { wish };
        // It resumes from what it had received, or from a little less.
        let position = known.filter(|_| resumes).map(|known| known.marks().0.saturating_sub(self.head % 2));
        let (marks, exceptions) = match (known, position) {
            (Some(known), Some(position)) if known.is_current() => {
                let (received, applied) = known.marks();
                ((received.min(position), applied.min(position)), known.exceptions.clone())
            }
            _ => ((0, 0), BTreeMap::new()),
        };
        let agent = Agent {
            away: None,
            sequence: 0,
            asked: vec![wish],
            waiting: None,
            taken: None,
            told: Vec::new(),
            included: 0,
            marks,
            carried: true,
            exceptions,
        };
        self.agents.insert(id, agent);
        land.connect(id, scope_of(id, wish), position);
    }

    fn cut(&mut self, id: &'static str, leaving: bool, land: &mut Land) {
        if self.here(id).is_none() {
            return;
        }
        if leaving {
            let scope_changes = u32::try_from(self.agents[id].included).unwrap();
            land.say(id, Said { leaving: true, scope_changes, ..Said::default() }).unwrap();
            self.agents.remove(id);
        } else if let Some(known) = self.here(id) {
            known.away = Some(land.now);
        }
        land.cut(id);
    }

    #[allow(clippy::too_many_arguments, reason = "they are the parts of one report")]
    fn report(
        &mut self,
        id: &'static str,
        marks: (u64, u64),
        included: usize,
        full: bool,
        cells: &[Cell],
        cleared: usize,
        rescope: Option<Wish>,
        land: &mut Land,
    ) {
        let objects = self.objects.clone();
        let Some(known) = self.here(id) else { return };
        // What it was told of, or one less.
        let included = known.told.len().saturating_sub(included).max(known.included);
        let full = full || known.sequence == 0;
        let generation =
            |cell: &Cell| if cell.newest { objects.get(&cell.object).map_or(1, |of| of.generation) } else { 1 };
        let exceptions = cells.iter().map(|cell| v1::Exception {
            retryable: cell.retryable,
            ..exception(of(cell.object), generation(cell), PHASES[cell.phase])
        });
        let cleared_key = OBJECTS.get(cleared).map(|name| key(name));
        let said = Said {
            received: marks.0,
            applied: marks.1,
            exceptions: exceptions.collect(),
            cleared: cleared_key.into_iter().collect(),
            full,
            scope_changes: u32::try_from(included).unwrap(),
            rescope: rescope.map(|wish| scope_of(id, wish)),
            ..Said::default()
        };
        land.say(id, said).unwrap();
        known.sequence += 1;
        let replaces = known.carried || included > known.included;
        let before = if replaces { (0, 0) } else { known.marks };
        known.marks = (marks.0.max(before.0), marks.1);
        (known.included, known.carried) = (included, false);
        if full {
            known.exceptions.clear();
        }
        known.exceptions.remove(&cleared);
        for cell in cells {
            known
                .exceptions
                .insert(cell.object, (PHASES[cell.phase], generation(cell), cell.retryable));
        }
        if let Some(wish) = rescope {
            known.asked.push(wish);
            known.waiting = Some(known.asked.len() - 1);
        }
    }

    /// The last change that concerns an agent.
    fn last(&self, id: &str, agent: &Agent) -> u64 {
        let zone = ZONES[agent.wish().0];
        let mine = |kind: &str, address: &Address| {
            let kinds = KINDS[agent.wish().1];
            let covered = kinds.is_empty() || kinds.iter().any(|name| super::kind(name).as_str() == kind);
            covered
                && match address {
                    Address::Shared(at) => selects(*at, zone),
                    Address::Agent(name) => name == id,
                }
        };
        let lasts = self
            .lanes
            .iter()
            .filter(|((kind, address), _)| mine(kind, address))
            .map(|(_, last)| *last);
        lasts.max().unwrap_or(0)
    }

    /// Compares every count with what the fleet says.
    pub(super) fn compare(&self, land: &Land) {
        for object in 0..OBJECTS.len() {
            if let Some(expected) = self.count_object(object, land.now) {
                assert_eq!(found(&land.of_object(of(object))), expected, "{}", of(object));
            }
        }
        for revision in 1..=self.head {
            assert_eq!(found(&land.of_revision(revision)), self.count_revision(revision, None, land.now), "{revision}");
        }
        for (id, agent) in &self.agents {
            let last = self.last(id, agent);
            assert_eq!(last_change(land, &scope_of(id, agent.wish())), Revision(last));
            let unwell = agent.exceptions.values().any(|(phase, ..)| *phase != Phase::Degraded);
            let health = land.health(id);
            assert_eq!((health.last_relevant.0, health.in_sync), (last, agent.marks().1 >= last && !unwell), "{id}");
        }
    }

    fn count_object(&self, at: usize, now: Instant) -> Option<Counts> {
        let Some(object) = self.objects.get(&at) else {
            let end = *self.ends.get(&at)?;
            return Some(self.count_revision(end, Some(at), now));
        };
        let mut counts = Counts::default();
        let known = self.agents.keys().map(|id| (*id).to_owned());
        let everybody: BTreeSet<String> = known.chain(names(object.audience).unwrap_or_default()).collect();
        for id in everybody {
            let named = names(object.audience);
            let Some(agent) = self.agents.get(&*id) else {
                counts.exclude(Reason::NeverConnected, &id);
                continue;
            };
            let meant = match &named {
                Some(names) => names.contains(&id),
                None => selects(object.audience, ZONES[agent.wish().0]),
            };
            if !meant {
                continue;
            }
            if !agent.covers(at) {
                counts.exclude(Reason::NotSubscribed, &id);
                continue;
            }
            let sent = object.sent.get(&id).copied().unwrap_or(object.revision);
            counts.add(&id, agent, sent, agent.exceptions.get(&at).map(|said| (*said, object.generation)), now);
        }
        Some(counts)
    }

    fn count_revision(&self, revision: u64, end: Option<usize>, now: Instant) -> Counts {
        let mut counts = Counts::default();
        for (id, agent) in &self.agents {
            let bar = revision.min(self.last(id, agent));
            let changed = |at: &usize| match self.objects.get(at) {
                Some(object) => object.revision == revision,
                None => self.ends.get(at) == Some(&revision),
            };
            let generation = |at: &usize| self.objects.get(at).map_or(0, |object| object.generation);
            let said = agent
                .exceptions
                .iter()
                .filter(|(at, _)| end.map_or_else(|| changed(at), |end| **at == end));
            let said: Vec<_> = said.map(|(at, said)| (*said, generation(at))).collect();
            let worst = said.into_iter().max_by_key(|said| weight(agent, bar, Some(*said)));
            counts.add(id, agent, bar, worst, now);
        }
        counts
    }
}

/// Applied, degraded, pending, failed, failed for good.
fn weight(agent: &Agent, bar: u64, said: Option<((Phase, u64, bool), u64)>) -> usize {
    let there = agent.marks().1 >= bar;
    match said {
        None if there => 0,
        Some(((Phase::Degraded, ..), _)) if there => 1,
        Some(((Phase::Failed, of, retryable), generation)) if there || (agent.marks().0 >= bar && of == generation) => {
            4 - usize::from(retryable)
        }
        _ => 2,
    }
}

impl Counts {
    fn exclude(&mut self, reason: Reason, id: &str) {
        self.2.entry(reason.into()).or_default().insert(id.to_owned());
    }

    fn add(&mut self, id: &str, agent: &Agent, bar: u64, said: Option<((Phase, u64, bool), u64)>, now: Instant) {
        if agent.is_lost(now) {
            return self.exclude(Reason::Lost, id);
        }
        let (received, applied) = agent.marks();
        let Self([agents, arrived, done, failed, pending, degraded, for_good], least, _) = self;
        *agents += 1;
        *arrived += u32::from(received >= bar);
        *least = Some(least.map_or(applied, |least| least.min(applied)));
        match weight(agent, bar, said) {
            0 => *done += 1,
            1 => (*done, *degraded) = (*done + 1, *degraded + 1),
            2 => *pending += 1,
            3 => *failed += 1,
            _ => (*failed, *for_good) = (*failed + 1, *for_good + 1),
        }
    }
}

/// The same, as the fleet says it.
fn found(of: &v1::Propagation) -> Counts {
    let excluded = of.excluded.iter().map(|of| (of.reason, of.agents.iter().cloned().collect()));
    Counts(numbers(of), (of.agents > 0).then_some(of.min_applied), excluded.collect())
}
