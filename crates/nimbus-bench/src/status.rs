//! What it costs when many agents say how far they are, and to ask for it.

use clap::Args;
use serde_json::json;

use crate::{
    fleet::reports::{self, Cost, HOWS, How},
    report::{Report, Row, median},
    system::System,
};

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Agents, each with a connection of its own.
    #[arg(long, value_delimiter = ',', default_value = "1250,5000", value_name = "NUMBERS")]
    agents: Vec<u64>,

    /// Reports of each agent, in each way to report.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    reports: u64,

    /// Rounds; medians are reported.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    repeat: u64,
}

/// Bytes of each spec.
const BYTES: usize = 512;

// === impl Arguments ===

impl Arguments {
    pub(crate) fn subscribers(&self) -> u64 {
        self.agents.iter().copied().max().unwrap_or(0)
    }
}

/// Runs all of it.
pub(crate) async fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    report.say("  no peer knows what its subscribers have done with what they were sent");
    let version = System::Nimbus.version()?;
    for agents in arguments.agents.iter().copied() {
        let (mut costs, mut queries) = (Vec::new(), Vec::new());
        for round in 1..=arguments.repeat {
            report.progress(&format!("{round}/{} {agents} agents", arguments.repeat));
            let (all, query) = reports::measure(agents, arguments.reports, BYTES).await?;
            costs.extend(all);
            queries.push(query.as_secs_f64() * 1e3);
        }
        let query = median(queries);
        let row = |how: How| -> Row {
            let of =
                |figure: fn(&Cost) -> f64| json!(median(costs.iter().filter(|cost| cost.how() == how).map(figure)));
            vec![
                ("system", json!(System::Nimbus.name())),
                ("version", json!(version)),
                ("subscribers", json!(agents)),
                ("batch", json!(1)),
                ("how", json!(how.to_string())),
                ("reports_per_s", of(Cost::per_second)),
                ("cpu_us_per_report", of(Cost::cpu_micros)),
                ("query_ms", json!(query)),
            ]
        };
        report.measurements(&HOWS.map(row))?;
    }
    Ok(())
}
