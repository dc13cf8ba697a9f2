//! `nimbus get`: objects by name, or all of a kind.

use clap::Args;
use nimbus_wire::v1;

use crate::{
    client::{Client, ClientArguments},
    failure::{Exit, Failure},
    kinds::Kinds,
    listing::{self, SelectionArguments},
    manifest::Manifest,
    naming::{Named, Naming},
    object_table,
    output::{Format, Items, OutputArguments, Printer},
    schemas::{Schemas, Secrets},
};

/// Show objects by name, or all objects of a kind.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nimbus get networkpolicy                all objects of a kind, by the end of its name
  nimbus get networkpolicy web db         two of them
  nimbus get networkpolicy/web -o yaml    one as a manifest")]
pub(crate) struct Arguments {
    /// KIND, or KIND NAME..., or KIND/NAME...
    #[arg(required = true, value_name = "KIND [NAME]")]
    words: Vec<String>,

    /// Print fields that their schema marks as secret, and specs of kinds that nobody has registered. With -o json or
    /// yaml only.
    #[arg(long)]
    show_secrets: bool,

    #[command(flatten)]
    selection: SelectionArguments,

    #[command(flatten)]
    output: OutputArguments,

    #[command(flatten)]
    client: ClientArguments,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { words, selection, output, .. } = arguments;
    let secrets = if arguments.show_secrets { Secrets::Shown } else { Secrets::Hidden };
    if arguments.show_secrets && !output.format().has_specs() {
        return Err(Failure::invalid("--show-secrets shows nothing in a table").hint("add -o yaml"));
    }
    let named = Named::parse(words, selection.namespace.as_deref())?;
    let client = arguments.client.client()?;
    let mut printer = output.printer();
    match named {
        Named::Kinds(kinds) => listing::print(&client, &kinds, selection, secrets, &mut printer).await,
        Named::Objects(_) if selection.narrows() => Err(Failure::invalid(
            "objects that are named are not selected by --selector, --filter, --limit or --require-complete",
        )),
        Named::Objects(objects) => print_named(&client, &objects, secrets, &mut printer).await,
    }
}

/// Prints those that are there, and says which are not.
async fn print_named(
    client: &Client,
    named: &[Naming],
    secrets: Secrets,
    printer: &mut Printer,
) -> Result<(), Failure> {
    let kinds = Kinds::fetch(client).await?;
    let keys: Vec<v1::Key> = named.iter().map(|naming| kinds.key(naming)).collect::<Result<_, _>>()?;
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for v1::Key { kind, namespace, name } in keys.clone() {
        match client.call(client.bus().get(v1::GetRequest { kind, namespace, name })).await {
            Ok(answer) => found.extend(answer.object),
            Err(failure) if failure.is(Exit::NotFound) => missing.push(failure),
            Err(failure) => return Err(failure),
        }
    }
    let mut schemas = Schemas::new();
    if let ([object], Format::Json, 1) = (&found[..], printer.format(), named.len()) {
        schemas.load_for(client, &found).await?;
        printer.json(&Manifest::new(object, &schemas, secrets).to_json())?;
        return printer.flush();
    }
    let with_kind = keys.iter().any(|key| key.kind != keys[0].kind);
    let mut items = Items::new(object_table::columns());
    if !found.is_empty() || named.len() > 1 {
        listing::add(client, &found, with_kind, &mut schemas, secrets, &mut items, printer).await?;
        items.finish(printer)?;
    }
    for failure in &missing {
        printer.note(&failure.to_string())?;
    }
    if missing.is_empty() { Ok(()) } else { Err(Failure::silent(Exit::NotFound)) }
}
