//! Objects of a kind, page by page, in every format.

use clap::Args;
use nimbus_wire::v1;
use tonic::Code;

use crate::{
    client::Client,
    failure::Failure,
    kinds::Kinds,
    manifest::Manifest,
    object_table,
    output::{Items, Printer},
    schemas::{Schemas, Secrets},
};

/// Which objects of the named kinds. To be flattened into the arguments of commands that list.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SelectionArguments {
    /// Only objects in this namespace.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// Only objects whose labels match, such as `zone in (a,b),role=edge,tier!=db,gpu,!canary`.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,

    /// Only objects with this value in their spec, such as `spec.zone=a` or `spec.zone!=a`. May be given several times;
    /// all must hold.
    #[arg(long, value_name = "FIELD=VALUE")]
    filter: Vec<String>,

    /// At most this many objects.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,

    /// Fail, rather than show a kind whose publishers have not published everything yet.
    #[arg(long)]
    require_complete: bool,
}

/// How often a list that the bus no longer keeps is begun again.
const RESTARTS: usize = 3;

// === impl SelectionArguments ===

impl SelectionArguments {
    /// Whether anything but the namespace was said.
    pub(crate) fn narrows(&self) -> bool {
        self.selector.is_some() || !self.filter.is_empty() || self.limit.is_some() || self.require_complete
    }

    fn filter(&self) -> v1::Filter {
        v1::Filter {
            namespaces: self.namespace.iter().cloned().collect(),
            names: Vec::new(),
            selector: self.selector.clone().unwrap_or_default(),
            fields: self.filter.clone(),
        }
    }
}

/// Prints all objects of these kinds, none meaning all of them.
pub(crate) async fn print(
    client: &Client,
    kinds: &[String],
    selection: &SelectionArguments,
    secrets: Secrets,
    printer: &mut Printer,
) -> Result<(), Failure> {
    let known = Kinds::fetch(client).await?;
    let kinds: Vec<String> = kinds
        .iter()
        .map(|kind| known.resolve(kind).map(str::to_owned))
        .collect::<Result<_, _>>()?;
    let mut schemas = Schemas::new();
    let mut items = Items::new(object_table::columns());
    let mut request = v1::ListRequest {
        kinds: kinds.clone(),
        filter: Some(selection.filter()),
        require_complete: selection.require_complete,
        ..v1::ListRequest::default()
    };
    let mut restarts = 0;
    let more = loop {
        let room = selection
            .limit
            .map(|limit| limit.saturating_sub(u32::try_from(items.len()).unwrap_or(u32::MAX)));
        if room == Some(0) {
            break true;
        }
        request.page_size = room.unwrap_or_default();
        let page = match client.call(client.bus().list(request.clone())).await {
            Err(failure) if expired(&failure) && restarts < RESTARTS && items.restart(printer) => {
                restarts += 1;
                request.page_token.clear();
                continue;
            }
            page => page?,
        };
        if request.page_token.is_empty() && !page.incomplete_kinds.is_empty() {
            printer.note(&format!(
                "{} may be incomplete: publishers have not finished a sync",
                page.incomplete_kinds.join(", ")
            ))?;
        }
        add(client, &page.objects, kinds.len() != 1, &mut schemas, secrets, &mut items, printer).await?;
        if page.next_page_token.is_empty() {
            break false;
        }
        request.page_token = page.next_page_token;
    };
    let empty = items.len() == 0;
    items.finish(printer)?;
    if more {
        printer.note("there are more objects than --limit allows")?;
    } else if empty {
        let all = if kinds.is_empty() { String::new() } else { format!(" of {}", kinds.join(", ")) };
        printer.note(&format!("no objects{all} found"))?;
    }
    Ok(())
}

/// Adds objects to a list, with the descriptors that it takes.
pub(crate) async fn add(
    client: &Client,
    objects: &[v1::Object],
    with_kind: bool,
    schemas: &mut Schemas,
    secrets: Secrets,
    items: &mut Items,
    printer: &mut Printer,
) -> Result<(), Failure> {
    if printer.format().has_specs() {
        schemas.load_for(client, objects).await?;
    }
    for object in objects {
        items.add(
            printer,
            || object_table::name(object),
            |table| table.row(object_table::row(object, with_kind)),
            || Manifest::new(object, schemas, secrets).to_json(),
        )?;
    }
    Ok(())
}

/// The bus has forgotten the revision that the pages were of.
fn expired(failure: &Failure) -> bool {
    failure.status().is_some_and(|status| status.code() == Code::Aborted)
}
