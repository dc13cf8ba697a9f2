//! The locks and atomics of shuttle, with the interface of those that they stand for.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

pub(crate) use shuttle::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

/// As `parking_lot::Mutex`.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

/// As `parking_lot::MutexGuard`.
#[derive(Debug)]
pub(crate) struct MutexGuard<'a, T>(Option<shuttle::sync::MutexGuard<'a, T>>);

/// As `parking_lot::Condvar`.
#[derive(Debug, Default)]
pub(crate) struct Condvar(shuttle::sync::Condvar);

/// As `arc_swap::ArcSwap`: a load and a store are one step each.
#[derive(Debug)]
pub(crate) struct ArcSwap<T>(Mutex<Arc<T>>);

/// As `arc_swap::ArcSwapOption`.
#[derive(Debug)]
pub(crate) struct ArcSwapOption<T>(Mutex<Option<Arc<T>>>);

// === impl Mutex ===

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().expect("a panic ends the run")))
    }
}

// === impl MutexGuard ===

const HELD: &str = "a guard is whole but while it waits";

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect(HELD)
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect(HELD)
    }
}

// === impl Condvar ===

impl Condvar {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.0.take().expect(HELD);
        guard.0 = Some(self.0.wait(held).expect("a panic ends the run"));
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

// === impl ArcSwap ===

impl<T> ArcSwap<T> {
    pub(crate) fn from_pointee(value: T) -> Self {
        Self(Mutex::new(Arc::new(value)))
    }

    pub(crate) fn load(&self) -> Arc<T> {
        self.load_full()
    }

    pub(crate) fn load_full(&self) -> Arc<T> {
        self.0.lock().clone()
    }

    pub(crate) fn store(&self, value: Arc<T>) {
        *self.0.lock() = value;
    }
}

// === impl ArcSwapOption ===

impl<T> ArcSwapOption<T> {
    pub(crate) fn from_pointee(value: T) -> Self {
        Self(Mutex::new(Some(Arc::new(value))))
    }

    pub(crate) fn load(&self) -> Option<Arc<T>> {
        self.load_full()
    }

    pub(crate) fn load_full(&self) -> Option<Arc<T>> {
        self.0.lock().clone()
    }

    pub(crate) fn store(&self, value: Option<Arc<T>>) {
        *self.0.lock() = value;
    }
}
