//! `nimbus kinds`: what there is on a bus.

use std::time::Duration;

use clap::Args;
use nimbus_wire::v1;

use crate::{
    client::ClientArguments,
    failure::Failure,
    kinds::Kinds,
    output::{Cell, Column, Items, OutputArguments, Table, Tone, wire_json},
};

/// Show the kinds that the bus knows, and whether each is complete.
///
/// A kind is complete when its publishers have finished a sync. Agents remove nothing of a kind that is not.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    output: OutputArguments,

    #[command(flatten)]
    client: ClientArguments,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let client = arguments.client.client()?;
    let kinds = Kinds::fetch(&client).await?;
    let mut printer = arguments.output.printer();
    let columns = ["NAME", "OBJECTS", "SCHEMA", "COMPLETE", "PUBLISHERS"].map(Column::new);
    let mut items = Items::new(Table::new(columns.into_iter().chain([Column::wide("LAST HEARD")])));
    for info in kinds.infos() {
        items.add(&mut printer, || info.kind.clone(), |table| table.row(row(info)), || wire_json(info))?;
    }
    let empty = items.len() == 0;
    items.finish(&mut printer)?;
    if empty {
        printer.note("no kinds yet (hint: `nimbus register FILE.proto` makes some)")?;
    }
    Ok(())
}

fn row(info: &v1::KindInfo) -> [Cell; 6] {
    let publishers = info.publishers.iter().map(|age| age.publisher.clone()).collect::<Vec<_>>().join(",");
    let heard = info.publishers.iter().map(|age| seconds(age.age_ms)).collect::<Vec<_>>().join(",");
    [
        Cell::from(&info.kind),
        Cell::from(info.objects),
        Cell::from(if info.registered { "yes" } else { "no" }),
        complete(info),
        Cell::from(publishers),
        Cell::from(heard),
    ]
}

fn complete(info: &v1::KindInfo) -> Cell {
    if info.complete {
        return Cell::from("yes").tone(Tone::Good);
    }
    let waiting = info.publishers.iter().filter(|age| !age.synced).map(|age| age.publisher.as_str());
    let waiting: Vec<&str> = waiting.collect();
    let text = if waiting.is_empty() {
        "no, nobody has synced it".to_owned()
    } else {
        format!("no, waits for {}", waiting.join(","))
    };
    Cell::from(text).tone(Tone::Warning)
}

fn seconds(ms: u64) -> String {
    format!("{}s ago", Duration::from_millis(ms).as_secs())
}
