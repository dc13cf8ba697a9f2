//! `nimbus wait`: until enough agents have it.

use clap::Args;
use nimbus_wire::v1;

use crate::{
    client::{ConnectionArguments, parse_seconds},
    command::propagation::target,
    failure::Failure,
    goal::{Deed, Enough, Goal},
    output::Printer,
    propagation_report::SurveyArguments,
    waiting::Waiting,
};

/// Wait until enough agents have applied an object or a transaction.
///
/// Of an object, its newest version counts, also if it changes meanwhile; of one that was deleted, its end. Progress goes to
/// standard error. It ends with 7 if it was not reached in time, and with 1 as soon as too many agents have failed for good;
/// both times, it says who is missing, and why.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nimbus wait networkpolicy web --timeout 60
  nimbus wait networkpolicy/web --at-least 90% -l zone=a
  nimbus wait --at 17 --for received")]
pub(crate) struct Arguments {
    /// KIND NAME, or KIND/NAME.
    #[arg(required_unless_present = "at", value_name = "KIND NAME")]
    words: Vec<String>,

    /// Instead of an object, the transaction that made this revision.
    #[arg(long, value_name = "REVISION", conflicts_with = "words")]
    at: Option<u64>,

    /// What agents must have done.
    #[arg(long = "for", value_name = "DEED", default_value = "applied")]
    deed: Deed,

    /// How many agents are enough: a number, or a part of those that it is for.
    #[arg(long, value_name = "N|P%", default_value = "100%")]
    at_least: Enough,

    /// Seconds until it is given up. Without it, never.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<f64>,

    #[command(flatten)]
    survey: SurveyArguments,

    #[command(flatten)]
    connection: ConnectionArguments,
}

/// Enough to see what the matter is.
pub(crate) const NAMED: u32 = 20;

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { words, at, survey, .. } = arguments;
    let client = arguments.connection.client()?;
    let (target, name) = target(&client, words, *at, survey.namespace.as_deref()).await?;
    let goal = Goal { deed: arguments.deed, enough: arguments.at_least };
    let request = v1::WaitForRequest {
        target: Some(target),
        selector: survey.selector.clone().unwrap_or_default(),
        count_lost: survey.count_lost,
        max_agents: survey.max_agents.unwrap_or(NAMED),
        ..v1::WaitForRequest::default()
    };
    let mut waiting = Waiting::new(&client, goal, arguments.timeout);
    let propagation = waiting.wait(&name, request).await?;
    waiting.finish();
    let (done, all, deed) = (goal.done(&propagation), propagation.agents, goal.deed.word());
    let at = if at.is_some() { String::new() } else { format!(" at revision {}", propagation.revision) };
    let mut printer = Printer::lines();
    printer.line(&format!("{name} {deed} by {done} of {all} agents{at}"))?;
    printer.flush()
}
