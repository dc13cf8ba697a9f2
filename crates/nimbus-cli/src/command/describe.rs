//! `nimbus describe`: one object on one page.

use clap::Args;
use nimbus_wire::v1;

use crate::{
    client::{Client, ClientArguments},
    description::{Description, Existence, Relatives},
    failure::{Exit, Failure},
    kinds::Kinds,
    manifest::Manifest,
    naming::Named,
    object_table, output, propagation_report,
    schemas::{Schemas, Secrets},
};

/// Describe an object on one page, for people: what it is, what it needs, how it fares, and who does not have it.
///
/// Secrets are not shown. Programs read `get -o json` and `propagation -o json`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nimbus describe networkpolicy web")]
pub(crate) struct Arguments {
    /// KIND NAME, or KIND/NAME.
    #[arg(required = true, value_name = "KIND NAME")]
    words: Vec<String>,

    /// The namespace of the object.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    #[command(flatten)]
    client: ClientArguments,
}

/// Agents of each sort that are named.
const NAMED: u32 = 20;

/// Children of which it is said how far they have come.
const CHILDREN: usize = 20;

/// The contract has no way to ask what points to an object, so everything is looked at; on a large bus, that takes long.
const LOOK_AT: usize = 20_000;

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let naming = Named::object(&arguments.words, arguments.namespace.as_deref())?;
    let client = arguments.client.client()?;
    let key = Kinds::fetch(&client).await?.key(&naming)?;
    let object = fetch(&client, &key).await?;
    let mut schemas = Schemas::new();
    schemas.load_for(&client, std::slice::from_ref(&object)).await?;
    let manifest = Manifest::new(&object, &schemas, Secrets::Hidden);
    let mut refs = Vec::new();
    for reference in &object.refs {
        let v1::Reference { kind, namespace, name, .. } = reference.clone();
        refs.push((reference.clone(), existence(&client, &v1::Key { kind, namespace, name }, "").await?));
    }
    let owner = match object.owner.clone() {
        None => None,
        Some(owner) => {
            let v1::Owner { kind, namespace, name, uid } = owner.clone();
            Some((owner, existence(&client, &v1::Key { kind, namespace, name }, &uid).await?))
        }
    };
    let relatives = relatives(&client, &object).await?;
    let mut children = Vec::new();
    for child in relatives.children.iter().take(CHILDREN) {
        children.push(propagation(&client, child).await?);
    }
    let propagation = propagation(&client, &key).await?;
    let agents = if propagation_report::concerns_nobody(&propagation) {
        Vec::new()
    } else {
        agents(&client, &propagation).await?
    };
    let mut printer = output::page();
    Description { object, manifest, refs, owner, relatives, children, propagation, agents }.print(&mut printer)?;
    printer.flush()
}

async fn fetch(client: &Client, key: &v1::Key) -> Result<v1::Object, Failure> {
    let v1::Key { kind, namespace, name } = key.clone();
    let answer = client.call(client.bus().get(v1::GetRequest { kind, namespace, name })).await?;
    Ok(answer.object.unwrap_or_default())
}

/// Whether there is such an object; with a uid, that very one.
async fn existence(client: &Client, key: &v1::Key, uid: &str) -> Result<Existence, Failure> {
    match fetch(client, key).await {
        Ok(object) if uid.is_empty() || object.uid == uid => Ok(Existence::Exists),
        Ok(_) => Ok(Existence::Replaced),
        Err(failure) if failure.is(Exit::NotFound) => Ok(Existence::Missing),
        Err(failure) => Err(failure),
    }
}

/// What points to the object.
async fn relatives(client: &Client, object: &v1::Object) -> Result<Relatives, Failure> {
    let mut relatives = Relatives::default();
    let mut request = v1::ListRequest::default();
    let mut looked_at = 0;
    let is_it = |kind: &str, namespace: &str, name: &str| {
        kind == object.kind && namespace == object.namespace && name == object.name
    };
    loop {
        let page = client.call(client.bus().list(request.clone())).await?;
        looked_at += page.objects.len();
        for other in &page.objects {
            let owned = |owner: &v1::Owner| {
                is_it(&owner.kind, &owner.namespace, &owner.name) && (owner.uid.is_empty() || owner.uid == object.uid)
            };
            if other.owner.as_ref().is_some_and(owned) {
                let v1::Object { kind, namespace, name, .. } = other.clone();
                relatives.children.push(v1::Key { kind, namespace, name });
            }
            if other
                .refs
                .iter()
                .any(|reference| is_it(&reference.kind, &reference.namespace, &reference.name))
            {
                relatives.referrers.push(object_table::name(other));
            }
        }
        if page.next_page_token.is_empty() {
            return Ok(relatives);
        }
        if looked_at >= LOOK_AT {
            relatives.looked_at = Some(looked_at);
            return Ok(relatives);
        }
        request.page_token = page.next_page_token;
    }
}

async fn propagation(client: &Client, key: &v1::Key) -> Result<v1::Propagation, Failure> {
    let target = v1::Target { target: Some(v1::target::Target::Object(key.clone())) };
    let request =
        v1::GetPropagationRequest { target: Some(target), max_agents: NAMED, ..v1::GetPropagationRequest::default() };
    Ok(client
        .call(client.fleet().get_propagation(request))
        .await?
        .propagation
        .unwrap_or_default())
}

/// The agents that are named there, with what happened at each.
async fn agents(client: &Client, propagation: &v1::Propagation) -> Result<Vec<v1::AgentInfo>, Failure> {
    let agents: Vec<String> = propagation_report::laggards(propagation)
        .into_iter()
        .map(|laggard| laggard.agent)
        .collect();
    if agents.is_empty() {
        return Ok(Vec::new());
    }
    let request = v1::ListAgentsRequest { agents, details: true, ..v1::ListAgentsRequest::default() };
    Ok(client.call(client.fleet().list_agents(request)).await?.agents)
}
