//! Locks, atomics and threads: those of the platform, or, for tests, those of a scheduler that tries out how threads may take
//! turns.

#[cfg(not(feature = "shuttle"))]
mod real {
    pub(crate) use std::{
        sync::atomic::{AtomicBool, AtomicU64, Ordering},
        thread,
    };

    pub(crate) use arc_swap::{ArcSwap, ArcSwapOption};
    pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
}

#[cfg(feature = "shuttle")]
mod tried;

#[cfg(not(feature = "shuttle"))]
pub(crate) use self::real::*;
#[cfg(feature = "shuttle")]
pub(crate) use self::tried::*;
