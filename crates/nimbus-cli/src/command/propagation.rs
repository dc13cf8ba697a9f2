//! `nimbus propagation`: who has it, who has not, and why.

use std::io::IsTerminal as _;

use clap::Args;
use nimbus_wire::v1;
use serde_json::Value;

use crate::{
    age::age,
    client::{Client, ClientArguments},
    failure::Failure,
    kinds::Kinds,
    naming::Named,
    object_table::key_name,
    output::{Format, OutputArguments, Printer, wire_json},
    progress::{bar, percent},
    propagation_report::{self, SurveyArguments},
};

/// Show how far an object or a transaction has come: how many agents have applied it, which have not, and why.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nimbus propagation networkpolicy web
  nimbus propagation networkpolicy/web -l zone=a -o name    who has not applied it, one agent a line
  nimbus propagation --at 17                                everything up to revision 17")]
pub(crate) struct Arguments {
    /// KIND NAME, or KIND/NAME. Also of an object that was deleted, for as long as the bus remembers.
    #[arg(required_unless_present = "at", value_name = "KIND NAME")]
    words: Vec<String>,

    /// Instead of an object, the transaction that made this revision.
    #[arg(long, value_name = "REVISION", conflicts_with = "words")]
    at: Option<u64>,

    #[command(flatten)]
    survey: SurveyArguments,

    #[command(flatten)]
    output: OutputArguments,

    #[command(flatten)]
    client: ClientArguments,
}

/// Enough to see what the matter is.
const NAMED: u32 = 20;

/// As many as the bus names.
const ALL: u32 = 10_000;

/// Characters of the bar on a terminal.
const BAR: usize = 40;

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { words, at, survey, .. } = arguments;
    let client = arguments.client.client()?;
    let (target, name) = target(&client, words, *at, survey.namespace.as_deref()).await?;
    let mut printer = arguments.output.printer();
    let by_default = if matches!(printer.format(), Format::Table | Format::Wide) { NAMED } else { ALL };
    let request = v1::GetPropagationRequest {
        target: Some(target),
        selector: survey.selector.clone().unwrap_or_default(),
        max_agents: survey.max_agents.unwrap_or(by_default),
        count_lost: survey.count_lost,
    };
    let answer = client.call(client.fleet().get_propagation(request)).await?;
    let propagation = answer.propagation.unwrap_or_default();
    match printer.format() {
        Format::Json => printer.json(&with_target(&name, &propagation))?,
        Format::Yaml => printer.yaml(&with_target(&name, &propagation))?,
        Format::Name => {
            for laggard in propagation_report::missing(&propagation) {
                printer.line(&laggard.agent)?;
            }
        }
        Format::Table | Format::Wide => print(&mut printer, &name, &propagation)?,
    }
    printer.flush()
}

/// What the words, or the revision, name; and how to call it.
pub(crate) async fn target(
    client: &Client,
    words: &[String],
    at: Option<u64>,
    namespace: Option<&str>,
) -> Result<(v1::Target, String), Failure> {
    if let Some(revision) = at {
        let target = v1::Target { target: Some(v1::target::Target::Revision(revision)) };
        return Ok((target, format!("revision {revision}")));
    }
    let naming = Named::object(words, namespace)?;
    let key = Kinds::fetch(client).await?.key(&naming)?;
    let name = key_name(&key);
    Ok((v1::Target { target: Some(v1::target::Target::Object(key)) }, name))
}

fn with_target(name: &str, propagation: &v1::Propagation) -> Value {
    let mut json = wire_json(propagation);
    if let Value::Object(members) = &mut json {
        members.shift_insert(0, "target".to_owned(), Value::from(name));
    }
    json
}

fn print(printer: &mut Printer, name: &str, propagation: &v1::Propagation) -> Result<(), Failure> {
    let v1::Propagation { agents, applied, .. } = *propagation;
    printer.line(&headline(name, propagation))?;
    let bar = if std::io::stdout().is_terminal() { format!("{} ", bar(applied, agents, BAR)) } else { String::new() };
    printer.line(&format!("{bar}{}%: {applied} of {agents} agents have applied it", percent(applied, agents)))?;
    printer.line("")?;
    printer.table(&propagation_report::counts(propagation))?;
    laggards(printer, propagation)?;
    if let Some(table) = propagation_report::latencies(propagation) {
        printer.line("")?;
        printer.table(&table)?;
    }
    Ok(())
}

/// Prints those who do not have it as they should, if there are any, after an empty line.
pub(crate) fn laggards(printer: &mut Printer, propagation: &v1::Propagation) -> Result<(), Failure> {
    let laggards = propagation_report::laggards(propagation);
    if laggards.is_empty() {
        return Ok(());
    }
    printer.line("")?;
    printer.table(&propagation_report::table(&laggards))?;
    let more = (propagation_report::count(propagation) as usize).saturating_sub(laggards.len());
    if more > 0 {
        printer.line(&format!("and {more} more (hint: --max-agents names more of them)"))?;
    }
    Ok(())
}

fn headline(name: &str, propagation: &v1::Propagation) -> String {
    let v1::Propagation { revision, generation, age_ms, .. } = *propagation;
    // A bus remembers the times of what it was told lately.
    let ago =
        if age_ms == 0 { "long ago, or before the bus was started".to_owned() } else { format!("{} ago", age(age_ms)) };
    match generation {
        // Of a transaction, the name says it.
        0 if name == format!("revision {revision}") => format!("{name}, published {ago}"),
        0 => format!("{name}: deleted at revision {revision}, {ago}"),
        _ => format!("{name}: generation {generation}, revision {revision}, published {ago}"),
    }
}
