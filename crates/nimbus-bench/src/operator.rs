//! The operator who asks the bus how far things are.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, bail, ensure};
use nimbus_wire::v1::{self, target, wait_for_response::Outcome};

use crate::{client::Connection, objects::KIND};

/// The operator who asks the bus how far things are.
#[derive(Debug)]
pub(crate) struct Operator(Connection);

/// Agents on one page of a list.
const PAGE: u32 = 1_000;

// === impl Operator ===

impl Operator {
    pub(crate) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        Connection::open(address).await.context("the operator cannot connect").map(Self)
    }

    /// Waits until exactly as many agents have applied everything up to `revision`, and nothing has failed.
    pub(crate) async fn wait_for(
        &self,
        revision: u64,
        agents: u64,
        patience: Duration,
    ) -> anyhow::Result<v1::Propagation> {
        let request = v1::WaitForRequest {
            target: Some(transaction(revision)),
            percent: 100.0,
            min_agents: u32::try_from(agents)?,
            timeout_ms: u64::try_from(patience.as_millis())?,
            ..v1::WaitForRequest::default()
        };
        let mut answers = self.0.fleet().wait_for(request).await.context("cannot wait")?.into_inner();
        while let Some(answer) = answers.message().await? {
            match answer.outcome() {
                Outcome::Waiting => {}
                Outcome::Done => {
                    let propagation = answer.propagation.context("it is done, but how is not said")?;
                    let counted = u64::from(propagation.agents);
                    ensure!(counted == agents, "{agents} agents are there, the bus counts {counted}");
                    return Ok(propagation);
                }
                outcome => bail!("revision {revision}: {}: {}", outcome.as_str_name(), answer.message),
            }
        }
        bail!("the bus stopped to wait for revision {revision}")
    }

    /// How far an object or a transaction is.
    pub(crate) async fn propagation(&self, target: v1::Target) -> anyhow::Result<v1::Propagation> {
        let request = v1::GetPropagationRequest { target: Some(target), ..v1::GetPropagationRequest::default() };
        let response = self.0.fleet().get_propagation(request).await.context("cannot ask for the propagation")?;
        response.into_inner().propagation.context("an answer without a propagation")
    }

    /// All agents, page by page, and the number of pages.
    pub(crate) async fn agents(&self) -> anyhow::Result<(Vec<v1::AgentInfo>, u64)> {
        let mut request = v1::ListAgentsRequest { page_size: PAGE, ..v1::ListAgentsRequest::default() };
        let (mut agents, mut pages) = (Vec::new(), 0);
        loop {
            let page = self
                .0
                .fleet()
                .list_agents(request.clone())
                .await
                .context("cannot list agents")?
                .into_inner();
            agents.extend(page.agents);
            pages += 1;
            if page.next_page_token.is_empty() {
                return Ok((agents, pages));
            }
            request.page_token = page.next_page_token;
        }
    }
}

/// An object of the kind that is published here.
pub(crate) fn object(name: String) -> v1::Target {
    v1::Target { target: Some(target::Target::Object(key(name))) }
}

/// Everything up to a revision.
pub(crate) fn transaction(revision: u64) -> v1::Target {
    v1::Target { target: Some(target::Target::Revision(revision)) }
}

pub(crate) fn key(name: String) -> v1::Key {
    v1::Key { kind: KIND.to_owned(), name, ..v1::Key::default() }
}
