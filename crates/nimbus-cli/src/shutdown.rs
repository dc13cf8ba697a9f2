//! When to stop: the first signal drains, the second ends at once.

use tokio::signal::unix::{SignalKind, signal};

/// Resolves with the first SIGINT or SIGTERM. A second one ends the process.
pub(crate) async fn requested() -> std::io::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
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
    Ok(())
}
