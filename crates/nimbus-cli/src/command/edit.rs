//! `nimbus edit`: one object in an editor.

use std::rc::Rc;

use clap::Args;
use nimbus_wire::v1;
use prost_reflect::Value;

use crate::{
    client::{Client, ClientArguments, PublisherArguments},
    document,
    editor::{Draft as Text, Editor},
    failure::{Exit, Failure},
    input::Item,
    intake::{Intake, SPEC_BYTES},
    kinds::Kinds,
    manifest::Manifest,
    naming::Named,
    object_table::key_name,
    output::{Printer, yaml_document},
    problems::Problems,
    reading,
    schemas::{Kept, Schemas, Secrets},
};

/// Edit an object in an editor: the one that VISUAL or EDITOR names, or else vi.
///
/// It is written only if nobody has changed it meanwhile; if somebody has, what you wrote is kept in a file. Secrets are not
/// shown: each is a placeholder such as `<secret 1>`, which leaves it as it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nimbus edit networkpolicy web
  EDITOR='code --wait' nimbus edit networkpolicy/web --publisher policies")]
pub(crate) struct Arguments {
    /// KIND NAME, or KIND/NAME.
    #[arg(required = true, value_name = "KIND NAME")]
    words: Vec<String>,

    /// The namespace of the object.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    #[command(flatten)]
    publisher: PublisherArguments,

    #[command(flatten)]
    client: ClientArguments,
}

/// Statuses change all the time, and are no reason to refuse what somebody wrote; but somewhere there is an end.
const ATTEMPTS: usize = 10;

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let named = Named::objects(&arguments.words, arguments.namespace.as_deref())?;
    let [naming] = &named[..] else {
        return Err(Failure::invalid("one object can be edited at a time"));
    };
    let client = arguments.client.client()?;
    let key = Kinds::fetch(&client).await?.key(naming)?;
    let name = key_name(&key);
    let Some(object) = reading::get(&client, key.clone()).await? else {
        return Err(
            Failure::new(Exit::NotFound, format!("{name} does not exist")).hint("`nimbus apply` creates objects")
        );
    };
    let mut schemas = Schemas::new();
    schemas.load_for(&client, std::slice::from_ref(&object)).await?;
    let mut kept = Kept::default();
    let shown = shown(&object, &schemas, &mut kept)?;
    let mut printer = Printer::lines();
    let mut editor = Editor::open(&name, &shown, kept.is_empty())?;
    let draft = loop {
        let body = match editor.edit().await? {
            Text::Unchanged => {
                printer.line(&format!("{name} unchanged"))?;
                return printer.flush();
            }
            Text::Changed(body) => body,
        };
        match read(&client, &key, &body, &kept).await.map_err(|failure| editor.kept(failure))? {
            Ok(draft) => break draft,
            Err(problems) => editor.complain(&body, &problems)?,
        }
    };
    let effect = write(arguments, &client, &object, draft).await;
    match effect {
        Ok(effect) => {
            editor.remove();
            printer.line(&format!("{name} {effect}"))?;
            printer.flush()
        }
        Err(failure) => Err(editor.kept(failure)),
    }
}

/// The manifest, with placeholders for secrets.
fn shown(object: &v1::Object, schemas: &Schemas, kept: &mut Kept) -> Result<String, Failure> {
    let unknown = object.spec.as_ref().map(|spec| schemas.unknown_fields(spec)).unwrap_or_default();
    if !unknown.is_empty() {
        let message =
            format!("its schema does not know all fields of the spec ({}), and they would be lost", unknown.join(", "));
        return Err(Failure::new(Exit::Conflict, message).hint("register the schema that has them"));
    }
    let mut manifest = Manifest::new(object, schemas, Secrets::Shown).of_publisher();
    if let (Some(descriptor), Some(spec)) = (schemas.message(&object.kind), &mut manifest.spec) {
        kept.keep_secrets(spec, &descriptor);
    }
    if let Some(bytes) = &mut manifest.spec_bytes {
        let value = object.spec.clone().unwrap_or_default().value;
        *bytes = kept.keep(SPEC_BYTES, Value::Bytes(value.into()));
    }
    Ok(yaml_document(&manifest.to_json()))
}

/// Reads what somebody wrote, or says what is wrong with it.
async fn read(
    client: &Client,
    key: &v1::Key,
    body: &str,
    kept: &Kept,
) -> Result<Result<v1::Object, Vec<document::Complaint>>, Failure> {
    let documents = document::read(body);
    let mut complaints = documents.complaints;
    let file: Rc<str> = Rc::from("");
    let items: Vec<Item> = documents.documents.into_iter().map(|node| Item { file: file.clone(), node }).collect();
    let start = document::Position { line: 1, column: 1 };
    if items.len() != 1 && complaints.is_empty() {
        complaints.push(document::Complaint::new(start, "expected one object"));
    }
    let intake = Intake::fetch(client, &items).await?;
    let mut problems = Problems::default();
    let drafts = intake.drafts(&items, Some(kept), &mut problems);
    complaints.extend(problems.into_complaints());
    if let (true, Some(draft)) = (complaints.is_empty(), drafts.into_iter().next()) {
        if draft.key() == *key {
            return Ok(Ok(draft.object));
        }
        let message = format!("this is {}, but {} is edited", draft.name(), key_name(key));
        complaints.push(document::Complaint::new(start, message));
    }
    Ok(Err(complaints))
}

/// Writes it, if nothing but what others write has changed since.
async fn write(
    arguments: &Arguments,
    client: &Client,
    read: &v1::Object,
    wanted: v1::Object,
) -> Result<&'static str, Failure> {
    let mut basis = read.clone();
    for attempt in 1.. {
        let precondition =
            v1::Precondition { uid: basis.uid.clone(), revision: Some(basis.revision), ..v1::Precondition::default() };
        let op = v1::Op {
            op: Some(v1::op::Op::Upsert(wanted.clone())),
            precondition: Some(precondition),
            take_over: arguments.publisher.take_over,
        };
        let request = v1::ApplyRequest {
            publisher: arguments.publisher.name(client),
            ops: vec![op],
            ..v1::ApplyRequest::default()
        };
        let failure = match client.call(client.publisher().apply(request)).await {
            Ok(answer) => {
                let changed = answer.outcomes.first().is_some_and(|outcome| outcome.result() != v1::Result::Unchanged);
                return Ok(if changed { "changed" } else { "unchanged" });
            }
            Err(failure) => failure,
        };
        let v1::Object { kind, namespace, name, .. } = read.clone();
        let now = reading::get(client, v1::Key { kind, namespace, name }).await?;
        match now {
            Some(now) if now.revision == basis.revision => return Err(failure),
            Some(now) if attempt < ATTEMPTS && of_publisher(&now) == of_publisher(read) => basis = now,
            Some(now) => {
                let message = format!(
                    "somebody changed it meanwhile: it was at revision {}, and is at {}",
                    read.revision, now.revision
                );
                return Err(Failure::new(Exit::Conflict, message).hint("edit it again"));
            }
            None => return Err(Failure::new(Exit::Conflict, "somebody deleted it meanwhile")),
        }
    }
    unreachable!("attempts have an end")
}

/// What its publisher says of an object.
fn of_publisher(object: &v1::Object) -> v1::Object {
    v1::Object {
        revision: 0,
        status: None,
        observed_generation: 0,
        finalizers: Vec::new(),
        deleting: false,
        ..object.clone()
    }
}
