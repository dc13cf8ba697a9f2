//! Programs as processes.

use std::process::{Child, Command, Stdio};

/// A process that ends with this value as if it was killed.
pub(crate) struct Process(Child);

// === impl Process ===

impl Process {
    /// Starts it; nobody reads what it says, but for its complaints.
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
    }

    /// Sends it a signal, by the name that `kill` knows it under.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.0.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// Asks it to stop, and waits until it has, well.
    pub(crate) async fn stop(mut self) {
        self.signal("TERM");
        let status = tokio::task::spawn_blocking(move || self.0.wait().unwrap()).await.unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if the process has ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
