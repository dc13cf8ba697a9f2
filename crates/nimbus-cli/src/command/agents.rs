//! `nimbus agents`: who is there, how far each is, and what failed there.

use std::collections::BTreeSet;

use clap::Args;
use nimbus_wire::v1::{self, AgentState};

use crate::{
    agent_table,
    client::ClientArguments,
    failure::{Exit, Failure},
    output::{Format, Items, OutputArguments, wire_json},
};

/// Show the agents that the bus knows: whether they are there, how far they are, and how much failed.
///
/// POSITION is the revision up to which an agent has applied everything, LAG the age of the first change that it has not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nimbus agents -l zone=a -o wide
  nimbus agents --failing          with what failed there first, and why
  nimbus agents --lost -o name")]
pub(crate) struct Arguments {
    /// Only these agents.
    #[arg(value_name = "AGENT", conflicts_with_all = ["selector", "lost", "behind", "failing"])]
    agents: Vec<String>,

    /// Only agents whose labels match, such as `zone in (a,b),role=edge,!canary`.
    #[arg(short = 'l', long, value_name = "SELECTOR", help_heading = "Selection")]
    selector: Option<String>,

    /// Only agents that have been away for longer than the bus waits.
    #[arg(long, help_heading = "Selection")]
    lost: bool,

    /// Only agents that have not applied everything that concerns them.
    #[arg(long, help_heading = "Selection")]
    behind: bool,

    /// Only agents at which something failed, and why.
    #[arg(long, help_heading = "Selection")]
    failing: bool,

    #[command(flatten)]
    output: OutputArguments,

    #[command(flatten)]
    client: ClientArguments,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let client = arguments.client.client()?;
    let mut printer = arguments.output.printer();
    let mut items = Items::new(agent_table::columns());
    let mut request = v1::ListAgentsRequest {
        selector: arguments.selector.clone().unwrap_or_default(),
        agents: arguments.agents.clone(),
        states: if arguments.lost { vec![AgentState::Lost.into()] } else { Vec::new() },
        behind: arguments.behind,
        details: arguments.failing || matches!(printer.format(), Format::Json | Format::Yaml),
        ..v1::ListAgentsRequest::default()
    };
    let mut missing: BTreeSet<&str> = arguments.agents.iter().map(String::as_str).collect();
    loop {
        let page = client.call(client.fleet().list_agents(request.clone())).await?;
        for agent in &page.agents {
            missing.remove(&*agent.agent);
            if arguments.failing && agent.failed == 0 {
                continue;
            }
            items.add(
                &mut printer,
                || agent.agent.clone(),
                |table| table.row(agent_table::row(agent)),
                || wire_json(agent),
            )?;
        }
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    let nobody = items.len() == 0;
    if !nobody || missing.is_empty() {
        items.finish(&mut printer)?;
    }
    for agent in &missing {
        printer.note(&format!("agent {agent} is not known to the bus"))?;
    }
    if !missing.is_empty() {
        return Err(Failure::silent(Exit::NotFound));
    }
    if nobody {
        let narrowed = arguments.selector.is_some() || arguments.lost || arguments.behind || arguments.failing;
        printer.note(if narrowed { "no agent is like that" } else { "the bus knows no agents yet" })?;
    }
    Ok(())
}
