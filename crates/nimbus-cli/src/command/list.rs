//! `nimbus list`: all objects of some kinds.

use clap::Args;

use crate::{
    client::ClientArguments,
    failure::Failure,
    listing::{self, SelectionArguments},
    output::OutputArguments,
    schemas::Secrets,
};

/// List the objects of kinds.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nimbus list networkpolicy zone -l tier=front
  nimbus list networkpolicy --filter spec.zone=a -o name
  nimbus list --all-kinds")]
pub(crate) struct Arguments {
    /// The kinds, in full or by the end of their names.
    #[arg(required_unless_present = "all_kinds", conflicts_with = "all_kinds", value_name = "KIND")]
    kinds: Vec<String>,

    /// Objects of every kind.
    #[arg(long)]
    all_kinds: bool,

    #[command(flatten)]
    selection: SelectionArguments,

    #[command(flatten)]
    output: OutputArguments,

    #[command(flatten)]
    client: ClientArguments,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let client = arguments.client.client()?;
    let kinds: Vec<String> = arguments.kinds.iter().flat_map(|kinds| kinds.split(',')).map(str::to_owned).collect();
    let mut printer = arguments.output.printer();
    listing::print(&client, &kinds, &arguments.selection, Secrets::Hidden, &mut printer).await
}
