//! A view: the objects of one kind that pass one filter, divided into lanes by address.

mod entry;
mod restore;

use std::{cmp::Ordering, ops::Bound, sync::Arc};

use imbl::OrdMap;
use nimbus_core::{AgentId, Audience, ObjectKey, Revision, Selector, Uid};

pub(crate) use self::entry::{Entry, Seat, Seats, compare_places, mark_of, place_of};
use crate::{
    lane::{Address, Lane},
    plan::Change,
    record::{Record, Slot},
    tree::Tree,
};

/// The objects of one kind that pass one filter. A clone costs a few pointers.
#[derive(Debug, Clone)]
pub struct View {
    /// Changes before this are not known here.
    floor: Revision,
    entries: Tree<Entry>,
    observers: Arc<Lane>,
    everyone: Arc<Lane>,
    selectors: OrdMap<Selector, Arc<Lane>>,
    agents: OrdMap<AgentId, Arc<Lane>>,
}

/// What a change did to a view.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Lanes with something new to read.
    pub(crate) touched: Vec<Address>,
    /// Lanes with a new tombstone.
    pub(crate) buried: Vec<Address>,
    /// Selectors that had no lane before.
    pub(crate) opened: Vec<Selector>,
}

// === impl View ===

impl View {
    pub(crate) fn new(floor: Revision) -> Self {
        Self {
            floor,
            entries: Tree::new(),
            observers: Arc::new(Lane::new(&Address::Observers)),
            everyone: Arc::new(Lane::new(&Address::Everyone)),
            selectors: OrdMap::new(),
            agents: OrdMap::new(),
        }
    }

    /// The object of that name.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<Record>> {
        self.entry(key).map(|entry| &entry.record)
    }

    /// All objects in the order of their names, after `after` if given.
    pub fn iter(&self, after: Option<&ObjectKey>) -> impl Iterator<Item = &Arc<Record>> {
        let from = after.map_or(Bound::Unbounded, |after| Bound::Excluded(place_of(after)));
        self.entries.from(from).map(|entry| &entry.record)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The revision since which all changes are known.
    pub fn floor(&self) -> Revision {
        self.floor
    }

    /// The lane of an address, if anything ever went there.
    pub fn lane(&self, address: &Address) -> Option<&Arc<Lane>> {
        match address {
            Address::Observers => Some(&self.observers),
            Address::Everyone => Some(&self.everyone),
            Address::Selector(selector) => self.selectors.get(selector),
            Address::Agent(agent) => self.agents.get(agent),
        }
    }

    /// The selectors that have a lane.
    pub fn selectors(&self) -> impl Iterator<Item = &Selector> {
        self.selectors.keys()
    }

    /// The addresses that have a lane.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Address> {
        let selectors = self.selectors.keys().cloned().map(Address::Selector);
        let agents = self.agents.keys().cloned().map(Address::Agent);
        [Address::Observers, Address::Everyone].into_iter().chain(selectors).chain(agents)
    }

    /// Sets the object of that name, or ends it, at `slot`.
    ///
    /// `out_of_scope` says of an end that the object lives on outside of this view.
    pub(crate) fn set(
        &mut self,
        key: &ObjectKey,
        new: Option<&Arc<Record>>,
        slot: Slot,
        out_of_scope: bool,
    ) -> Effects {
        let mut effects = Effects::default();
        let old = self.entry(key).cloned();
        match (old, new) {
            (None, None) => {}
            (None, Some(record)) => {
                let since = self.edit(&Address::Observers, &mut effects, |lane| lane.insert(key, record));
                let seats = self.seat(key, record, &mut effects);
                self.entries.insert(Entry::new(record.clone(), since, seats));
            }
            (Some(old), None) => {
                let grave = old.record.grave(key, slot, old.since, out_of_scope);
                self.edit(&Address::Observers, &mut effects, |lane| lane.bury(old.record.slot(), grave));
                effects.buried.push(Address::Observers);
                for (address, at, since) in old.places() {
                    self.leave(key, &old.record, &address, at, since, slot, out_of_scope, &mut effects);
                }
                self.entries.remove(place_of(key));
            }
            (Some(old), Some(record)) => {
                self.edit(&Address::Observers, &mut effects, |lane| lane.replace(old.record.slot(), record));
                let seats = self.reseat(key, &old, record, slot, &mut effects);
                self.entries.insert(Entry::new(record.clone(), old.since, seats));
            }
        }
        effects
    }

    /// As [`View::set`] for each of these, which are new and for everyone: each lane is changed once for all of them.
    pub(crate) fn bear(&mut self, births: &[Change<'_>]) -> [Address; 2] {
        let (observers, everyone) = (Arc::make_mut(&mut self.observers), Arc::make_mut(&mut self.everyone));
        let born = || births.iter().filter_map(|birth| Some((birth.key, birth.new.as_ref()?, birth.sizes.1)));
        self.entries.extend(born().map(|(key, record, _)| {
            let (since, shared) = (observers.welcome(key, record), everyone.welcome(key, record));
            Entry::new(record.clone(), since, Seats::Shared(shared))
        }));
        observers.put_all(born().map(|(_, record, size)| (record, size)));
        everyone.put_all(born().map(|(_, record, size)| (record, size)));
        [Address::Observers, Address::Everyone]
    }

    /// The part of this view, as it is at revision `head`, that passes a filter. What ended before is not in it: who was
    /// there before the view was asks by digest.
    pub(crate) fn narrowed(&self, head: Revision, passes: impl Fn(&Record) -> bool) -> Self {
        let narrow = |lane: &Arc<Lane>| Arc::new(lane.narrowed(&passes));
        Self {
            floor: head,
            entries: self.entries.iter().filter(|entry| passes(&entry.record)).cloned().collect(),
            observers: narrow(&self.observers),
            everyone: narrow(&self.everyone),
            selectors: narrow_all(&self.selectors, narrow),
            agents: narrow_all(&self.agents, narrow),
        }
    }

    /// This view, which was taken from `base` at revision `from`, as if it were taken at `head`, and the lanes that are
    /// different. The tombstones of `base` must reach back to `from`.
    pub(crate) fn caught_up(
        mut self,
        base: &Self,
        from: Revision,
        head: Revision,
        passes: impl Fn(&Record) -> bool,
    ) -> (Self, Vec<Address>) {
        let mut touched = Vec::new();
        for grave in base.observers.ended_after(from) {
            touched.extend(self.set(&grave.key, None, grave.slot, false).touched);
        }
        for record in base.observers.live_after(from) {
            let inside = Some(record).filter(|record| passes(record));
            touched.extend(self.set(&record.to_key(), inside, record.slot(), true).touched);
        }
        self.floor = head;
        (self, touched)
    }

    /// The last life of a name that is gone.
    pub(crate) fn last_uid(&self, key: &ObjectKey) -> Option<&Uid> {
        self.observers.last_uid(key)
    }

    /// When the object of that name ended.
    pub(crate) fn end_of(&self, key: &ObjectKey) -> Option<Revision> {
        self.observers.end_of(key)
    }

    /// The agents that an object names, and when each was sent it.
    pub(crate) fn named(&self, key: &ObjectKey) -> Option<impl Iterator<Item = (&AgentId, Revision)>> {
        let seats = self.entry(key)?.named()?;
        Some(seats.iter().map(|seat| (&seat.agent, seat.slot.revision)))
    }

    /// Forgets a tombstone. Says whether the lane is gone with it.
    pub(crate) fn forget(&mut self, address: &Address, key: &ObjectKey, slot: Slot) -> bool {
        match address {
            Address::Observers => {
                Arc::make_mut(&mut self.observers).forget(key, slot);
                false
            }
            Address::Everyone => {
                Arc::make_mut(&mut self.everyone).forget(key, slot);
                false
            }
            Address::Selector(name) => forget_in(&mut self.selectors, name, key, slot),
            Address::Agent(name) => forget_in(&mut self.agents, name, key, slot),
        }
    }

    fn edit<T>(&mut self, address: &Address, effects: &mut Effects, change: impl FnOnce(&mut Lane) -> T) -> T {
        effects.touched.push(address.clone());
        let new = || Arc::new(Lane::new(address));
        let lane = match address {
            Address::Observers => &mut self.observers,
            Address::Everyone => &mut self.everyone,
            Address::Selector(name) => self.selectors.entry(name.clone()).or_insert_with(|| {
                effects.opened.push(name.clone());
                new()
            }),
            Address::Agent(name) => self.agents.entry(name.clone()).or_insert_with(new),
        };
        change(Arc::make_mut(lane))
    }

    /// Places an object that no agent had.
    fn seat(&mut self, key: &ObjectKey, record: &Arc<Record>, effects: &mut Effects) -> Seats {
        let address = match record.audience() {
            Audience::Agents(ids) => {
                let bare = record.without_audience();
                let seats = ids.iter().map(|agent| self.enter(key, &bare, agent, effects));
                return Seats::Named(seats.collect());
            }
            audience => shared_address(audience),
        };
        Seats::Shared(self.edit(&address, effects, |lane| lane.insert(key, record)))
    }

    fn enter(&mut self, key: &ObjectKey, record: &Arc<Record>, agent: &AgentId, effects: &mut Effects) -> Seat {
        let since = self.edit(&Address::Agent(agent.clone()), effects, |lane| lane.insert(key, record));
        Seat { agent: agent.clone(), slot: record.slot(), since }
    }

    /// Moves an object from its old places to its new ones: those who keep it see an update, if there is anything new
    /// to see; those who lose it a removal; those who gain it a put.
    fn reseat(
        &mut self,
        key: &ObjectKey,
        old: &Entry,
        record: &Arc<Record>,
        slot: Slot,
        effects: &mut Effects,
    ) -> Seats {
        let same_audience = old.record.audience() == record.audience();
        match (old.seats(), record.audience()) {
            (Seats::Shared(since), audience) if same_audience => {
                self.edit(&shared_address(audience), effects, |lane| lane.replace(old.record.slot(), record));
                Seats::Shared(since)
            }
            (Seats::Named(seats), Audience::Agents(ids)) => {
                let changed = old.record.leaf(false) != record.leaf(false);
                let bare = record.without_audience();
                let (mut seats, mut ids) = (seats.iter().peekable(), ids.iter().peekable());
                let mut next = Vec::with_capacity(ids.len());
                loop {
                    let order = match (seats.peek(), ids.peek()) {
                        (None, None) => break,
                        (Some(_), None) => Ordering::Less,
                        (None, Some(_)) => Ordering::Greater,
                        (Some(seat), Some(id)) => seat.agent.cmp(id),
                    };
                    match order {
                        Ordering::Less => {
                            let seat = seats.next().expect("peeked");
                            let address = Address::Agent(seat.agent.clone());
                            self.leave(key, &old.record, &address, seat.slot, seat.since, slot, true, effects);
                        }
                        Ordering::Greater => next.push(self.enter(key, &bare, ids.next().expect("peeked"), effects)),
                        Ordering::Equal => {
                            let mut seat = seats.next().expect("peeked").clone();
                            ids.next();
                            if changed {
                                let address = Address::Agent(seat.agent.clone());
                                self.edit(&address, effects, |lane| lane.replace(seat.slot, &bare));
                                seat.slot = record.slot();
                            }
                            next.push(seat);
                        }
                    }
                }
                Seats::Named(next.into())
            }
            _ => {
                for (address, at, since) in old.places() {
                    self.leave(key, &old.record, &address, at, since, slot, true, effects);
                }
                self.seat(key, record, effects)
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "they are the parts of one event")]
    fn leave(
        &mut self,
        key: &ObjectKey,
        record: &Record,
        address: &Address,
        at: Slot,
        since: Revision,
        slot: Slot,
        out_of_scope: bool,
        effects: &mut Effects,
    ) {
        let grave = record.grave(key, slot, since, out_of_scope);
        self.edit(address, effects, |lane| lane.bury(at, grave));
        effects.buried.push(address.clone());
    }
}

fn shared_address(audience: &Audience) -> Address {
    match audience {
        Audience::Selector(selector) => Address::Selector(selector.clone()),
        _ => Address::Everyone,
    }
}

fn narrow_all<K: Ord + Clone>(
    lanes: &OrdMap<K, Arc<Lane>>,
    narrow: impl Fn(&Arc<Lane>) -> Arc<Lane>,
) -> OrdMap<K, Arc<Lane>> {
    let narrowed = lanes.iter().map(|(name, lane)| (name.clone(), narrow(lane)));
    narrowed.filter(|(_, lane)| !lane.is_void()).collect()
}

fn forget_in<K: Ord + Clone>(lanes: &mut OrdMap<K, Arc<Lane>>, name: &K, key: &ObjectKey, slot: Slot) -> bool {
    let Some(lane) = lanes.get_mut(name) else { return false };
    let lane = Arc::make_mut(lane);
    lane.forget(key, slot);
    let void = lane.is_void();
    if void {
        lanes.remove(name);
    }
    void
}
