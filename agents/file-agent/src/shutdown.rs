//! When to stop: the first signal lets commands finish, the second ends at once.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Resolves with the first SIGINT or SIGTERM. A second one ends the process.
pub(crate) async fn requested() {
    let (mut interrupt, mut terminate) = match signals() {
        Ok(signals) => signals,
        Err(error) => {
            tracing::error!(%error, "cannot wait for signals, stopping");
            return;
        }
    };
    either(&mut interrupt, &mut terminate).await;
    tokio::spawn(async move {
        either(&mut interrupt, &mut terminate).await;
        tracing::warn!("second signal, stopping at once");
        std::process::exit(130);
    });
}

fn signals() -> io::Result<(Signal, Signal)> {
    Ok((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
