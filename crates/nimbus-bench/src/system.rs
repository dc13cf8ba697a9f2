//! What is measured and compared: the bus, its peers, and the floor below which nothing can be.

pub(crate) mod etcd;
mod feeder;
mod floor;
mod host;
mod nats;
mod valkey;

use std::{fmt, path::PathBuf, process::Command, str::FromStr};

use anyhow::Context as _;

pub(crate) use self::{
    feeder::Feeder,
    floor::serve as serve_floor,
    host::{Host, bus_subscription},
};
use crate::server::Server;

/// What is measured and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum System {
    /// The bus, with the connection settings of our own agents.
    Nimbus,
    /// The bus, with those of a client that sets nothing: frames of 16 KiB.
    NimbusForeign,
    /// The bus with one thread, as some of its peers have one.
    NimbusSingle,
    /// Watches; objects that are published at once are as many calls at the same time.
    Etcd,
    /// Watches; objects that are published at once are one transaction.
    EtcdTxn,
    /// Publish and subscribe, nothing is kept.
    Nats,
    /// Watches of a key-value bucket in memory.
    NatsKv,
    /// Publish and subscribe, nothing is kept.
    Valkey,
    /// A program that writes the same bytes to all sockets, and does nothing else.
    Tcp,
}

/// Everything that the bus is compared with, in the order in which it is shown.
pub(crate) const PEERS: [System; 6] =
    [System::Etcd, System::EtcdTxn, System::NatsKv, System::Nats, System::Valkey, System::Tcp];

// === impl System ===

impl System {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nimbus => "nimbus",
            Self::NimbusForeign => "nimbus-foreign",
            Self::NimbusSingle => "nimbus-single",
            Self::Etcd => "etcd",
            Self::EtcdTxn => "etcd-txn",
            Self::Nats => "nats",
            Self::NatsKv => "nats-kv",
            Self::Valkey => "valkey",
            Self::Tcp => "tcp",
        }
    }

    /// The program that it is.
    pub(crate) fn program(self) -> anyhow::Result<PathBuf> {
        let peer = match self {
            Self::Nimbus | Self::NimbusForeign | Self::NimbusSingle => return Server::path(),
            Self::Tcp => return Ok(std::env::current_exe()?),
            Self::Etcd | Self::EtcdTxn => "etcd",
            Self::Nats | Self::NatsKv => "nats-server",
            Self::Valkey => "valkey-server",
        };
        Ok(PathBuf::from(".cache/peers/bin").join(peer))
    }

    /// What the program says of its version; an error if there is no such program, or it does not run.
    pub(crate) fn version(self) -> anyhow::Result<String> {
        let program = self.program()?;
        let run = || Command::new(&program).arg("--version").output();
        let output = run().with_context(|| format!("cannot run {}", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().next().unwrap_or_default().trim();
        anyhow::ensure!(output.status.success() && !line.is_empty(), "{} does not run", program.display());
        // Nobody wants to know with which allocator Valkey was built.
        Ok(line.split(" sha=").next().unwrap_or(line).to_owned())
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for System {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        PEERS.into_iter().find(|peer| peer.name() == text).ok_or_else(|| {
            let names = PEERS.map(Self::name);
            format!("{text:?} is none of {}", names.join(", "))
        })
    }
}
