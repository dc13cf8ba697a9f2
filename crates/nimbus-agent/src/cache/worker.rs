//! The task that writes.

use std::sync::Arc;

use nimbus_core::Backoff;
use nimbus_disk::Disk;
use tokio::{task::spawn_blocking, time::Instant};
use tracing::{debug, info, warn};

use crate::cache::{flaw::Flaw, shared::Shared, writer::Writer};

/// The task that writes: whatever is saved while one commit is on its way is in the next one.
#[derive(Debug)]
pub(crate) struct Worker<D> {
    pub(crate) writer: Writer<D>,
    pub(crate) backoff: Backoff,
    pub(crate) shared: Arc<Shared>,
    /// Writes here, and lets everybody else wait.
    pub(crate) inline: bool,
}

// === impl Worker ===

impl<D: Disk> Worker<D> {
    /// Writes until it is told to close, and then once more.
    pub(crate) async fn run(self) {
        let Self { mut writer, backoff, shared, inline } = self;
        let path = writer.path().display().to_string();
        let mut failures = 0;
        loop {
            // Asked before the attempt, so that the last one is after the last delta.
            let is_last = shared.is_closing();
            let attempt = block(inline, move || {
                let result = writer.attempt();
                (writer, result)
            });
            // An attempt catches its panics: this is the end of the runtime.
            let Some((again, result)) = attempt.await else { return };
            writer = again;
            match result {
                Ok(()) => {
                    failures = 0;
                    if let Some(since) = shared.succeeded() {
                        let after = Instant::now().saturating_duration_since(since);
                        info!(path, ?after, "the memory on disk is up to date again");
                    }
                    if !shared.has_work().await {
                        break;
                    }
                }
                Err(flaw) => {
                    failed(&shared, &path, &flaw);
                    if is_last {
                        break;
                    }
                    // Nobody else waits for this disk: jitter would spread nothing.
                    shared.pause(backoff.delay(failures, 1.0)).await;
                    failures = failures.saturating_add(1);
                }
            }
        }
        // Closing writes, too. If it panics, the file is as after a crash, which is no loss.
        let close = move || {
            drop(writer);
            Ok(())
        };
        let _ = block(inline, || Flaw::catch(close)).await;
        shared.end();
    }
}

/// Does what blocks, elsewhere unless it is to be done here; `None` if the runtime ends meanwhile.
async fn block<T: Send + 'static>(inline: bool, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if inline { Some(work()) } else { spawn_blocking(work).await.ok() }
}

fn failed(shared: &Shared, path: &str, flaw: &Flaw) {
    let message: Arc<str> = flaw.to_string().into();
    if shared.failed(Instant::now(), &message) {
        warn!(path, error = %message, "cannot write the memory to disk, going on without");
    } else {
        debug!(path, error = %message, "still cannot write the memory to disk");
    }
}
