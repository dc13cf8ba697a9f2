//! `nimbus explain`: why an agent has, or has not, applied an object.

use clap::Args;
use nimbus_wire::v1::{self, Phase, Verdict};

use crate::{
    age::{age, span},
    agent_table,
    client::ClientArguments,
    failure::{Exit, Failure},
    kinds::Kinds,
    naming::Named,
    object_table::{key_name, labels},
    output::{Cell, Column, Format, OutputArguments, Printer, Table, wire_json},
};

/// Explain why an agent has, or has not, applied an object: what keeps it away, what failed, or what it waits for.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nimbus explain web-1 networkpolicy web
  nimbus explain web-1 networkpolicy/web -o json")]
pub(crate) struct Arguments {
    /// The agent.
    #[arg(value_name = "AGENT")]
    agent: String,

    /// KIND NAME, or KIND/NAME.
    #[arg(required = true, value_name = "KIND NAME")]
    words: Vec<String>,

    /// The namespace of the object.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    #[command(flatten)]
    output: OutputArguments,

    #[command(flatten)]
    client: ClientArguments,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let naming = Named::object(&arguments.words, arguments.namespace.as_deref())?;
    let client = arguments.client.client()?;
    let key = Kinds::fetch(&client).await?.key(&naming)?;
    let request = v1::ExplainRequest { agent: arguments.agent.clone(), object: Some(key.clone()) };
    let answer = client.call(client.fleet().explain(request)).await?;
    let mut printer = arguments.output.printer();
    match printer.format() {
        Format::Json => printer.json(&wire_json(&answer))?,
        Format::Yaml => printer.yaml(&wire_json(&answer))?,
        Format::Name => printer.line(word(answer.verdict()))?,
        Format::Table | Format::Wide => match answer.verdict() {
            // There is nothing to explain.
            Verdict::UnknownAgent => {}
            Verdict::NoSuchObject => {}
            _ => print(&mut printer, &arguments.agent, &key, &answer)?,
        },
    }
    printer.flush()?;
    match answer.verdict() {
        Verdict::UnknownAgent => Err(unknown_agent(&arguments.agent)),
        Verdict::NoSuchObject => Err(Failure::new(Exit::NotFound, answer.explanation)),
        _ => Ok(()),
    }
}

fn unknown_agent(agent: &str) -> Failure {
    Failure::new(Exit::NotFound, format!("agent {agent} is not known to the bus")).hint("`nimbus agents` lists them")
}

fn print(printer: &mut Printer, agent: &str, key: &v1::Key, answer: &v1::ExplainResponse) -> Result<(), Failure> {
    printer.line(&format!("{} at {agent}: {}", key_name(key), word(answer.verdict())))?;
    printer.line(&format!("  {}", one_line(&answer.explanation)))?;
    // Each step is why the one before has not been made.
    for hop in &answer.chain {
        printer.line(&format!("  because {} ({})", one_line(&hop.explanation), word(hop.verdict())))?;
    }
    printer.line("")?;
    let mut facts = Table::new(["FACT", "VALUE"].map(Column::new));
    for (fact, value) in facts_of(answer) {
        facts.row([Cell::from(fact), Cell::from(value)]);
    }
    printer.table(&facts)
}

/// What is known of the object and of the agent, as far as it helps to understand the verdict.
fn facts_of(answer: &v1::ExplainResponse) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    match answer.generation {
        0 => facts.push(("object", format!("deleted at revision {}", answer.revision))),
        generation => facts.push(("object", format!("generation {generation}, revision {}", answer.revision))),
    }
    if !answer.rule.is_empty() {
        facts.push(("rule", answer.rule.clone()));
    }
    let after = |ms| format!("{} after it was published", span(ms));
    if answer.received_after_ms > 0 {
        facts.push(("received", after(answer.received_after_ms)));
    }
    if answer.applied_after_ms > 0 && matches!(answer.verdict(), Verdict::Applied | Verdict::Degraded) {
        facts.push(("applied", after(answer.applied_after_ms)));
    }
    if let Some(exception) = &answer.exception {
        facts.push((phase(exception.phase()), agent_table::reason(exception)));
        facts.push(("since", attempts(exception)));
    }
    if let Some(agent) = &answer.agent {
        let since = if agent.state_ms > 0 { format!(" for {}", age(agent.state_ms)) } else { String::new() };
        facts.push(("agent", format!("{}{since}", agent_table::state_word(agent.state()))));
        facts.push(("position", format!("received {}, applied {}", agent.received, agent.applied)));
        if !agent.labels.is_empty() {
            facts.push(("labels", labels(&agent.labels)));
        }
        let kinds = if agent.kinds.is_empty() { "all".to_owned() } else { agent.kinds.join(", ") };
        facts.push(("kinds", kinds));
    }
    facts
}

fn attempts(exception: &v1::Exception) -> String {
    let tried = match exception.attempts {
        0 => String::new(),
        1 => ", tried once".to_owned(),
        many => format!(", tried {many} times"),
    };
    let again = match exception.retry_in_ms {
        0 => String::new(),
        ms => format!(", again in {}", span(ms)),
    };
    format!("{} ago{tried}{again}", age(exception.age_ms))
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Failed => "failed",
        Phase::Degraded => "degraded",
        Phase::Pending | Phase::Unspecified => "pending",
    }
}

/// A verdict in a few words, which never change.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NoSuchObject => "no such object",
        Verdict::UnknownAgent => "unknown agent",
        Verdict::KindNotSubscribed => "kind not subscribed",
        Verdict::FilteredOut => "filtered out",
        Verdict::NotInAudience => "not in audience",
        Verdict::NotReceived => "not received",
        Verdict::Received => "received",
        Verdict::Held => "held",
        Verdict::Pending => "pending",
        Verdict::Failed => "failed",
        Verdict::Applied => "applied",
        Verdict::Degraded => "degraded",
        Verdict::Removed => "removed",
        Verdict::Unspecified => "unknown",
    }
}

/// What agents say may have line breaks, and worse.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
