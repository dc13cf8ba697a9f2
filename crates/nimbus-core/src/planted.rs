//! Deliberate bugs, for whoever tests the tests: a checker that finds none of them is not a checker.
//!
//! Without the feature `planted` there are none: [`is`] is a constant, and nothing of what it guards is built. With it, at
//! most one is active, which `plant` chooses.

#[cfg(feature = "planted")]
use std::sync::atomic::{AtomicUsize, Ordering};

/// A deliberate bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is described in `ALL`")]
#[non_exhaustive]
pub enum Bug {
    SkipTombstone,
    ForgetLeaving,
    ResumeTooLate,
    ResumeTooEarly,
    EndSnapshotEarly,
    ReferrersFirst,
    ReuseEpoch,
    AckBeforeDurable,
    IgnoreFence,
    IgnoreLease,
    SweepUnfinished,
    CountUnchanged,
    ForgetHorizon,
    TearTransaction,
    IgnoreRescope,
    SweepNothing,
    SweepUncovered,
    LoseHalfGroup,
    ApplyBeforeReferents,
    RemoveBeforeReferrers,
    ForgetFailure,
    SavePositionOnly,
    ForgetBegun,
    CreditNewer,
    ForgetChild,
    DeleteNever,
    DeleteTwice,
    StaleOld,
    OutstayLease,
    EndSyncEarly,
    KeepNothing,
}

/// Every bug, with a name and what it does.
pub const ALL: [(Bug, &str, &str); 31] = [
    (Bug::SkipTombstone, "skip-tombstone", "a delete leaves no tombstone"),
    (Bug::ForgetLeaving, "forget-leaving", "an agent is not told of an object that leaves its audience or filter"),
    (Bug::ResumeTooLate, "resume-too-late", "a resume skips the first revision after its position"),
    (Bug::ResumeTooEarly, "resume-too-early", "a resume repeats the revision at its position"),
    (Bug::EndSnapshotEarly, "end-snapshot-early", "a snapshot ends although publishers have not filled the bus again"),
    (Bug::ReferrersFirst, "referrers-first", "changes of a group are sent in any order"),
    (Bug::ReuseEpoch, "reuse-epoch", "a bus that has forgotten everything goes on with its old epoch"),
    (Bug::AckBeforeDurable, "ack-before-durable", "a write is acknowledged before it is on disk"),
    (Bug::IgnoreFence, "ignore-fence", "an older instance of a publisher may write"),
    (Bug::IgnoreLease, "ignore-lease", "who has lost a lease may write"),
    (Bug::SweepUnfinished, "sweep-unfinished", "a sync that breaks off deletes what it has not named yet"),
    (Bug::CountUnchanged, "count-unchanged", "publishing what is there makes a revision"),
    (Bug::ForgetHorizon, "forget-horizon", "a resume from before a forgotten delete is answered with a delta"),
    (Bug::TearTransaction, "tear-transaction", "every frame of a group says a position"),
    (Bug::IgnoreRescope, "ignore-rescope", "new labels of an agent change nothing"),
    (Bug::SweepNothing, "sweep-nothing", "the end of a snapshot removes nothing"),
    (Bug::SweepUncovered, "sweep-uncovered", "the end of a partial snapshot removes what it does not cover"),
    (Bug::LoseHalfGroup, "lose-half-group", "of a group in several frames, only the last one is taken"),
    (Bug::ApplyBeforeReferents, "apply-before-referents", "an object is applied before what it needs"),
    (Bug::RemoveBeforeReferrers, "remove-before-referrers", "an object is removed before what needs it"),
    (Bug::ForgetFailure, "forget-failure", "a handler that failed counts as one that succeeded"),
    (Bug::SavePositionOnly, "save-position-only", "an agent saves its position, and not the objects that lead to it"),
    (Bug::ForgetBegun, "forget-begun", "an agent does not take back what it had only begun to apply"),
    (Bug::CreditNewer, "credit-newer", "a change that came while a handler ran counts as applied by it"),
    (Bug::ForgetChild, "forget-child", "a controller does not withdraw what a reaction publishes no longer"),
    (Bug::DeleteNever, "delete-never", "a reactor is not told of deletes"),
    (Bug::DeleteTwice, "delete-twice", "a reactor is told of a delete again after it has dealt with it"),
    (Bug::StaleOld, "stale-old", "`old` stays the first version that a reactor has dealt with"),
    (Bug::OutstayLease, "outstay-lease", "a controller goes on without a permit when its lease has run out"),
    (Bug::EndSyncEarly, "end-sync-early", "a controller ends its sync before it has looked at everything"),
    (Bug::KeepNothing, "keep-nothing", "the end of a controller's sync removes what belongs to objects that fail"),
];

#[cfg(feature = "planted")]
static ACTIVE: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Chooses the bug that is active in this process.
#[cfg(feature = "planted")]
pub fn plant(bug: Bug) {
    ACTIVE.store(bug as usize, Ordering::Relaxed);
}

/// Whether a bug is active.
#[cfg(feature = "planted")]
pub fn is(bug: Bug) -> bool {
    ACTIVE.load(Ordering::Relaxed) == bug as usize
}

/// Whether a bug is active: never.
#[cfg(not(feature = "planted"))]
pub const fn is(_: Bug) -> bool {
    false
}
