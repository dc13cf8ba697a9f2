//! Buffers that belong to a thread, since a connection needs them only while it is driven.

use std::cell::Cell;

use crate::output::Output;

/// As much as is read at once.
const READ: usize = 64 << 10;

thread_local! {
    static BUFFER: Cell<Option<Box<[u8]>>> = const { Cell::new(None) };
    static OUTPUT: Cell<Option<Box<Output>>> = const { Cell::new(None) };
}

/// Something to read into.
pub(crate) fn take_buffer() -> Box<[u8]> {
    BUFFER.take().unwrap_or_else(|| vec![0; READ].into_boxed_slice())
}

pub(crate) fn put_buffer(buffer: Box<[u8]>) {
    BUFFER.set(Some(buffer));
}

/// An output in which there is nothing.
pub(crate) fn take_output() -> Box<Output> {
    OUTPUT.take().unwrap_or_default()
}

/// Gives it back. `None`: something is left in it, which remains with its connection.
pub(crate) fn put_output(output: Box<Output>) -> Option<Box<Output>> {
    if !output.is_empty() {
        return Some(output);
    }
    OUTPUT.set(Some(output));
    None
}
