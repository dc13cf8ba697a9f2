//! When to stop: the first signal drains, the second ends at once.

use std::{future::Future, io};

use tokio::signal::unix::{SignalKind, signal};

/// Waits for SIGINT or SIGTERM from now on, also before the future is polled. The future resolves with the first of them; a
/// second one ends the process.
///
/// # Errors
/// If signals cannot be waited for.
pub(crate) fn signals() -> io::Result<impl Future<Output = ()> + Send> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            tracing::warn!("second signal, stopping at once");
            std::process::exit(130);
        });
    })
}
