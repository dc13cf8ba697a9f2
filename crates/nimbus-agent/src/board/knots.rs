//! Nodes that wait for each other.
//!
//! A bus refuses cycles of references, so there should be none. There is one when a bus is wrong, and there may seem to
//! be one when changes that came one after another arrive as one. The first kind is reported, the second untied.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use tokio::time::Instant;

use crate::board::{
    Board,
    barrier::GroupId,
    node::{Stage, Want},
    slots::Slot,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KnotId(u64);

/// Cycles that were found, and where to look for more.
#[derive(Debug, Default)]
pub(crate) struct Knots {
    found: BTreeMap<KnotId, Knot>,
    issued: u64,
    suspects: BTreeSet<Slot>,
    /// What searching may cost: so much that it is never more than a part of everything else.
    credit: isize,
    /// When to look at the suspects whatever it costs.
    pub(crate) at: Option<Instant>,
}

#[derive(Debug)]
struct Knot {
    members: BTreeSet<Slot>,
    message: String,
}

/// What waits, or is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Vertex {
    Node(Slot),
    /// The puts of a group, for its removals.
    Group(GroupId),
}

/// Tarjan's algorithm, without recursion: chains are long.
#[derive(Default)]
struct Search {
    marks: HashMap<Vertex, Mark>,
    stack: Vec<Vertex>,
    way: Vec<(Vertex, Vec<Vertex>)>,
    cost: usize,
}

struct Mark {
    number: usize,
    lowest: usize,
    on_stack: bool,
}

/// Nodes that each look at a node pays for. Boards with fewer nodes that wait are searched after every event.
const CREDIT_PER_EVENT: isize = 8;

/// A large board is looked at no later than this.
const PATIENCE: Duration = Duration::from_secs(1);

/// Names in a message.
const MAX_NAMES: usize = 16;

// === impl Knots ===

impl Knots {
    pub(crate) fn earn(&mut self) {
        self.credit = self.credit.saturating_add(CREDIT_PER_EVENT);
    }

    /// A node waits for something new.
    pub(crate) fn suspect(&mut self, slot: Slot, now: Instant) {
        self.suspects.insert(slot);
        self.at.get_or_insert(now + PATIENCE);
    }

    /// What is wrong with the members of a knot.
    pub(crate) fn message(&self, id: KnotId) -> &str {
        self.found.get(&id).map_or("", |knot| &knot.message)
    }
}

// === impl Board ===

impl Board {
    /// Looks for cycles, if there may be new ones and it is worth the effort. Says whether something was let go.
    pub(crate) fn find_knots(&mut self, now: Instant) -> bool {
        let urgent = self.knots.at.is_some_and(|at| at <= now);
        if self.knots.suspects.is_empty() || !(urgent || self.knots.credit >= self.counts.waiting.cast_signed()) {
            return false;
        }
        let mut search = Search::default();
        let mut cycles = Vec::new();
        for slot in std::mem::take(&mut self.knots.suspects) {
            search.run(self, Vertex::Node(slot), &mut cycles);
        }
        self.knots.at = None;
        let credit = self.knots.credit.saturating_sub_unsigned(search.cost);
        self.knots.credit = if urgent { credit.max(0) } else { credit };
        let mut loosened = false;
        for cycle in cycles {
            let nodes: BTreeSet<_> = cycle.iter().filter_map(Vertex::node).collect();
            if self.loosen(&cycle, &nodes) {
                // What is left of it may still be a cycle.
                nodes.into_iter().for_each(|slot| self.knots.suspect(slot, now));
                loosened = true;
            } else {
                self.tie(nodes, now);
            }
        }
        loosened
    }

    /// Lets go of what can be let go of: the order within a group, and the removal of an older life of a name.
    fn loosen(&mut self, cycle: &[Vertex], nodes: &BTreeSet<Slot>) -> bool {
        let groups: Vec<_> = cycle.iter().filter_map(Vertex::group).collect();
        let clears = |slot: &Slot| self.nodes[*slot].desired.is_some() && self.nodes[*slot].want() == Want::Remove;
        let clearing: Vec<_> = nodes.iter().copied().filter(clears).collect();
        let any = !groups.is_empty() || !clearing.is_empty();
        groups.into_iter().for_each(|group| self.barriers.disband(group));
        for slot in clearing {
            self.nodes[slot].in_place = true;
            self.mark(slot);
        }
        any
    }

    /// Reports a cycle that can only be broken by a change of one of its members.
    fn tie(&mut self, nodes: BTreeSet<Slot>, now: Instant) {
        let known = nodes.first().and_then(|slot| self.nodes[*slot].knot);
        if known.and_then(|id| self.knots.found.get(&id)).is_some_and(|knot| knot.members == nodes) {
            return;
        }
        nodes.iter().for_each(|slot| self.untie(*slot));
        self.knots.issued += 1;
        let id = KnotId(self.knots.issued);
        for slot in &nodes {
            self.nodes[*slot].knot = Some(id);
            self.count(*slot, now);
        }
        self.knots.found.insert(id, Knot { message: self.way_round(&nodes), members: nodes });
        self.version += 1;
    }

    /// A node is no longer part of a cycle, so there may be none any more.
    pub(crate) fn untie(&mut self, slot: Slot) {
        let Some(knot) = self.nodes[slot].knot.and_then(|id| self.knots.found.remove(&id)) else { return };
        self.version += 1;
        for member in knot.members {
            let node = &mut self.nodes[member];
            (node.knot, node.grown) = (None, true);
            self.mark(member);
        }
    }

    /// Names the members in the order in which each waits for the next.
    fn way_round(&self, members: &BTreeSet<Slot>) -> String {
        let (mut way, mut places) = (Vec::new(), HashMap::new());
        let mut next = members.first().copied();
        let closed = loop {
            let Some(here) = next else { break &way[..] };
            if let Some(from) = places.insert(here, way.len()) {
                break &way[from..];
            }
            way.push(here);
            next = self.blockers(here).find(|next| members.contains(next));
        };
        let mut names: Vec<_> = closed.iter().take(MAX_NAMES).map(|slot| self.nodes[*slot].key.to_string()).collect();
        if closed.len() > MAX_NAMES {
            names.push(format!("… ({} more)", closed.len() - MAX_NAMES));
        }
        names.extend(closed.first().map(|slot| self.nodes[*slot].key.to_string()));
        format!("waits for itself: {}", names.join(" → "))
    }

    /// The nodes that this one waits for.
    pub(crate) fn blockers(&self, slot: Slot) -> impl Iterator<Item = Slot> {
        let node = &self.nodes[slot];
        let (needs, held_by) = match node.want() {
            Want::Nothing => (None, None),
            Want::Apply => (Some(&node.needs), None),
            Want::Remove => (None, Some(&node.held_by)),
        };
        let group = node.group.filter(|_| self.awaits_group(slot));
        let needs = needs.into_iter().flatten().copied().filter(|on| !self.nodes[*on].good);
        let held_by = held_by.into_iter().flatten().copied();
        needs
            .chain(held_by)
            .chain(group.into_iter().flat_map(|group| self.barriers.holding(group)))
    }

    /// What a vertex waits for, of what waits itself, and how many it had to look at to say so. Nothing that runs, or will,
    /// can be part of a cycle.
    fn successors(&self, vertex: Vertex) -> (Vec<Vertex>, usize) {
        let mut looked_at = 1;
        let mut blocked = |slot: &Slot| {
            looked_at += 1;
            self.nodes[*slot].stage == Stage::Blocked
        };
        let successors = match vertex {
            Vertex::Group(group) => self.barriers.holding(group).filter(blocked).map(Vertex::Node).collect(),
            Vertex::Node(slot) => {
                let node = &self.nodes[slot];
                // Only removals wait for what may wait itself.
                let group = node
                    .group
                    .filter(|_| node.desired.is_none() && self.awaits_group(slot))
                    .map(Vertex::Group);
                let nodes: Vec<_> = match node.want() {
                    Want::Nothing => Vec::new(),
                    Want::Apply => {
                        node.needs.iter().copied().filter(|on| !self.nodes[*on].good && blocked(on)).collect()
                    }
                    Want::Remove => node.held_by.iter().copied().filter(blocked).collect(),
                };
                nodes.into_iter().map(Vertex::Node).chain(group).collect()
            }
        };
        (successors, looked_at)
    }
}

// === impl Vertex ===

impl Vertex {
    fn node(&self) -> Option<Slot> {
        match self {
            Self::Node(slot) => Some(*slot),
            Self::Group(_) => None,
        }
    }

    fn group(&self) -> Option<GroupId> {
        match self {
            Self::Node(_) => None,
            Self::Group(group) => Some(*group),
        }
    }
}

// === impl Search ===

impl Search {
    /// Finds the cycles that can be reached from here and were not found before.
    fn run(&mut self, board: &Board, start: Vertex, cycles: &mut Vec<Vec<Vertex>>) {
        let waits = |slot| board.nodes.get(slot).is_some_and(|node| node.stage == Stage::Blocked);
        if !start.node().is_some_and(waits) || self.marks.contains_key(&start) {
            return;
        }
        self.visit(board, start);
        while let Some((vertex, left)) = self.way.last_mut() {
            let vertex = *vertex;
            if let Some(next) = left.pop() {
                match self.marks.get(&next) {
                    None => self.visit(board, next),
                    Some(mark) if mark.on_stack => {
                        let number = mark.number;
                        self.lower(vertex, number);
                    }
                    Some(_) => {}
                }
                continue;
            }
            self.way.pop();
            let Mark { number, lowest, .. } = self.marks[&vertex];
            if let Some((parent, _)) = self.way.last() {
                self.lower(*parent, lowest);
            }
            if lowest == number {
                let from = self.stack.iter().rposition(|other| *other == vertex).expect("it is still on the stack");
                let component = self.stack.split_off(from);
                for member in &component {
                    self.marks.get_mut(member).expect("it was visited").on_stack = false;
                }
                if component.len() > 1 {
                    cycles.push(component);
                }
            }
        }
    }

    fn visit(&mut self, board: &Board, vertex: Vertex) {
        let (successors, looked_at) = board.successors(vertex);
        self.cost += looked_at;
        let number = self.marks.len();
        self.marks.insert(vertex, Mark { number, lowest: number, on_stack: true });
        self.stack.push(vertex);
        self.way.push((vertex, successors));
    }

    fn lower(&mut self, vertex: Vertex, to: usize) {
        let mark = self.marks.get_mut(&vertex).expect("it was visited");
        mark.lowest = mark.lowest.min(to);
    }
}

#[cfg(test)]
impl Knots {
    /// As if a lot had been looked at.
    pub(crate) fn spend_all(&mut self) {
        self.credit = 0;
    }

    pub(crate) fn len(&self) -> usize {
        self.found.len()
    }
}
