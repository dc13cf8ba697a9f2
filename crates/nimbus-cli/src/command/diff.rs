//! `nimbus diff`: what would be different if files were applied.

use anstyle::{AnsiColor, Style};
use clap::Args;
use nimbus_wire::v1;
use serde_json::Value;
use similar::TextDiff;

use crate::{
    client::ClientArguments,
    command::apply,
    failure::{Exit, Failure},
    input::InputArguments,
    intake::Draft,
    manifest::Manifest,
    output::{Color, Printer, yaml_document},
    reading,
    schemas::{OTHER_SECRET, SECRET, Schemas, Secrets, redact_both},
};

/// Show how files differ from what is on the bus.
///
/// For each object of which something would change if the files were applied, the difference of the two manifests. Of
/// secrets, only whether they differ is shown. What is not in the files is not looked at.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:
  0            no differences
  1            differences
  2 and above  errors, as `nimbus --help` lists them; 2 in place of 1

Examples:
  nimbus diff -f web.yaml
  nimbus diff -f policies/")]
pub(crate) struct Arguments {
    #[command(flatten)]
    input: InputArguments,

    /// Whether to use colours. Without being told, only on a terminal, and not if `NO_COLOR` is set.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: Color,

    #[command(flatten)]
    client: ClientArguments,
}

/// Lines around a difference, as every such tool has them.
const CONTEXT: usize = 3;

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    match differences(arguments).await {
        Ok(false) => Ok(()),
        Ok(true) => Err(Failure::silent(Exit::Failed)),
        Err(failure) if failure.is(Exit::Failed) => Err(failure.with_exit(Exit::Usage)),
        Err(failure) => Err(failure),
    }
}

async fn differences(arguments: &Arguments) -> Result<bool, Failure> {
    let client = arguments.client.client()?;
    let drafts = apply::read(&client, &arguments.input).await?;
    let keys: Vec<v1::Key> = drafts.iter().map(Draft::key).collect();
    let objects = reading::get_all(&client, &keys).await?;
    let mut schemas = Schemas::new();
    let mut all: Vec<v1::Object> = objects.iter().flatten().cloned().collect();
    all.extend(drafts.iter().map(|draft| draft.object.clone()));
    schemas.load_for(&client, &all).await?;
    let colored = arguments.color.is_wanted();
    let mut printer = Printer::lines();
    let mut different = false;
    for (draft, object) in drafts.iter().zip(&objects) {
        let (old, new) = manifests(object.as_ref(), &draft.object, &schemas);
        let name = draft.name();
        let before = if object.is_some() { format!("bus/{name}") } else { "/dev/null".to_owned() };
        let diff = unified(&old, &new, &before, &format!("{}:{}", draft.file, draft.at));
        different |= !diff.is_empty();
        printer.raw(&if colored { color(&diff) } else { diff })?;
        let spec = object.as_ref().and_then(|object| object.spec.as_ref());
        let lost = spec.map(|spec| schemas.unknown_fields(spec)).unwrap_or_default();
        if !lost.is_empty() {
            different = true;
            let fields = lost.join(", ");
            printer.note(&format!(
                "{name} has fields that its schema does not know, and that the file would remove: {fields}"
            ))?;
        }
    }
    printer.flush()?;
    Ok(different)
}

/// What publishers say in both, as text without secrets; of an object that is not there, nothing.
fn manifests(old: Option<&v1::Object>, new: &v1::Object, schemas: &Schemas) -> (String, String) {
    let form = |object: &v1::Object| Manifest::new(object, schemas, Secrets::Shown).of_publisher().in_order();
    let (mut before, mut after) = (old.map(form), form(new));
    let mut nothing = Value::Null;
    let old_spec = before.as_mut().and_then(|manifest| manifest.spec.as_mut()).unwrap_or(&mut nothing);
    if let (Some(descriptor), Some(spec)) = (schemas.message(&new.kind), &mut after.spec) {
        redact_both(old_spec, spec, old.is_some(), &descriptor);
    }
    let bytes = before.as_ref().and_then(|manifest| manifest.spec_bytes.clone());
    if let Some(new) = &mut after.spec_bytes {
        let same = old.is_none() || bytes.as_ref() == Some(new);
        *new = if same { SECRET } else { OTHER_SECRET }.to_owned();
    }
    if let Some(old) = before.as_mut().and_then(|manifest| manifest.spec_bytes.as_mut()) {
        SECRET.clone_into(old);
    }
    let text = |manifest: &Manifest| yaml_document(&manifest.to_json());
    (before.as_ref().map(text).unwrap_or_default(), text(&after))
}

/// The difference of two texts, as `diff -u` shows it; nothing if there is none.
fn unified(old: &str, new: &str, before: &str, after: &str) -> String {
    if old == new {
        return String::new();
    }
    TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(CONTEXT)
        .header(before, after)
        .to_string()
}

fn color(diff: &str) -> String {
    let styled = |line: &str| {
        let style = match line.as_bytes() {
            [b'-', b'-', b'-', ..] | [b'+', b'+', b'+', ..] => Style::new().bold(),
            [b'-', ..] => AnsiColor::Red.on_default(),
            [b'+', ..] => AnsiColor::Green.on_default(),
            [b'@', ..] => AnsiColor::Cyan.on_default(),
            _ => return format!("{line}\n"),
        };
        format!("{style}{line}{style:#}\n")
    };
    diff.lines().map(styled).collect()
}
