//! Panics that are expected and caught: redb has some for files that are not as it wrote them.

use std::{cell::Cell, panic, sync::Once};

thread_local!(static HUSHED: Cell<bool> = const { Cell::new(false) });

/// Does something that catches its panics itself. They are neither told nor, in a program of cargo-fuzz, the end of it.
pub(crate) fn hushed<T>(work: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !HUSHED.get() {
                before(panic);
            }
        }));
    });
    HUSHED.set(true);
    let done = work();
    HUSHED.set(false);
    done
}
