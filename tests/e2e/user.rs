//! A user who goes on until the bus has taken what they want, and remembers it.

use std::{collections::BTreeMap, time::Duration};

use nimbus_wire::v1::{self, bus_client::BusClient, fleet_client::FleetClient, publisher_client::PublisherClient};
use prost::Message as _;
use tonic::{
    Code, Status,
    transport::{Channel, Endpoint},
};

use crate::{demo, file_agent::ask, wait};

/// A user who goes on until the bus has taken what they want, and remembers it.
pub(crate) struct User {
    kind: String,
    bus: BusClient<Channel>,
    pub(crate) fleet: FleetClient<Channel>,
    publisher: PublisherClient<Channel>,
    wanted: BTreeMap<String, Vec<u8>>,
    /// How often objects were deleted.
    deleted: BTreeMap<String, usize>,
    /// Writes that had to be sent again.
    pub(crate) retries: usize,
}

/// What is written: a text, as in every kind of these tests.
#[derive(Clone, PartialEq, prost::Message)]
struct Text {
    #[prost(string, tag = "1")]
    text: String,
}

/// What everybody here is called.
const PUBLISHER: &str = "user";

/// The spec of an object with this text.
pub(crate) fn spec(text: &str) -> Vec<u8> {
    Text { text: text.to_owned() }.encode_to_vec()
}

// === impl User ===

impl User {
    /// A user of the bus there, who writes objects of one kind.
    pub(crate) fn of(url: &str, kind: &str) -> Self {
        // It connects when it is used, and again when the bus was away.
        let channel = Endpoint::from_shared(url.to_owned()).unwrap().connect_lazy();
        Self {
            kind: kind.to_owned(),
            bus: BusClient::new(channel.clone()),
            fleet: FleetClient::new(channel.clone()),
            publisher: PublisherClient::new(channel),
            wanted: BTreeMap::new(),
            deleted: BTreeMap::new(),
            retries: 0,
        }
    }

    /// What they want: specs by name.
    pub(crate) fn wanted(&self) -> BTreeMap<String, Vec<u8>> {
        self.wanted.clone()
    }

    /// How often they have deleted an object of that name.
    pub(crate) fn deleted(&self, name: &str) -> usize {
        self.deleted.get(name).copied().unwrap_or_default()
    }

    /// Begins: says that there is nothing yet, so that the kind is complete.
    pub(crate) async fn begin(&mut self) {
        let steps = || tokio_stream::iter(vec![demo::begin(PUBLISHER, &[&self.kind]), demo::end()]);
        self.publisher.sync(steps()).await.unwrap();
    }

    /// Writes objects in one transaction, until the bus has taken it.
    pub(crate) async fn put(&mut self, objects: impl IntoIterator<Item = (String, String)>) {
        let (mut ops, mut wanted) = (Vec::new(), Vec::new());
        for (name, text) in objects {
            let spec = spec(&text);
            let object = v1::Object {
                name: name.clone(),
                spec: Some(demo::pack(&self.kind, spec.clone())),
                ..v1::Object::default()
            };
            ops.push(demo::upsert(object));
            wanted.push((name, spec));
        }
        self.write(ops).await;
        self.wanted.extend(wanted);
    }

    /// Deletes objects in one transaction, until the bus has taken it.
    pub(crate) async fn delete(&mut self, names: impl IntoIterator<Item = String>) {
        let names: Vec<String> = names.into_iter().collect();
        // Agents may know it before this does.
        for name in &names {
            *self.deleted.entry(name.clone()).or_default() += 1;
        }
        let ops = names.iter().map(|name| demo::delete(self.key(name))).collect();
        self.write(ops).await;
        names.iter().for_each(|name| drop(self.wanted.remove(name)));
    }

    /// Writes once.
    pub(crate) async fn try_put(&mut self, name: &str, text: &str) -> Result<(), Status> {
        let spec = spec(text);
        let object = v1::Object {
            name: name.to_owned(),
            spec: Some(demo::pack(&self.kind, spec.clone())),
            ..v1::Object::default()
        };
        self.publisher.apply(demo::apply(PUBLISHER, vec![demo::upsert(object)])).await?;
        self.wanted.insert(name.to_owned(), spec);
        Ok(())
    }

    async fn write(&mut self, ops: Vec<v1::Op>) {
        let attempt = async {
            loop {
                match self.publisher.apply(demo::apply(PUBLISHER, ops.clone())).await {
                    Ok(_) => break,
                    // Nobody knows whether it happened. To write what is there changes nothing.
                    Err(status) if matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled) => {
                        self.retries += 1;
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                    Err(status) => panic!("{status}"),
                }
            }
        };
        wait::for_long("a bus that takes a write", attempt).await;
    }

    /// All objects of a kind on the bus: specs by name.
    pub(crate) async fn list(&mut self, kind: &str) -> BTreeMap<String, Vec<u8>> {
        let mut request = v1::ListRequest { kinds: vec![kind.to_owned()], ..v1::ListRequest::default() };
        let mut all = BTreeMap::new();
        loop {
            let page = self.bus.list(request.clone()).await.unwrap().into_inner();
            all.extend(page.objects.into_iter().map(|object| (object.name, object.spec.unwrap().value)));
            if page.next_page_token.is_empty() {
                return all;
            }
            request.page_token = page.next_page_token;
        }
    }

    /// Waits until an object has that text.
    pub(crate) async fn sees(&mut self, kind: &str, name: &str, text: &str) {
        let request = v1::GetRequest { kind: kind.to_owned(), namespace: String::new(), name: name.to_owned() };
        let (bus, wanted) = (&mut self.bus, spec(text));
        ask(&format!("{name} with {text}"), async || {
            let object = bus.get(request.clone()).await.ok()?.into_inner().object?;
            (object.spec?.value == wanted).then_some(())
        })
        .await;
    }

    /// The session of an agent, if it has one.
    pub(crate) async fn session(&mut self, agent: &str) -> Option<u64> {
        let request = v1::ListAgentsRequest { details: true, ..v1::ListAgentsRequest::default() };
        let agents = self.fleet.list_agents(request).await.unwrap().into_inner().agents;
        let found = agents.into_iter().find(|found| found.agent == agent)?;
        (found.state() == v1::AgentState::Connected).then_some(found.session)
    }

    fn key(&self, name: &str) -> v1::Key {
        v1::Key { kind: self.kind.clone(), namespace: String::new(), name: name.to_owned() }
    }
}
