//! What can be asked for on the command line.

use std::path::PathBuf;

use clap::Parser;

/// Keeps the firewall rules of a zone in a directory, as a nimbus bus says.
#[derive(Debug, Parser)]
#[command(name = "zone-agent", version)]
pub(crate) struct Options {
    /// The name of this agent, which no other has.
    #[arg(long, env = "NIMBUS_AGENT_ID")]
    pub(crate) id: String,

    /// Where the bus is.
    #[arg(long, env = "NIMBUS_BUS", default_value = "http://127.0.0.1:7400")]
    pub(crate) bus: String,

    /// The zone that this machine is in.
    #[arg(long, env = "NIMBUS_ZONE")]
    pub(crate) zone: String,

    /// Where the rules are kept, one file for each policy.
    #[arg(long, env = "NIMBUS_RULES", value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// A policy with more statements than this is refused: there is no more room in the table of this machine.
    #[arg(long, env = "NIMBUS_MAX_STATEMENTS", value_name = "NUMBER", default_value_t = 1000)]
    pub(crate) max_statements: usize,
}
