//! Counters and the position that a reader remembers.

use std::fmt;

use nimbus_wire::v1;

/// A point in the one order of a collection. A transaction of many objects has one revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

/// How often the spec of an object has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Generation(pub u64);

/// Identity of a collection's history; another epoch means that revisions cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch(pub u64);

/// Stands for what a subscriber is subscribed to: kinds, filter, agent, labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScopeHash(pub u64);

/// All that a reader must remember in order to resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The history.
    pub epoch: Epoch,
    /// How much of it was read.
    pub revision: Revision,
    /// Which part of it.
    pub scope: ScopeHash,
}

// === impl Revision ===

impl Revision {
    /// Before everything.
    pub const ZERO: Self = Self(0);

    /// The revision after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Generation ===

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Epoch ===

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

// === impl Position ===

impl From<Position> for v1::Position {
    fn from(position: Position) -> Self {
        Self { epoch: position.epoch.0, revision: position.revision.0, scope: position.scope.0 }
    }
}

impl From<&v1::Position> for Position {
    fn from(position: &v1::Position) -> Self {
        Self { epoch: Epoch(position.epoch), revision: Revision(position.revision), scope: ScopeHash(position.scope) }
    }
}
