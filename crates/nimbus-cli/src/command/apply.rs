//! `nimbus apply`: objects as files say they should be.

use std::collections::BTreeSet;

use clap::{Args, ValueEnum};
use nimbus_wire::v1::{self, Result as Effect};
use serde_json::{Value, json};

use crate::{
    client::{Client, ClientArguments, PublisherArguments, parse_seconds},
    command::wait::NAMED,
    failure::{Exit, Failure},
    goal::{Deed, Enough, Goal},
    input::InputArguments,
    intake::{Draft, Intake},
    output::{Printer, thousands},
    problems::Problems,
    progress::Tally,
    sending::{Sending, Sent},
    waiting::Waiting,
};

/// Make objects as files say they should be.
///
/// All files are read and checked before anything is sent; one mistake, and nothing is. Objects that are already as they
/// should be are left alone. What is not in the files is left alone, too: `nimbus delete -f` deletes what is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nimbus apply -f web.yaml
  nimbus apply -f policies/ --dry-run      what would happen
  nimbus apply -f policies/ --atomic       all in one transaction
  nimbus apply -f web.yaml --wait          until every agent has it
  generate | nimbus apply -f -")]
pub(crate) struct Arguments {
    #[command(flatten)]
    input: InputArguments,

    /// Let the bus check everything and change nothing, and say what would happen.
    #[arg(long)]
    dry_run: bool,

    /// All in one transaction, or nothing. Without it, objects that are refused are named, and all others are applied.
    #[arg(long)]
    atomic: bool,

    /// Only if nobody has changed the objects since: each must be at the `bus.revision` that its manifest says, or not exist if
    /// it says none. All in one transaction.
    #[arg(long)]
    if_unchanged: bool,

    /// Wait until all agents have applied it.
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,

    /// Seconds to wait for agents.
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0, value_parser = parse_seconds, requires = "wait")]
    wait_timeout: f64,

    /// What to print.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,

    #[command(flatten)]
    publisher: PublisherArguments,

    #[command(flatten)]
    client: ClientArguments,
}

/// What to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// What became of each object, and how many there were of each sort.
    Text,
    /// One document with the same.
    Json,
    /// KIND/NAME, one a line.
    Name,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let client = arguments.client.client()?;
    let drafts = read(&client, &arguments.input).await?;
    let ops: Vec<v1::Op> = drafts.iter().map(|draft| op(draft, arguments)).collect();
    let sending = Sending {
        client: client.clone(),
        publisher: arguments.publisher.name(&client),
        dry_run: arguments.dry_run,
        if_too_many: "apply without --atomic, or in parts",
    };
    let sent = if arguments.atomic || arguments.if_unchanged {
        sending.at_once(&ops).await
    } else {
        sending.batches(&ops, &mut Tally::new("applied", ops.len())).await
    };
    let revisions = sent.outcomes.iter().flatten().map(|outcome| outcome.revision).collect::<BTreeSet<u64>>();
    report(arguments, &drafts, &sent)?;
    if let Some(failure) = refused(&drafts, sent) {
        return Err(failure);
    }
    if arguments.wait {
        wait_for(&client, &revisions, arguments.wait_timeout).await?;
    }
    Ok(())
}

/// Waits until all agents have applied these transactions.
async fn wait_for(client: &Client, revisions: &BTreeSet<u64>, seconds: f64) -> Result<(), Failure> {
    let goal = Goal { deed: Deed::Applied, enough: Enough::Percent(100.0) };
    let mut waiting = Waiting::new(client, goal, Some(seconds));
    let all = async {
        for revision in revisions {
            let target = Some(v1::Target { target: Some(v1::target::Target::Revision(*revision)) });
            let request = v1::WaitForRequest { target, max_agents: NAMED, ..v1::WaitForRequest::default() };
            waiting.wait(&format!("revision {revision}"), request).await?;
        }
        Ok(())
    };
    let ended = tokio::select! {
        ended = all => ended,
        _ = tokio::signal::ctrl_c() => {
            Err(Failure::new(Exit::Interrupted, "interrupted while waiting for agents; everything is applied on the bus"))
        }
    };
    waiting.finish();
    ended
}

/// Reads all files.
///
/// # Errors
/// If anything is wrong with any of them; then all of it has been said.
pub(crate) async fn read(client: &Client, input: &InputArguments) -> Result<Vec<Draft>, Failure> {
    let mut problems = Problems::default();
    let items = input.read(&mut problems);
    let drafts = match Intake::fetch(client, &items).await {
        Ok(intake) => intake.drafts(&items, None, &mut problems),
        Err(failure) if problems.is_empty() => return Err(failure),
        // The user can repair the files meanwhile.
        Err(_) => Vec::new(),
    };
    if problems.is_empty() { Ok(drafts) } else { Err(problems.into_failure()) }
}

fn op(draft: &Draft, arguments: &Arguments) -> v1::Op {
    let precondition = arguments.if_unchanged.then(|| match &draft.basis {
        None => v1::Precondition { absent: true, ..v1::Precondition::default() },
        Some(basis) => {
            v1::Precondition { uid: basis.uid.clone(), revision: Some(basis.revision), ..v1::Precondition::default() }
        }
    });
    let upsert = Some(v1::op::Op::Upsert(draft.object.clone()));
    v1::Op { op: upsert, precondition, take_over: arguments.publisher.take_over }
}

fn report(arguments: &Arguments, drafts: &[Draft], sent: &Sent) -> Result<(), Failure> {
    let mut printer = Printer::lines();
    let done = drafts
        .iter()
        .zip(&sent.outcomes)
        .filter_map(|(draft, outcome)| Some((draft, outcome.as_ref()?)));
    let totals = [Effect::Created, Effect::Updated, Effect::Unchanged].map(|effect| (word(effect), sent.count(effect)));
    match arguments.output {
        Format::Name => {
            for (draft, _) in done {
                printer.line(&draft.name())?;
            }
        }
        Format::Text => {
            let would = if arguments.dry_run { " (dry run)" } else { "" };
            for (draft, outcome) in done {
                printer.line(&format!("{} {}{would}", draft.name(), word(outcome.result())))?;
            }
            if sent.outcomes.iter().any(Option::is_some) {
                let counts = totals.map(|(word, count)| format!("{} {word}", thousands(count)));
                printer.line(&format!("{}{would}", counts.join(", ")))?;
            }
        }
        Format::Json => {
            let items: Vec<Value> = done.map(|(draft, outcome)| item(draft, outcome)).collect();
            let mut whole = json!({"items": items});
            for (word, count) in totals {
                whole[word] = json!(count);
            }
            whole["refused"] = json!(sent.refused.len());
            whole["dryRun"] = json!(arguments.dry_run);
            printer.json(&whole)?;
        }
    }
    printer.flush()
}

fn item(draft: &Draft, outcome: &v1::Outcome) -> Value {
    let v1::Key { kind, namespace, name } = draft.key();
    json!({
        "kind": kind, "namespace": namespace, "name": name, "result": word(outcome.result()), "uid": outcome.uid,
        "generation": outcome.generation, "revision": outcome.revision,
    })
}

/// What became of an object.
fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Created => "created",
        Effect::Updated => "changed",
        _ => "unchanged",
    }
}

/// Says which objects were refused, where they are and why; the command fails as the first of them did.
fn refused(drafts: &[Draft], sent: Sent) -> Option<Failure> {
    let total = sent.refused.len();
    let mut lines = Problems::default();
    let mut first = None;
    for (index, failure) in sent.refused {
        let Draft { file, at, .. } = &drafts[index];
        lines.refusal(file, *at, &drafts[index].name(), &failure);
        first.get_or_insert(failure);
    }
    lines.tell();
    let refused = first.map(|failure| {
        let objects = if total == 1 { "1 object was".to_owned() } else { format!("{} objects were", thousands(total)) };
        Failure::new(failure.exit(), format!("{objects} refused"))
    });
    sent.ended.or(refused)
}
