//! A controller that runs, and can be stopped.

use std::time::Duration;

use ctkit::Handle;
use tokio::{sync::oneshot, task::JoinHandle};

use crate::demo::controller;

/// A controller that runs. Nothing of it is left when it has stopped: the next one begins as a new process would.
#[derive(Debug)]
pub(crate) struct Running {
    handle: Handle,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

// === impl Running ===

impl Running {
    /// Starts a controller at that bus. Does not wait until it has looked at everything.
    pub(crate) async fn start(bus: &str) -> Result<Self, String> {
        let manager = controller::controller(bus).await.map_err(|failure| failure.to_string())?;
        let handle = manager.handle();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            if let Err(error) = manager.run_until(async { drop(stopped.await) }).await {
                tracing::error!(%error, "the controller of the demo has ended");
            }
        });
        Ok(Self { handle, stop, task })
    }

    /// Whether it has looked at everything; an error says what is missing.
    pub(crate) fn is_ready(&self) -> Result<(), String> {
        match &self.handle.readiness().missing()[..] {
            [] => Ok(()),
            missing => Err(format!("the controller is not ready: {}", missing.join(", "))),
        }
    }

    /// Waits until there is nothing left to do.
    pub(crate) async fn settled(&self) -> Result<(), String> {
        self.handle.settled().await.map_err(|error| error.to_string())
    }

    /// Stops it, and says whether it ended by itself.
    pub(crate) async fn stop(mut self, within: Duration) -> bool {
        drop(self.stop);
        let ended = tokio::time::timeout(within, &mut self.task).await.is_ok();
        if !ended {
            self.task.abort();
        }
        ended
    }
}
