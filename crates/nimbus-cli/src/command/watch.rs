//! `nimbus watch`: changes of objects as they happen, across restarts of the bus.

use std::time::Duration;

use clap::Args;
use nimbus_client::{Advice, Arrival, Uplink};
use nimbus_wire::v1;
use serde_json::{Value, json};
use tonic::Status;

use crate::{
    client::{Client, ClientArguments},
    failure::{Exit, Failure, loss},
    following::{Event, Follower, News},
    kinds::Kinds,
    manifest::Manifest,
    object_table,
    output::{Format, OutputArguments, Printer},
    schemas::{Schemas, Secrets},
};

/// Watch objects: what is there, then every change as it happens.
///
/// One line for each change, until Ctrl-C. A connection that is lost is opened again, and what happened meanwhile is shown
/// then: every object that has changed once, and none that has not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nimbus watch networkpolicy zone
  nimbus watch networkpolicy -l tier=front --no-initial
  nimbus watch networkpolicy -o json | jq -r .object.name    one line of JSON for each change")]
pub(crate) struct Arguments {
    /// The kinds, in full or by the end of their names.
    #[arg(required = true, value_name = "KIND")]
    kinds: Vec<String>,

    /// Only objects in this namespace.
    #[arg(short, long, value_name = "NAME", help_heading = "Selection")]
    namespace: Option<String>,

    /// Only objects whose labels match, such as `zone in (a,b),role=edge,tier!=db,gpu,!canary`.
    #[arg(short = 'l', long, value_name = "SELECTOR", help_heading = "Selection")]
    selector: Option<String>,

    /// Only objects with this value in their spec, such as `spec.zone=a` or `spec.zone!=a`. May be given several times.
    #[arg(long, value_name = "FIELD=VALUE", help_heading = "Selection")]
    filter: Vec<String>,

    /// Do not begin with what is there already.
    #[arg(long, help_heading = "Selection")]
    no_initial: bool,

    #[command(flatten)]
    output: OutputArguments,

    #[command(flatten)]
    client: ClientArguments,
}

/// What operators see as the software of this subscriber.
const SOFTWARE: &str = concat!("nimbus/", env!("CARGO_PKG_VERSION"));

/// Between attempts to read a schema while the bus is not there.
const RETRY: Duration = Duration::from_millis(500);

/// A watch under way.
struct Watch {
    client: Client,
    printer: Printer,
    schemas: Schemas,
    follower: Follower,
    /// Whether the bus has ever accepted what is asked for.
    accepted: bool,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let client = arguments.client.client()?;
    let known = Kinds::fetch(&client).await?;
    let kinds = arguments.kinds.iter().flat_map(|kinds| kinds.split(','));
    let kinds: Vec<String> = kinds.map(|kind| known.resolve(kind).map(str::to_owned)).collect::<Result<_, _>>()?;
    let filter = v1::Filter {
        namespaces: arguments.namespace.iter().cloned().collect(),
        names: Vec::new(),
        selector: arguments.selector.clone().unwrap_or_default(),
        fields: arguments.filter.clone(),
    };
    let skip = if arguments.no_initial { Some(revision(&client, &kinds, &filter).await?) } else { None };
    let request = v1::SubscribeRequest {
        kinds,
        filter: Some(filter),
        software: SOFTWARE.to_owned(),
        ..v1::SubscribeRequest::default()
    };
    let uplink = client.uplink();
    let printer = arguments.output.printer();
    let follower = Follower::new(skip);
    let watch = Watch { client, printer, schemas: Schemas::new(), follower, accepted: false };
    watch.run(uplink, &request).await
}

/// The newest revision.
async fn revision(client: &Client, kinds: &[String], filter: &v1::Filter) -> Result<u64, Failure> {
    let request = v1::ListRequest {
        kinds: kinds.to_vec(),
        filter: Some(filter.clone()),
        page_size: 1,
        ..v1::ListRequest::default()
    };
    Ok(client.call(client.bus().list(request)).await?.revision)
}

// === impl Watch ===

impl Watch {
    /// Goes on until nobody reads any more, or the bus refuses.
    async fn run(mut self, mut uplink: Uplink, request: &v1::SubscribeRequest) -> Result<(), Failure> {
        loop {
            let follower = &self.follower;
            let resumed = || v1::SubscribeRequest { resume: follower.resume(), ..request.clone() };
            match uplink.next(resumed).await {
                Arrival::Connected { .. } => self.accepted = true,
                Arrival::Lost { status, advice, .. } => self.lose(status, advice)?,
                Arrival::Frame(frame) => match self.follower.take(frame) {
                    Ok(news) => {
                        if let Some(interval) = news.interval {
                            uplink.expect_every(interval);
                        }
                        if news.exact {
                            uplink.succeeded();
                        }
                        if news.restart {
                            self.follower.disconnect();
                            uplink.restart(RETRY);
                        }
                        self.tell(news).await?;
                    }
                    Err(error) => {
                        self.printer.note(&format!("cannot understand the bus: {error}; reconnecting"))?;
                        self.follower.disconnect();
                        uplink.restart(RETRY);
                    }
                },
            }
        }
    }

    /// The connection is lost, or could not be opened.
    fn lose(&mut self, status: Status, advice: Advice) -> Result<(), Failure> {
        if !self.accepted && advice == Advice::Refused {
            return Err(self.client.failure(status));
        }
        if self.follower.disconnect() {
            self.printer.note(&format!("connection lost: {}; reconnecting", loss(&status)))?;
        }
        Ok(())
    }

    async fn tell(&mut self, news: News) -> Result<(), Failure> {
        if let Some(remark) = &news.remark {
            self.printer.note(&one_line(remark))?;
        }
        if self.printer.format().has_specs() {
            self.read_schemas(&news.events).await?;
        }
        for event in &news.events {
            match self.printer.format() {
                Format::Table | Format::Wide => self.printer.line(&line(event))?,
                Format::Name => self.printer.line(&name(event))?,
                Format::Json => {
                    let json = self.json(event);
                    self.printer.line(&json.to_string())?;
                }
                Format::Yaml => {
                    let json = self.json(event);
                    self.printer.yaml(&json)?;
                }
            }
        }
        self.printer.flush()
    }

    /// Fetches what it takes to read what has come. If the bus is gone by then, it will be back.
    async fn read_schemas(&mut self, events: &[Event]) -> Result<(), Failure> {
        let objects: Vec<v1::Object> = events
            .iter()
            .filter_map(|event| match event {
                Event::Added(object) | Event::Changed { object, .. } => Some(v1::Object::clone(object)),
                Event::Removed { .. } => None,
            })
            .collect();
        loop {
            let mut schemas = self.schemas.clone();
            match schemas.load_for(&self.client, &objects).await {
                Ok(()) => {
                    self.schemas = schemas;
                    return Ok(());
                }
                Err(failure) if failure.is(Exit::Unreachable) || failure.is(Exit::TimedOut) => {
                    tokio::time::sleep(RETRY).await;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    fn json(&self, event: &Event) -> Value {
        let manifest = |object| Manifest::new(object, &self.schemas, Secrets::Hidden).to_json();
        match event {
            Event::Added(object) => {
                json!({"event": "ADDED", "revision": object.revision, "object": manifest(object)})
            }
            Event::Changed { object, .. } => {
                json!({"event": "CHANGED", "revision": object.revision, "object": manifest(object)})
            }
            Event::Removed { key, revision, out_of_scope } => {
                let mut named = json!({"kind": key.kind});
                if !key.namespace.is_empty() {
                    named["namespace"] = Value::from(key.namespace.clone());
                }
                named["name"] = Value::from(key.name.clone());
                json!({"event": "REMOVED", "revision": revision, "outOfScope": out_of_scope, "object": named})
            }
        }
    }
}

fn name(event: &Event) -> String {
    match event {
        Event::Added(object) | Event::Changed { object, .. } => object_table::name(object),
        Event::Removed { key, .. } => object_table::key_name(key),
    }
}

/// A change as a line: what, when, which object, and what is to be said of it.
fn line(event: &Event) -> String {
    let (word, revision, remark) = match event {
        Event::Added(object) => ("ADDED", object.revision, format!("generation {}", object.generation)),
        Event::Changed { object, before } if *before != object.generation => {
            ("CHANGED", object.revision, format!("generation {before} -> {}", object.generation))
        }
        Event::Changed { object, .. } => ("CHANGED", object.revision, format!("generation {}", object.generation)),
        Event::Removed { revision, out_of_scope: true, .. } => {
            ("REMOVED", *revision, "it lives on, but is not selected any more".to_owned())
        }
        Event::Removed { revision, .. } => ("REMOVED", *revision, String::new()),
    };
    let deleting = match event {
        Event::Added(object) | Event::Changed { object, .. } if object.deleting => {
            format!(", deleting, waits for {}", object.finalizers.join(","))
        }
        _ => String::new(),
    };
    let line = format!("{word:<7}   {revision:>8}   {}   {remark}{deleting}", name(event));
    line.trim_end().to_owned()
}

/// What others have written must not move the cursor.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
