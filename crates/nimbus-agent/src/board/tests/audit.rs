//! Everything that the board keeps up to date, computed anew.

use std::{collections::BTreeSet, sync::Arc};

use nimbus_client::Item;

use crate::board::{
    Board,
    counts::{Counts, Share},
    lanes::Lane,
    node::{Hold, Node, Stage, Task, Want},
    slots::Slot,
};

// === impl Board ===

impl Board {
    /// Whether everything is as it should be.
    pub(crate) fn is_settled(&self) -> bool {
        self.unfinished.is_empty()
    }

    /// Compares everything that is derived with what it is derived from.
    pub(crate) fn audit(&self) {
        assert!(self.dirty.is_empty(), "an event ended too early");
        let mut counts = Counts::default();
        let slots: Vec<Slot> = self.nodes.slots().collect();
        for slot in &slots {
            let node = &self.nodes[*slot];
            assert!(!node.is_empty(), "forgotten: {node:#?}");
            let resolve = |item: &Arc<Item>| -> Vec<Slot> {
                let known = item.needs().filter(|key| self.policies.orders(key.kind()));
                known.map(|key| self.nodes.find(key).expect("referents have nodes")).collect()
            };
            let mut needs: BTreeSet<Slot> = node.desired.iter().flat_map(resolve).collect();
            let mut holds: BTreeSet<Slot> = node.applied.iter().chain(&node.begun).flat_map(resolve).collect();
            needs.remove(slot);
            holds.remove(slot);
            assert!(node.needs.iter().eq(needs.iter()), "needs of {node:#?}");
            let keeps = |on: Slot| node.stays() && needs.contains(&on);
            let holds: Vec<_> = holds.into_iter().map(|on| Hold { on, keeps: keeps(on) }).collect();
            assert_eq!(node.holds, holds, "holds of {node:#?}");
            let needed_by = slots.iter().filter(|other| self.nodes[**other].needs.contains(slot));
            assert!(node.needed_by.iter().eq(needed_by), "needed_by of {node:#?}");
            let on_me = |other: &&Slot| self.nodes[**other].holds.iter().any(|hold| hold.on == *slot);
            assert!(node.held_by.iter().eq(slots.iter().filter(on_me)), "held_by of {node:#?}");
            let keeps_me = |other: &&Slot| self.nodes[**other].holds.contains(&Hold { on: *slot, keeps: true });
            assert_eq!(node.keepers, slots.iter().filter(keeps_me).count(), "keepers of {node:#?}");
            let missing = node.needs.iter().filter(|on| !self.nodes[**on].is_good()).count();
            assert_eq!(node.missing, missing, "missing of {node:#?}");
            assert_eq!(node.good, node.is_good(), "good of {node:#?}");
            assert_eq!(node.share, node.share(), "share of {node:#?}");
            counts.replace(Share::default(), node.share);
            assert_eq!(node.floor.is_some(), node.want() != Want::Nothing, "floor of {node:#?}");
            self.audit_stage(*slot);
        }
        assert_eq!(self.counts, counts);
        let all = |keep: fn(&Node) -> bool| {
            slots.iter().copied().filter(|slot| keep(&self.nodes[*slot])).collect::<BTreeSet<_>>()
        };
        assert_eq!(self.unfinished, all(|node| node.want() != Want::Nothing));
        assert_eq!(self.degraded, all(Node::is_degraded));
        let observing = |node: &Node| node.running.as_ref().is_some_and(|running| running.task == Task::Observe);
        assert_eq!(self.observing, all(observing).len());
        assert_eq!(self.lanes.len(), slots.iter().filter(|slot| self.nodes[**slot].ticket.is_some()).count());
        let alarms = slots.iter().map(|slot| {
            let node = &self.nodes[*slot];
            let stuck = node.running.as_ref().is_some_and(|running| running.stuck_at.is_some());
            usize::from(node.retry_at.is_some()) + usize::from(node.watch.at.is_some()) + usize::from(stuck)
        });
        assert_eq!(self.timers.len(), alarms.sum::<usize>(), "alarms that nobody waits for, or the other way round");
    }

    fn audit_stage(&self, slot: Slot) {
        let node = &self.nodes[slot];
        let permanent = node.trouble.as_ref().is_some_and(|trouble| trouble.failure.is_permanent());
        let blocked = match node.want() {
            Want::Nothing => false,
            Want::Apply => node.missing > 0,
            Want::Remove => !node.held_by.is_empty(),
        };
        // A node that is queued notices only when its turn comes that its group has closed.
        let stages: &[Stage] = match node.want() {
            _ if node.running.as_ref().is_some_and(|running| running.task.is_main()) => &[Stage::Running],
            Want::Nothing => &[Stage::Idle],
            _ if permanent => &[Stage::Refused],
            _ if node.retry_at.is_some() => &[Stage::Backoff],
            _ if blocked => &[Stage::Blocked],
            _ if self.awaits_group(slot) => &[Stage::Blocked, Stage::Ready],
            _ => &[Stage::Ready],
        };
        assert!(stages.contains(&node.stage), "expected {stages:?}: {node:#?}");
        let lanes: &[Option<Lane>] = match node.stage {
            _ if node.running.is_some() => &[None],
            Stage::Ready => &[Some(Lane::Fresh), Some(Lane::Again)],
            _ if node.watch.due => &[Some(Lane::Again), Some(Lane::Look)],
            _ => &[None],
        };
        assert!(lanes.contains(&node.ticket.map(|ticket| ticket.lane)), "expected {lanes:?}: {node:#?}");
        let plans = node.watch.at.is_some() || node.watch.due;
        assert_eq!(plans, node.is_watched() && node.running.is_none(), "looks of {node:#?}");
        assert!(node.knot.is_none() || node.stage == Stage::Blocked, "tied, but free: {node:#?}");
        assert!(node.group.is_none_or(|group| self.barriers.contains(group)), "group of {node:#?}");
    }
}
