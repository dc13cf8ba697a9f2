//! What each owner has published on a target, and how that differs from what it wants now.

mod collision;
mod outlook;
mod owner;
mod recovery;
mod version;

use std::{collections::HashSet, sync::Arc};

use nimbus_core::{
    KeyMap, KeySet, ObjectKey,
    planted::{self, Bug},
};
use nimbus_store::{Draft, Op, Precondition, Record, Step};

use crate::few::Few;
use crate::publications::outlook::Outlook;
pub(crate) use crate::publications::{collision::Collision, owner::Owner, version::Version};

/// What each owner has published on one target: at least everything that is there, whatever became of a transaction.
///
/// Each owner takes its turns one after the other: it [stages](Self::stage) a transaction, the caller commits it, and
/// says what came of it. A child counts as possibly there from the moment it is staged until a later transaction of its
/// owner, which does not have it, is known to have happened. So nothing is left behind when an answer is lost, and what
/// an owner may still have there cannot become another's.
///
/// An owner is a name, not a life: a new life of it inherits what the old one left, and withdraws it in the transaction
/// that publishes its own.
#[derive(Debug, Default)]
pub(crate) struct Publications {
    /// What each owner may have on the target.
    owners: KeyMap<Few<ObjectKey>>,
    /// The same the other way round, and which versions there are.
    known: KeyMap<Known>,
    /// Owners with a transaction that is not known to have happened.
    open: KeyMap<Open>,
    /// Owners from before a start that have published nothing since.
    unsettled: KeySet,
    /// Children that nobody owns.
    orphans: KeySet,
    outlook: Outlook,
}

/// What is known of a child: at least one of these.
#[derive(Debug, Default)]
struct Known {
    owner: Option<ObjectKey>,
    /// What was last known to be on the target.
    version: Option<Version>,
}

/// A transaction that is not known to have happened.
#[derive(Debug, Default)]
struct Open {
    goal: Goal,
    /// Children that only this transaction could have brought.
    fresh: Few<ObjectKey>,
}

/// What is so when a transaction has happened.
#[derive(Debug, Default)]
enum Goal {
    /// These are the children.
    Published(Few<ObjectKey>),
    /// There are none.
    Withdrawn,
    /// These are nobody's; there are no others.
    Orphaned(Few<ObjectKey>),
    /// Nobody will learn whether it happened.
    #[default]
    Lost,
}

// === impl Publications ===

impl Publications {
    /// Appends the steps after which an owner has these children and no others: adds, in the order given, then removals.
    /// Children get their generations.
    ///
    /// # Errors
    /// If a child is there twice, or is another owner's. Then nothing is staged.
    pub(crate) fn stage(
        &mut self,
        owner: &Owner,
        mut drafts: Few<Draft>,
        steps: &mut Vec<Step>,
    ) -> Result<(), Collision> {
        let (wanted, fresh) = self.check(owner, &mut drafts)?;
        self.outlook.saw(fresh.len());
        let gone = if planted::is(Bug::ForgetChild) { Vec::new() } else { self.gone(&owner.key, &drafts) };
        for child in fresh.iter() {
            self.claim(&owner.key, child.clone());
        }
        self.open.insert(owner.key.clone(), Open { goal: Goal::Published(wanted), fresh });

        // One that is right already, as that of a derived draft, is left as it is.
        drafts.for_each(|draft| {
            let is_right = draft.owner.as_ref().is_some_and(|named| owner.is(named));
            let draft = if is_right { draft } else { Draft { owner: Some(owner.named()), ..draft } };
            steps.push(Op::Upsert(draft).into());
        });
        steps.extend(gone.into_iter().map(|child| Step::from(Op::Delete(child))));
        Ok(())
    }

    /// The transaction after which an owner has no children, whatever life they are of.
    pub(crate) fn withdraw(&mut self, owner: &ObjectKey) -> Vec<Step> {
        let gone = self.sorted(owner, |_| true);
        self.open.insert(owner.clone(), Open { goal: Goal::Withdrawn, fresh: Few::None });
        gone.into_iter().map(|child| Op::Delete(child).into()).collect()
    }

    /// The transaction after which the children of an owner are nobody's, and stay. Of its children, those that are not
    /// among `records` are taken not to be there.
    pub(crate) fn orphan(&mut self, owner: &ObjectKey, records: &[Arc<Record>]) -> Vec<Step> {
        let is_ours = |record: &&Arc<Record>| self.owner_of(record.key()) == Some(owner) && !record.is_deleting();
        let kept: Vec<_> = records.iter().filter(is_ours).collect();
        let goal = Goal::Orphaned(kept.iter().map(|record| record.key().clone()).collect());
        let steps = kept.into_iter().map(|record| without_owner(record)).collect();
        self.open.insert(owner.clone(), Open { goal, fresh: Few::None });
        steps
    }

    /// The newest transaction of an owner has happened.
    pub(crate) fn committed(&mut self, owner: &ObjectKey) {
        let Some(open) = self.open.remove(owner) else { return };
        let (children, orphans) = match open.goal {
            Goal::Published(children) => (children, Few::None),
            Goal::Withdrawn => (Few::None, Few::None),
            Goal::Orphaned(children) => (Few::None, children),
            Goal::Lost => {
                self.open.insert(owner.clone(), open);
                return;
            }
        };
        self.unsettled.remove(owner);
        if orphans.is_empty() && self.has_exactly(owner, &children) {
            for child in children.iter() {
                self.orphans.remove(child);
            }
            return;
        }
        for child in self.owners.remove(owner).unwrap_or_default().iter() {
            self.disclaim(child);
            self.orphans.remove(child);
        }
        for child in children {
            self.orphans.remove(&child);
            self.claim(owner, child);
        }
        self.orphans.extend(orphans);
    }

    /// Nobody knows whether the newest transaction of an owner has happened, or will.
    pub(crate) fn failed(&mut self, owner: &ObjectKey) {
        if let Some(open) = self.open.get_mut(owner) {
            *open = Open::default();
        }
    }

    /// The newest transaction of an owner has not happened, and will not: the target said so.
    pub(crate) fn refused(&mut self, owner: &ObjectKey) {
        let fresh = self.open.get_mut(owner).map(|open| std::mem::take(open).fresh);
        self.release(owner, &fresh.into_iter().flatten().collect());
    }

    /// A child is another publisher's now: it is nobody's here, and is left alone.
    pub(crate) fn lost(&mut self, child: &ObjectKey) {
        if let Some(owner) = self.owner_of(child).cloned() {
            self.release(&owner, &KeySet::from_iter([child.clone()]));
        }
    }

    /// So many owners are looked at in all since the last start, as far as is known; none, when that is over.
    pub(crate) fn expect(&mut self, owners: usize) {
        self.outlook.expect(owners);
    }

    /// What an owner may have on the target: everything that is there, and perhaps more.
    pub(crate) fn children(&self, owner: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.owners.get(owner).into_iter().flat_map(Few::iter)
    }

    /// Whose a child is.
    pub(crate) fn owner_of(&self, child: &ObjectKey) -> Option<&ObjectKey> {
        self.known.get(child)?.owner.as_ref()
    }

    /// All who may have something on the target.
    pub(crate) fn owners(&self) -> impl ExactSizeIterator<Item = &ObjectKey> {
        self.owners.keys()
    }

    /// Owners from before a start that have published nothing since and are not alive, in their order.
    pub(crate) fn unsettled_not_in(&self, alive: impl Fn(&ObjectKey) -> bool) -> Vec<ObjectKey> {
        let mut dead: Vec<_> = self.unsettled.iter().filter(|owner| !alive(owner)).cloned().collect();
        dead.sort_unstable();
        dead
    }

    /// What an owner wants, and what of it is new. The keys that are already held, so that a name that is published again
    /// and again takes memory once. Gives generations to drafts that have none.
    fn check(&self, owner: &Owner, drafts: &mut Few<Draft>) -> Result<(Few<ObjectKey>, Few<ObjectKey>), Collision> {
        let (mut seen, is_many) = (KeySet::default(), drafts.len() > 1);
        let (mut wanted, mut fresh) = (Few::None, Few::None);
        for draft in drafts.iter_mut() {
            let key = &draft.key;
            if is_many && !seen.insert(key.clone()) {
                return Err(Collision::Twice { child: key.clone(), owner: owner.key.clone() });
            }
            let held = self.known.get_key_value(key);
            let by = held.and_then(|(_, known)| known.owner.as_ref());
            if let Some(by) = by.filter(|by| **by != owner.key) {
                return Err(Collision::Taken { child: key.clone(), by: by.clone() });
            }
            if draft.generation.is_none() {
                let version = held.and_then(|(_, known)| known.version);
                draft.generation = Some(Version::count(version, owner.generation, &draft.spec));
            }
            let held = held.map_or(key, |(held, _)| held);
            wanted.push(held.clone());
            if by.is_none() {
                fresh.push(held.clone());
            }
        }
        Ok((wanted, fresh))
    }

    /// A child that was nobody's becomes an owner's.
    fn claim(&mut self, owner: &ObjectKey, child: ObjectKey) {
        self.outlook.make_room(&mut self.owners, 1);
        self.outlook.make_room(&mut self.known, usize::MAX);
        let entry = self.owners.entry(owner.clone());
        let owner = entry.key().clone();
        entry.or_default().push(child.clone());
        self.known.entry(child).or_default().owner = Some(owner);
    }

    /// A child becomes nobody's.
    fn disclaim(&mut self, child: &ObjectKey) {
        if let Some(known) = self.known.get_mut(child) {
            known.owner = None;
            if known.version.is_none() {
                self.known.remove(child);
            }
        }
    }

    /// Children of an owner become nobody's.
    fn release(&mut self, owner: &ObjectKey, gone: &KeySet) {
        for child in gone {
            self.disclaim(child);
        }
        if let Some(children) = self.owners.get_mut(owner) {
            children.retain(|child| !gone.contains(child));
            if children.is_empty() {
                self.owners.remove(owner);
            }
        }
    }

    /// Whether these, each once, are the children that an owner may have, all of them.
    fn has_exactly(&self, owner: &ObjectKey, children: &Few<ObjectKey>) -> bool {
        match self.owners.get(owner) {
            None => children.is_empty(),
            Some(Few::One(child)) => matches!(children, Few::One(only) if only == child),
            // What a transaction wants is claimed from the beginning: then equal numbers are equal sets.
            Some(all) => {
                let is_its = |child: &ObjectKey| self.owner_of(child) == Some(owner);
                all.len() == children.len() && children.iter().all(is_its)
            }
        }
    }

    /// What an owner may have, and does not want any more.
    fn gone(&self, owner: &ObjectKey, drafts: &Few<Draft>) -> Vec<ObjectKey> {
        if self.children(owner).next().is_none() {
            return Vec::new();
        }
        let wanted: HashSet<&ObjectKey> = drafts.iter().map(|draft| &draft.key).collect();
        self.sorted(owner, |child| !wanted.contains(child))
    }

    fn sorted(&self, owner: &ObjectKey, is_meant: impl Fn(&ObjectKey) -> bool) -> Vec<ObjectKey> {
        let mut children: Vec<_> = self.children(owner).filter(|child| is_meant(child)).cloned().collect();
        children.sort_unstable();
        children
    }
}

/// The object as it is, but nobody's; unless it has changed since.
fn without_owner(record: &Record) -> Step {
    let content = record.content();
    let draft = Draft {
        key: content.key,
        uid: Some(content.uid),
        generation: Some(content.generation),
        labels: content.labels,
        refs: content.refs,
        owner: None,
        annotations: content.annotations,
        audience: content.audience,
        spec: content.spec,
    };
    let precondition = Precondition { revision: Some(record.revision()), ..Precondition::default() };
    Step { precondition, ..Op::Upsert(draft).into() }
}

#[cfg(test)]
mod tests;
