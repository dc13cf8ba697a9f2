//! The fleet: every agent that the bus knows, what it says, and the calls of `Fleet` that ask about it.
//!
//! An agent is one entry, whatever the number of objects: two watermarks and the exceptions to them. Who has applied what is
//! computed from that when somebody asks.

mod activity;
mod advances;
mod agent;
mod events;
mod exception;
mod explain;
mod kept;
mod list;
mod order;
mod progress;
mod propagation;
mod registry;
mod report;
mod sampling;
mod shape;
mod statuses;
mod steps;
mod tally;
mod target;
mod times;
mod view;
mod wait;
mod watch;
mod watched;

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, pin::Pin, sync::Arc};

use nimbus_core::{AgentId, Kind, Selector};
use nimbus_wire::v1;
use tokio::time::Instant;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

pub(crate) use self::{
    agent::{Agent, Opening, Update},
    progress::Marks,
    registry::Fleet,
    report::Report,
    view::Viewer,
    watched::WatchedFleet,
};
use self::{exception::required_key, propagation::Survey, target::Target, wait::Wait, watch::Watch};
use crate::{fault, inner::Inner};

/// The calls of `Fleet`.
#[derive(Clone)]
pub(crate) struct FleetService(pub(crate) Arc<Inner>);

/// Answers that come one after the other.
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// A call that goes on, counted for as long as it does.
pub(crate) struct Slot(Arc<Inner>);

// === impl FleetService ===

#[tonic::async_trait]
impl v1::fleet_server::Fleet for FleetService {
    type WaitForStream = Answers<v1::WaitForResponse>;
    type WatchStatusStream = Answers<v1::WatchStatusResponse>;

    async fn list_agents(
        &self,
        request: Request<v1::ListAgentsRequest>,
    ) -> Result<Response<v1::ListAgentsResponse>, Status> {
        list::agents(&self.0, &request.into_inner(), Instant::now()).map(Response::new)
    }

    async fn get_propagation(
        &self,
        request: Request<v1::GetPropagationRequest>,
    ) -> Result<Response<v1::GetPropagationResponse>, Status> {
        let v1::GetPropagationRequest { target, selector, max_agents, count_lost } = request.into_inner();
        let target = Target::parse(target)?;
        let survey = Survey { selector: selector_of(&self.0, &selector)?, count_lost, max_agents };
        let propagation = Some(survey.of(&self.0, &target, Instant::now())?);
        Ok(Response::new(v1::GetPropagationResponse { propagation }))
    }

    async fn wait_for(&self, request: Request<v1::WaitForRequest>) -> Result<Response<Self::WaitForStream>, Status> {
        let wait = Wait::begin(self.0.clone(), request.into_inner())?;
        Ok(Response::new(Box::pin(steps::steps(wait, Wait::next))))
    }

    async fn watch_status(
        &self,
        request: Request<v1::WatchStatusRequest>,
    ) -> Result<Response<Self::WatchStatusStream>, Status> {
        let watch = Watch::begin(self.0.clone(), &request.into_inner())?;
        Ok(Response::new(Box::pin(steps::steps(watch, Watch::next))))
    }

    async fn explain(&self, request: Request<v1::ExplainRequest>) -> Result<Response<v1::ExplainResponse>, Status> {
        let request = request.into_inner();
        let agent = AgentId::new(&request.agent).map_err(|error| fault::field("agent", &error))?;
        let key = required_key(request.object.as_ref(), "object")?;
        Ok(Response::new(explain::explain(&self.0, &agent, &key, Instant::now())))
    }
}

/// A selector on the labels of agents.
fn selector_of(inner: &Inner, text: &str) -> Result<Selector, Status> {
    // As in filters: a term is some characters.
    inner
        .converter()
        .at_most("filter_terms", text.len() / 8, inner.config.limits.filter_terms)?;
    Selector::parse(text).map_err(|error| fault::field("selector", &error))
}

/// The kinds that a request is about; `None` if it names none.
fn kinds_of(inner: &Inner, kinds: &[String]) -> Result<Option<BTreeSet<Kind>>, Status> {
    inner
        .converter()
        .at_most("request_kinds", kinds.len(), inner.config.limits.request_kinds)?;
    let kinds: BTreeSet<Kind> = (kinds.iter().enumerate())
        .map(|(at, kind)| Kind::new(kind).map_err(|error| fault::field(&format!("kinds[{at}]"), &error)))
        .collect::<Result<_, _>>()?;
    Ok((!kinds.is_empty()).then_some(kinds))
}

/// Why a call that goes on must end now.
fn check_draining(inner: &Inner) -> Result<(), Status> {
    match inner.sessions.draining() {
        Some(wait) => Err(fault::later("the bus is shutting down", wait)),
        None => Ok(()),
    }
}

// === impl Slot ===

impl Slot {
    /// Takes a place among the calls that go on.
    fn take(inner: &Arc<Inner>) -> Result<Self, Status> {
        check_draining(inner)?;
        let used = inner.fleet.watch();
        let slot = Self(inner.clone());
        inner.converter().at_most("watches", used, inner.config.limits.watches)?;
        inner.metrics.set_used("watches", used);
        Ok(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let used = self.0.fleet.unwatch();
        self.0.metrics.set_used("watches", used);
    }
}
