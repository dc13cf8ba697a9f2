//! `ListAgents`: the agents that the bus knows, in pages.

use std::collections::BTreeSet;

use nimbus_core::{AgentId, Kind, Selector};
use nimbus_wire::v1::{self, AgentState};
use prost::Message as _;
use tokio::time::Instant;
use tonic::Status;

use crate::{
    fault,
    fleet::{
        agent::{Agent, Entry},
        kinds_of, selector_of,
        view::{Detail, Viewer},
    },
    inner::Inner,
};

/// What is listed.
struct Query {
    selector: Selector,
    agents: BTreeSet<AgentId>,
    states: Vec<AgentState>,
    kinds: Option<BTreeSet<Kind>>,
    behind: bool,
    detail: Detail,
    after: Option<AgentId>,
}

/// The agents that match: how many there are, and one page of them.
pub(crate) fn agents(
    inner: &Inner,
    request: &v1::ListAgentsRequest,
    now: Instant,
) -> Result<v1::ListAgentsResponse, Status> {
    let query = Query::parse(inner, request)?;
    let limits = &inner.config.limits;
    let max = match request.page_size as usize {
        0 => limits.page_objects,
        size => size.min(limits.page_objects),
    };
    inner.fleet.tick(now);
    let state = inner.store.state();
    let mut viewer = Viewer::new(&inner.fleet, &state, query.kinds.as_ref(), now);
    let mut answer = v1::ListAgentsResponse { epoch: state.epoch().0, revision: state.head().0, ..Default::default() };
    let mut bytes = 0;
    for agent in inner.fleet.agents().values() {
        let entry = agent.entry.lock();
        let (state, _) = entry.presence.state(now, inner.fleet.lost_after);
        if !query.matches(agent, &entry, state) || (query.behind && viewer.health(agent, &entry).in_sync) {
            continue;
        }
        match state {
            AgentState::Connected => answer.connected += 1,
            AgentState::Away => answer.away += 1,
            AgentState::Lost | AgentState::Unspecified => answer.lost += 1,
        }
        if query.after.as_ref().is_some_and(|after| agent.id <= *after) || !answer.next_page_token.is_empty() {
            continue;
        }
        if answer.agents.len() < max && bytes < limits.page_bytes {
            let info = viewer.show(agent, &entry, query.detail);
            bytes += info.encoded_len();
            answer.agents.push(info);
        } else if let Some(last) = answer.agents.last() {
            answer.next_page_token = last.agent.clone();
        }
    }
    Ok(answer)
}

// === impl Query ===

impl Query {
    fn parse(inner: &Inner, request: &v1::ListAgentsRequest) -> Result<Self, Status> {
        inner
            .converter()
            .at_most("named_agents", request.agents.len(), inner.config.limits.store.named_agents)?;
        let agents = (request.agents.iter().enumerate())
            .map(|(at, id)| AgentId::new(id).map_err(|error| fault::field(&format!("agents[{at}]"), &error)));
        let after = match &*request.page_token {
            "" => None,
            token => Some(
                AgentId::new(token)
                    .map_err(|_| fault::bad("page_token", "the next_page_token of the page before, unchanged"))?,
            ),
        };
        Ok(Self {
            selector: selector_of(inner, &request.selector)?,
            agents: agents.collect::<Result<_, _>>()?,
            states: request.states().collect(),
            kinds: kinds_of(inner, &request.kinds)?,
            behind: request.behind,
            detail: if request.details { Detail::Everything } else { Detail::Brief },
            after,
        })
    }

    fn matches(&self, agent: &Agent, entry: &Entry, state: AgentState) -> bool {
        (self.agents.is_empty() || self.agents.contains(&agent.id))
            && (self.states.is_empty() || self.states.contains(&state))
            && self.selector.matches(&entry.shape.labels)
    }
}
