//! How many keys are how.

use std::ops::AddAssign;

use crate::queue::state::State;

/// How many keys are how. Each key is counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Could run now, if there were room.
    pub ready: usize,
    /// Run later.
    pub delayed: usize,
    /// Have failed, and run again later.
    pub retrying: usize,
    /// Are running.
    pub running: usize,
    /// Wait to be woken.
    pub waiting: usize,
    /// Have failed for good, until they are edited.
    pub failed: usize,
    /// Have panicked, and run again later.
    pub quarantined: usize,
    /// Have panicked too often, and wait to be edited.
    pub poisoned: usize,
    /// Are paused.
    pub paused: usize,
    /// Are in a closed group.
    pub held: usize,
    /// Have nothing to do, and are remembered for a moment for the sake of the debounce.
    pub quiet: usize,
}

// === impl Counts ===

impl Counts {
    pub(crate) fn of(&mut self, state: State) -> &mut usize {
        match state {
            State::Ready => &mut self.ready,
            State::Delayed { .. } => &mut self.delayed,
            State::Retrying { .. } => &mut self.retrying,
            State::Running { .. } => &mut self.running,
            State::Waiting { .. } => &mut self.waiting,
            State::Failed => &mut self.failed,
            State::Quarantined { .. } => &mut self.quarantined,
            State::Poisoned => &mut self.poisoned,
            State::Paused => &mut self.paused,
            State::Held => &mut self.held,
            State::Quiet { .. } => &mut self.quiet,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.ready += other.ready;
        self.delayed += other.delayed;
        self.retrying += other.retrying;
        self.running += other.running;
        self.waiting += other.waiting;
        self.failed += other.failed;
        self.quarantined += other.quarantined;
        self.poisoned += other.poisoned;
        self.paused += other.paused;
        self.held += other.held;
        self.quiet += other.quiet;
    }
}
