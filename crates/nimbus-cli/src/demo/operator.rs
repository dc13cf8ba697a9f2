//! What an operator does and asks: the same calls as with grpcurl, at the same address.

use std::time::Duration;

use ctkit::Spec as _;
use nimbus_wire::v1::{
    self, bus_client::BusClient, fleet_client::FleetClient, publisher_client::PublisherClient, target::Target,
};
use prost::Message as _;
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};

use crate::demo::kinds::{NetworkPolicy, NetworkPolicyStatus, POLICY, RULES};

/// An operator with a connection to the bus. Calls that fail say why, for people.
#[derive(Debug, Clone)]
pub(crate) struct Operator(Channel);

/// A policy as somebody writes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Policy {
    pub(crate) name: String,
    pub(crate) spec: NetworkPolicy,
}

/// Where the bus stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) epoch: u64,
    pub(crate) revision: u64,
}

/// How many agents there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Census {
    pub(crate) connected: u32,
    pub(crate) away: u32,
    pub(crate) lost: u32,
    /// Of all of them, those that are not in sync.
    pub(crate) behind: u32,
}

/// Who writes the policies.
const PUBLISHER: &str = "demo-operator";

/// A bus that is there answers within a fraction of this.
const DEADLINE: Duration = Duration::from_secs(5);

/// No agent has this name.
const NOBODY: &str = "-";

/// All rules of the demo fit on a few pages.
const PAGE: u32 = 500;

// === impl Operator ===

impl Operator {
    /// An operator of the bus at that address. Connects when it has to.
    pub(crate) fn at(url: &str) -> Result<Self, String> {
        let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|error| format!("{url}: {error}"))?;
        Ok(Self(endpoint.timeout(DEADLINE).connect_timeout(DEADLINE).connect_lazy()))
    }

    /// Writes policies and deletes others, in one transaction; gives its revision.
    pub(crate) async fn change(&self, policies: &[Policy], deleted: &[&str]) -> Result<u64, String> {
        let upsert = |policy: &Policy| {
            let object = v1::Object { name: policy.name.clone(), spec: Some(policy.spec.pack()), ..Default::default() };
            v1::op::Op::Upsert(object)
        };
        let upserts = policies.iter().map(upsert);
        let deletes = deleted.iter().map(|name| v1::op::Op::Delete(key(POLICY, name)));
        let ops = upserts.chain(deletes).map(|op| v1::Op { op: Some(op), ..v1::Op::default() }).collect();
        let request = v1::ApplyRequest { publisher: PUBLISHER.to_owned(), ops, ..v1::ApplyRequest::default() };
        let answer = PublisherClient::new(self.0.clone())
            .apply(request)
            .await
            .map_err(|status| said(&status))?;
        Ok(answer.into_inner().revision)
    }

    /// A policy, and what its controller says of it.
    pub(crate) async fn policy(&self, name: &str) -> Result<(v1::Object, v1::Standing), String> {
        let request = v1::GetRequest { kind: POLICY.to_owned(), name: name.to_owned(), ..v1::GetRequest::default() };
        let answer = BusClient::new(self.0.clone())
            .get(request)
            .await
            .map_err(|status| said(&status))?
            .into_inner();
        let object = answer.object.unwrap_or_default();
        let standing = standing(&object)?;
        Ok((object, standing))
    }

    /// Waits no longer than the reactor: an error says how far it is.
    pub(crate) async fn reconciled(&self, name: &str) -> Result<v1::Object, String> {
        let (object, standing) = self.policy(name).await?;
        let ready = standing.conditions.iter().find(|condition| condition.r#type == "Ready");
        match ready.filter(|ready| ready.generation == object.generation) {
            Some(ready) if ready.state() == v1::ConditionState::True => Ok(object),
            Some(ready) => Err(format!("{name}: {}: {}", ready.code, ready.message)),
            None => Err(format!("{name}: the controller has not dealt with generation {}", object.generation)),
        }
    }

    /// How far each policy has come, as its controller says in its status.
    pub(crate) async fn statuses(&self) -> Result<Vec<(String, NetworkPolicyStatus)>, String> {
        let read = |object: v1::Object| {
            let detail = standing(&object)?.detail.map(|any| NetworkPolicyStatus::decode(&*any.value));
            let status = detail.transpose().map_err(|error| format!("{}: {error}", object.name))?;
            Ok((object.name, status.unwrap_or_default()))
        };
        self.list(POLICY).await?.into_iter().map(read).collect()
    }

    /// Everything that agents get.
    pub(crate) async fn rules(&self) -> Result<Vec<v1::Object>, String> {
        self.list(RULES).await
    }

    /// What agents get of one policy.
    pub(crate) async fn rules_of(&self, policy: &str) -> Result<Vec<v1::Object>, String> {
        let is_owner = |object: &v1::Object| object.owner.as_ref().is_some_and(|owner| owner.name == policy);
        let mut rules = self.rules().await?;
        rules.retain(is_owner);
        Ok(rules)
    }

    /// How far a transaction has come.
    pub(crate) async fn propagation(&self, revision: u64) -> Result<v1::Propagation, String> {
        let target = Some(v1::Target { target: Some(Target::Revision(revision)) });
        let request = v1::GetPropagationRequest { target, ..v1::GetPropagationRequest::default() };
        let answer = self.fleet().get_propagation(request).await.map_err(|status| said(&status))?;
        Ok(answer.into_inner().propagation.unwrap_or_default())
    }

    /// Why an agent has, or has not, applied some rules.
    pub(crate) async fn explain(&self, agent: &str, rules: &str) -> Result<v1::ExplainResponse, String> {
        let request = v1::ExplainRequest { agent: agent.to_owned(), object: Some(key(RULES, rules)) };
        Ok(self.fleet().explain(request).await.map_err(|status| said(&status))?.into_inner())
    }

    /// What the bus knows of one agent.
    pub(crate) async fn agent(&self, id: &str) -> Result<v1::AgentInfo, String> {
        let request = v1::ListAgentsRequest { agents: vec![id.to_owned()], ..v1::ListAgentsRequest::default() };
        let found = self
            .fleet()
            .list_agents(request)
            .await
            .map_err(|status| said(&status))?
            .into_inner()
            .agents
            .pop();
        found.ok_or_else(|| format!("the bus knows no agent {id}"))
    }

    /// How many agents there are, and how many are not in sync.
    pub(crate) async fn census(&self) -> Result<Census, String> {
        let count = async |behind| {
            let request = v1::ListAgentsRequest { behind, page_size: 1, ..v1::ListAgentsRequest::default() };
            self.fleet()
                .list_agents(request)
                .await
                .map_err(|status| said(&status))
                .map(tonic::Response::into_inner)
        };
        let (all, behind) = (count(false).await?, count(true).await?);
        let behind = behind.connected + behind.away + behind.lost;
        Ok(Census { connected: all.connected, away: all.away, lost: all.lost, behind })
    }

    /// Where the bus stands.
    pub(crate) async fn head(&self) -> Result<Head, String> {
        let request = v1::ListAgentsRequest { agents: vec![NOBODY.to_owned()], ..v1::ListAgentsRequest::default() };
        let answer = self.fleet().list_agents(request).await.map_err(|status| said(&status))?.into_inner();
        Ok(Head { epoch: answer.epoch, revision: answer.revision })
    }

    fn fleet(&self) -> FleetClient<Channel> {
        FleetClient::new(self.0.clone())
    }

    async fn list(&self, kind: &str) -> Result<Vec<v1::Object>, String> {
        let (mut all, mut page_token) = (Vec::new(), String::new());
        loop {
            let kinds = vec![kind.to_owned()];
            let request = v1::ListRequest { kinds, page_size: PAGE, page_token, ..v1::ListRequest::default() };
            let page = BusClient::new(self.0.clone())
                .list(request)
                .await
                .map_err(|status| said(&status))?
                .into_inner();
            all.extend(page.objects);
            if page.next_page_token.is_empty() {
                return Ok(all);
            }
            page_token = page.next_page_token;
        }
    }
}

// === impl Policy ===

impl Policy {
    /// A policy for some zones.
    pub(crate) fn new(name: &str, zones: &[&str], rules: &[&str]) -> Self {
        let strings = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        Self { name: name.to_owned(), spec: NetworkPolicy { zones: strings(zones), rules: strings(rules) } }
    }
}

fn key(kind: &str, name: &str) -> v1::Key {
    v1::Key { kind: kind.to_owned(), namespace: String::new(), name: name.to_owned() }
}

fn standing(object: &v1::Object) -> Result<v1::Standing, String> {
    let Some(status) = &object.status else { return Ok(v1::Standing::default()) };
    v1::Standing::decode(&*status.value).map_err(|error| format!("the status of {}: {error}", object.name))
}

fn said(status: &Status) -> String {
    format!("the bus does not answer: {}", status.message())
}
