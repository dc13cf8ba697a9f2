//! Why a key is in the queue.

use std::{fmt, ops::BitOr};

/// Why a key is in the queue. What each of them does to a key that failed is in a table at [`Queue`](crate::queue::Queue).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Cause {
    /// It was in the list that was read at the start.
    Boot,
    /// What should be true is another than before: created, deleted, or of a new generation.
    Edited,
    /// Something beside the spec has changed: labels, or a status that others wrote.
    Touched,
    /// Something that it refers to has changed.
    Referent,
    /// Agents have reported about it.
    Status,
    /// A run asked for another one at this time, or somebody did with [`Queue::add_after`](crate::queue::Queue::add_after).
    Requeued,
    /// A run has failed.
    Retried,
    /// It is looked at from time to time, whatever happens.
    Resync,
    /// Things are no longer as a run left them.
    Drifted,
    /// A person has asked for it.
    Manual,
}

/// A set of causes.
///
/// ```
/// use ctkit::queue::{Cause, Causes};
///
/// let causes = Causes::from(Cause::Boot) | Cause::Edited.into();
/// assert!(causes.contains(Cause::Edited));
/// assert_eq!(format!("{causes:?}"), "{Boot, Edited}");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Causes(u16);

const ALL: [Cause; 10] = [
    Cause::Boot,
    Cause::Edited,
    Cause::Touched,
    Cause::Referent,
    Cause::Status,
    Cause::Requeued,
    Cause::Retried,
    Cause::Resync,
    Cause::Drifted,
    Cause::Manual,
];

/// Those that come for all keys at once. A retry is as urgent as what it retries.
const BACKGROUND: Causes = Causes(Cause::Boot.bit() | Cause::Resync.bit() | Cause::Retried.bit());

// === impl Cause ===

impl Cause {
    const fn bit(self) -> u16 {
        1 << self as u8
    }

    /// Whether it comes in bursts, and may wait until the burst is over.
    pub(crate) fn is_debounced(self) -> bool {
        matches!(self, Self::Edited | Self::Touched | Self::Referent | Self::Status)
    }
}

// === impl Causes ===

impl Causes {
    /// No cause at all.
    pub const NONE: Self = Self(0);

    /// Whether this is one of them.
    pub fn contains(self, cause: Cause) -> bool {
        self.0 & cause.bit() != 0
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them, once.
    pub fn iter(self) -> impl Iterator<Item = Cause> {
        ALL.into_iter().filter(move |cause| self.contains(*cause))
    }

    /// Whether nothing but the boot list or a resync asks for it.
    pub(crate) fn is_background(self) -> bool {
        self.0 & !BACKGROUND.0 == 0
    }

    pub(crate) fn insert(&mut self, cause: Cause) {
        self.0 |= cause.bit();
    }

    pub(crate) fn remove(&mut self, cause: Cause) {
        self.0 &= !cause.bit();
    }
}

impl From<Cause> for Causes {
    fn from(cause: Cause) -> Self {
        Self(cause.bit())
    }
}

impl FromIterator<Cause> for Causes {
    fn from_iter<I: IntoIterator<Item = Cause>>(causes: I) -> Self {
        causes.into_iter().fold(Self::NONE, |all, cause| all | cause.into())
    }
}

impl BitOr for Causes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
