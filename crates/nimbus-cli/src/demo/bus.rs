//! The bus of the demo: the real one, in a process of its own that can be killed.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    process::Stdio,
    time::Duration,
};

use clap::Parser;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::serve;

/// A bus that runs, and ends with this value.
#[derive(Debug)]
pub(crate) struct BusProcess(Child);

/// What `nimbus serve` is told.
#[derive(Debug, Parser)]
struct Serve {
    #[command(flatten)]
    arguments: serve::Arguments,
}

/// Seconds. Nobody is left to be sent away when it stops.
const DRAIN: &str = "0.2";

// === impl BusProcess ===

impl BusProcess {
    /// Starts a bus that keeps its objects in that file and what it says in that log, and waits until it listens.
    pub(crate) async fn start(listen: SocketAddr, store: &Path, log: &Path) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let log_file = std::fs::OpenOptions::new().create(true).append(true).open(log);
        let log_file = log_file.map_err(|error| format!("cannot write {}: {error}", log.display()))?;
        let mut process = Command::new(program)
            .args(["demo", "--as-bus", "--listen", &listen.to_string(), "--store"])
            .arg(format!("redb:{}", store.display()))
            // It lives for as long as somebody holds the other end.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log_file)
            // A Ctrl-C in the terminal is not for it: it is stopped when everybody else is.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start a bus: {error}"))?;
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            let read = BufReader::new(stdout).read_line(&mut line).await;
            read.map_err(|error| format!("cannot hear the bus: {error}"))?;
        }
        if !line.starts_with("listening on ") {
            let said = std::fs::read_to_string(log).unwrap_or_default();
            let last = said.lines().last().unwrap_or("it said nothing").trim_start_matches("nimbus: ");
            return Err(format!("the bus did not start: {last}"));
        }
        Ok(Self(process))
    }

    /// Its number, while it runs.
    pub(crate) fn id(&self) -> u32 {
        self.0.id().unwrap_or_default()
    }

    /// Where others reach a bus that listens there.
    pub(crate) fn reachable(listen: SocketAddr) -> SocketAddr {
        match listen.ip() {
            ip if ip.is_unspecified() => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), listen.port()),
            _ => listen,
        }
    }

    /// Ends it as a crash would: `kill -9`.
    pub(crate) async fn kill(mut self) -> Result<(), String> {
        self.0.kill().await.map_err(|error| format!("cannot kill the bus: {error}"))
    }

    /// Asks it to stop, and ends it if that takes too long.
    pub(crate) async fn stop(mut self, within: Duration) {
        // Waiting for a process closes this, and that would end it at once.
        let _held = self.0.stdin.take();
        let pid = self.0.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(pid) = pid {
            // An error means that it has ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
        if tokio::time::timeout(within, self.0.wait()).await.is_err() {
            drop(self.0.kill().await);
        }
    }
}

/// What the process does: `nimbus serve`, for as long as the demo lives.
pub(crate) async fn serve(listen: SocketAddr, store: &Path, verbose: u8) -> Result<(), String> {
    std::thread::spawn(|| {
        // The demo never writes anything; when it is gone, however it ended, this is over.
        drop(std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink()));
        std::process::exit(0);
    });
    let (listen, store) = (listen.to_string(), format!("redb:{}", store.display()));
    let flags = ["nimbus", "--listen", &listen, "--admin", "none", "--store", &store, "--drain", DRAIN];
    let Serve { arguments } = Serve::try_parse_from(flags).map_err(|error| error.to_string())?;
    let config = arguments.config(|option| format!("--{option}"))?;
    arguments.log().start(verbose);
    serve::serve(arguments, config).await
}
