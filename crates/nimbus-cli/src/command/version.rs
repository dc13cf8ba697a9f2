//! `nimbus version`: of the command, and what the bus says of itself.

use clap::{Args, ValueEnum};
use nimbus_wire::v1;
use serde_json::json;

use crate::{client::ClientArguments, failure::Failure, output::Printer};

/// Show the version of this command, and whether the bus is there.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Ask no bus.
    #[arg(long)]
    client: bool,

    /// What to print.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,

    #[command(flatten)]
    connection: ClientArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut printer = Printer::lines();
    if arguments.client {
        match arguments.output {
            Format::Text => printer.line(&format!("client: {VERSION}"))?,
            Format::Json => printer.json(&json!({"client": {"version": VERSION}}))?,
        }
        return printer.flush();
    }
    if arguments.output == Format::Text {
        printer.line(&format!("client: {VERSION}"))?;
        printer.flush()?;
    }
    let client = arguments.connection.client()?;
    // The cheapest question whose answer has an epoch in it. The contract says nothing of versions.
    let question = v1::ListAgentsRequest { page_size: 1, ..v1::ListAgentsRequest::default() };
    let v1::ListAgentsResponse { epoch, revision, connected, .. } =
        client.call(client.fleet().list_agents(question)).await?;
    let address = client.address();
    let epoch = format!("{epoch:016x}");
    match arguments.output {
        Format::Text => printer.line(&format!(
            "server: reachable at {address}, epoch {epoch}, revision {revision}, {connected} agents connected"
        ))?,
        Format::Json => printer.json(&json!({
            "client": {"version": VERSION},
            "server": {"address": address, "epoch": epoch, "revision": revision, "agentsConnected": connected},
        }))?,
    }
    printer.flush()
}
