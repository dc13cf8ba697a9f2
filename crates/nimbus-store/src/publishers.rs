//! Publishers: which instance may write, and what it has said to exist since it began its sync.

use std::collections::{BTreeSet, HashMap};

use nimbus_core::{
    Kind, PublisherId,
    planted::{self, Bug},
};

use crate::{
    leases::Guard,
    named::Named,
    txn::{Op, Refused, Step},
};

/// Names one sync of one publisher.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SyncId {
    pub(crate) publisher: PublisherId,
    pub(crate) number: u64,
}

/// What a sync did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SyncSummary {
    /// Objects that are new.
    pub created: u64,
    /// Objects that differ from before.
    pub updated: u64,
    /// Objects that were already as they should be.
    pub unchanged: u64,
    /// Objects that the publisher no longer names; those with finalizers are marked.
    pub deleted: u64,
}

/// All publishers that have written.
#[derive(Debug, Default)]
pub(crate) struct Publishers {
    known: HashMap<PublisherId, Known>,
    syncs: u64,
}

#[derive(Debug, Default)]
struct Known {
    fence: u64,
    open: Option<Open>,
}

/// A sync that has begun and not ended.
#[derive(Debug)]
pub(crate) struct Open {
    number: u64,
    pub(crate) fence: u64,
    pub(crate) leases: Vec<Guard>,
    pub(crate) kinds: BTreeSet<Kind>,
    /// What the publisher has named since: all else that it owns is swept at the end.
    pub(crate) named: Named,
    pub(crate) summary: SyncSummary,
}

// === impl SyncId ===

impl SyncId {
    /// Whose sync it is.
    pub fn publisher(&self) -> &PublisherId {
        &self.publisher
    }
}

// === impl Publishers ===

impl Publishers {
    /// Lets a writer pass, unless a newer instance of the same publisher has written.
    pub(crate) fn check_fence(&self, publisher: &PublisherId, fence: u64) -> Result<(), Refused> {
        let current = self.known.get(publisher).map_or(0, |known| known.fence);
        if fence < current && !planted::is(Bug::IgnoreFence) {
            return Err(Refused::Fenced { publisher: publisher.clone(), given: fence, current });
        }
        Ok(())
    }

    /// Remembers the instance that wrote. Says whether it is a newer one than before.
    pub(crate) fn raise_fence(&mut self, publisher: &PublisherId, fence: u64) -> bool {
        if fence == 0 {
            return false;
        }
        let known = self.known.entry(publisher.clone()).or_default();
        let newer = fence > known.fence;
        known.fence = known.fence.max(fence);
        newer
    }

    /// Begins a sync; one that is open is replaced.
    pub(crate) fn begin(
        &mut self,
        publisher: &PublisherId,
        fence: u64,
        kinds: BTreeSet<Kind>,
        leases: Vec<Guard>,
    ) -> SyncId {
        self.syncs += 1;
        let known = self.known.entry(publisher.clone()).or_default();
        let (named, summary) = (Named::default(), SyncSummary::default());
        known.open = Some(Open { number: self.syncs, fence, leases, kinds, named, summary });
        SyncId { publisher: publisher.clone(), number: self.syncs }
    }

    /// The open sync of that name.
    pub(crate) fn open(&mut self, id: &SyncId) -> Result<&mut Open, Refused> {
        let open = self.known.get_mut(&id.publisher).and_then(|known| known.open.as_mut());
        open.filter(|open| open.number == id.number)
            .ok_or_else(|| Refused::NoSync(id.publisher.clone()))
    }

    /// Ends a sync.
    pub(crate) fn close(&mut self, id: &SyncId) -> Result<Open, Refused> {
        self.open(id)?;
        let known = self.known.get_mut(&id.publisher).expect("it has an open sync");
        Ok(known.open.take().expect("it has an open sync"))
    }

    /// What a publisher writes while it syncs is named, whichever call it used.
    pub(crate) fn name(&mut self, publisher: &PublisherId, steps: &[Step]) {
        let Some(open) = self.known.get_mut(publisher).and_then(|known| known.open.as_mut()) else { return };
        for step in steps {
            match &step.op {
                Op::Upsert(draft) => drop(open.named.insert(&draft.key)),
                Op::Delete(key) => open.named.remove(key),
                Op::Status(_) | Op::Finalizers(_) => {}
            }
        }
    }
}
