//! When somebody wants it to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Who ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// Ctrl-C.
    Interrupt,
    /// A service manager, or `kill`.
    Terminate,
}

/// Signals that have come, or will. The end is bounded, so a second one changes nothing.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

/// From here on, signals do not end the process by themselves.
pub(crate) fn listen() -> Result<Interrupts, String> {
    let listen = |kind| signal(kind).map_err(|error| format!("cannot wait for signals: {error}"));
    Ok(Interrupts { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
}

// === impl Interrupts ===

impl Interrupts {
    /// Waits until somebody wants it to end.
    pub(crate) async fn next(&mut self) -> Interrupt {
        tokio::select! {
            _ = self.interrupt.recv() => Interrupt::Interrupt,
            _ = self.terminate.recv() => Interrupt::Terminate,
        }
    }
}

// === impl Interrupt ===

impl Interrupt {
    /// As shells expect it: 128 and the number of the signal.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}
