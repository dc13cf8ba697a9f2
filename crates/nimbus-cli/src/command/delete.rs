//! `nimbus delete`: the end of objects.

use std::path::PathBuf;

use clap::Args;
use nimbus_wire::v1::{self, Result as Effect};

use crate::{
    client::{Client, ClientArguments, PublisherArguments},
    failure::{Exit, Failure},
    input::InputArguments,
    intake,
    kinds::Kinds,
    naming::Named,
    object_table::key_name,
    output::Printer,
    problems::Problems,
    sending::Sending,
};

/// Delete objects: all that are named, or none.
///
/// Only those that --publisher owns are deleted. An object with finalizers is marked, and goes when the last of them is
/// done.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nimbus delete networkpolicy web db
  nimbus delete networkpolicy/web --publisher policies    an object of another publisher, in its name
  nimbus delete -f policies/                              what is in these files")]
pub(crate) struct Arguments {
    /// KIND NAME..., or KIND/NAME...
    #[arg(required_unless_present = "files", conflicts_with = "files", value_name = "KIND NAME")]
    words: Vec<String>,

    /// Delete the objects in this file, or in the files of this directory, or `-` for standard input; as `nimbus apply` reads
    /// them, but only which objects they are about. May be given several times.
    #[arg(short = 'f', long = "file", value_name = "PATH", conflicts_with = "namespace")]
    files: Vec<PathBuf>,

    /// The namespace of the objects.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    /// It is no failure if an object is gone already.
    #[arg(long)]
    ignore_not_found: bool,

    /// Check everything, delete nothing.
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    publisher: PublisherArguments,

    #[command(flatten)]
    client: ClientArguments,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let client = arguments.client.client()?;
    let keys = keys(arguments, &client).await?;
    let take_over = arguments.publisher.take_over;
    let delete = |key: &v1::Key| v1::Op { op: Some(v1::op::Op::Delete(key.clone())), take_over, ..v1::Op::default() };
    let ops: Vec<v1::Op> = keys.iter().map(delete).collect();
    let sending = Sending {
        client: client.clone(),
        publisher: arguments.publisher.name(&client),
        dry_run: arguments.dry_run,
        if_too_many: "delete them in parts",
    };
    let sent = sending.at_once(&ops).await;
    if let Some(failure) = sent.ended {
        return Err(failure);
    }
    let mut printer = Printer::lines();
    let mut missing = false;
    for (key, outcome) in keys.iter().zip(sent.outcomes.iter().flatten()) {
        let name = key_name(key);
        let would = if arguments.dry_run { " (dry run)" } else { "" };
        match outcome.result() {
            Effect::Absent if arguments.ignore_not_found => {}
            Effect::Absent => {
                missing = true;
                printer.note(&format!("{name} does not exist"))?;
            }
            Effect::Deleting => {
                let waits = waits_for(&client, key).await?;
                printer.line(&format!("{name} marked for deletion, waits for {waits}{would}"))?;
            }
            _ => printer.line(&format!("{name} deleted{would}"))?,
        }
    }
    printer.flush()?;
    if missing { Err(Failure::silent(Exit::NotFound)) } else { Ok(()) }
}

/// What to delete.
async fn keys(arguments: &Arguments, client: &Client) -> Result<Vec<v1::Key>, Failure> {
    if arguments.files.is_empty() {
        let named = Named::objects(&arguments.words, arguments.namespace.as_deref())?;
        let kinds = Kinds::fetch(client).await?;
        return named.iter().map(|naming| kinds.key(naming)).collect();
    }
    let mut problems = Problems::default();
    let items = InputArguments { files: arguments.files.clone() }.read(&mut problems);
    let keys = intake::keys(&items, &mut problems);
    if problems.is_empty() { Ok(keys) } else { Err(problems.into_failure()) }
}

/// Who has something to do before the object goes.
async fn waits_for(client: &Client, key: &v1::Key) -> Result<String, Failure> {
    let v1::Key { kind, namespace, name } = key.clone();
    match client.call(client.bus().get(v1::GetRequest { kind, namespace, name })).await {
        Ok(answer) => Ok(answer.object.unwrap_or_default().finalizers.join(", ")),
        Err(failure) if failure.is(Exit::NotFound) => Ok("nobody any more".to_owned()),
        Err(failure) => Err(failure),
    }
}
