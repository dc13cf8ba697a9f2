//! The calls of `Bus` that are not streams of frames: get, list, reports.

use std::{ops::ControlFlow, sync::Arc};

use nimbus_core::{Kind, ObjectKey, Revision};
use nimbus_store::Record;
use nimbus_wire::v1::{self, bus_server::Bus};
use tokio::time::Instant;
use tokio_stream::StreamExt as _;
use tonic::{Request, Response, Status, Streaming};

use crate::{fault, fleet::Report, identity::Identity, inner::Inner, lists::PageToken};

/// The calls of `Bus` that are not streams of frames.
#[derive(Clone)]
pub(crate) struct Reading(pub(crate) Arc<Inner>);

// === impl Reading ===

#[tonic::async_trait]
impl Bus for Reading {
    type SubscribeStream = tokio_stream::Empty<Result<v1::Frame, Status>>;

    async fn get(&self, request: Request<v1::GetRequest>) -> Result<Response<v1::GetResponse>, Status> {
        let v1::GetRequest { kind, namespace, name } = request.into_inner();
        let kind = Kind::new(&kind).map_err(|error| fault::field("kind", &error))?;
        let key = ObjectKey::new(kind, &namespace, &name).map_err(|error| fault::field(error.what, &error))?;
        let state = self.0.store.state();
        let Some(record) = state.get(&key) else {
            self.check_kind(key.kind())?;
            return Err(Status::not_found(format!("{key} does not exist at revision {}", state.head())));
        };
        let object = Some(record.to_wire());
        Ok(Response::new(v1::GetResponse { object, epoch: state.epoch().0, revision: state.head().0 }))
    }

    async fn list(&self, request: Request<v1::ListRequest>) -> Result<Response<v1::ListResponse>, Status> {
        let identity = Identity::of(request.metadata());
        self.page(&identity, &request.into_inner()).map(Response::new)
    }

    async fn list_kinds(&self, _: Request<v1::ListKindsRequest>) -> Result<Response<v1::ListKindsResponse>, Status> {
        let state = self.0.store.state();
        let registered = self.0.schemas.kinds();
        let mut names: std::collections::BTreeSet<String> = registered.iter().cloned().collect();
        names.extend(state.kinds().map(|(kind, _)| kind.to_string()));
        let info = |kind: String| {
            let of = Kind::new(&kind).ok();
            let known = of.as_ref().and_then(|kind| state.kind(kind));
            v1::KindInfo {
                objects: known.map_or(0, |known| known.all().len() as u64),
                registered: self.0.schemas.is_registered(&kind),
                complete: of.as_ref().is_some_and(|kind| state.is_complete(kind)),
                publishers: self.0.ages(|other| Some(other) == of.as_ref()),
                kind,
            }
        };
        Ok(Response::new(v1::ListKindsResponse { kinds: names.into_iter().map(info).collect() }))
    }

    async fn subscribe(&self, _: Request<v1::SubscribeRequest>) -> Result<Response<Self::SubscribeStream>, Status> {
        // Frames are shared bytes, which generated code would encode again for each subscriber.
        Err(Status::internal("Subscribe is answered before it gets here"))
    }

    async fn report(
        &self,
        request: Request<Streaming<v1::ReportRequest>>,
    ) -> Result<Response<v1::ReportResponse>, Status> {
        let identity = Identity::of(request.metadata());
        let mut reports = request.into_inner();
        let mut answer = v1::ReportResponse::default();
        while let Some(report) = reports.next().await {
            answer = self.take(&identity, report?)?;
        }
        Ok(Response::new(answer))
    }

    async fn report_once(&self, request: Request<v1::ReportRequest>) -> Result<Response<v1::ReportResponse>, Status> {
        let identity = Identity::of(request.metadata());
        self.take(&identity, request.into_inner()).map(Response::new)
    }
}

impl Reading {
    fn take(&self, identity: &Identity, report: v1::ReportRequest) -> Result<v1::ReportResponse, Status> {
        let answer = self.try_take(identity, report);
        if answer.is_err() {
            self.0.metrics.reports_refused.inc();
        }
        answer
    }

    fn try_take(&self, identity: &Identity, report: v1::ReportRequest) -> Result<v1::ReportResponse, Status> {
        let id = report.session;
        // Before anything is made of them: none of these would be kept.
        self.0.fleet.check_exceptions(report.exceptions.len())?;
        let session = self.0.sessions.get(id).ok_or_else(|| {
            Status::not_found(format!("session {id:016x} is over or never was (hint: take it from Welcome)"))
        })?;
        let agent = session.agent.as_ref().map_or("", |agent| agent.as_str());
        identity.agent(agent)?;
        let rescope = match &report.rescope {
            None => None,
            Some(to) => {
                let (kinds, filter) = (&to.kinds, to.filter.as_ref());
                Some(self.0.converter().scope(identity, kinds, filter, agent, &to.agent_labels)?)
            }
        };
        let now = Instant::now();
        let head = self.0.store.state().head();
        let (answer, news) = session.report(Report::parse(report, now)?, rescope, head, &self.0.fleet, now)?;
        let metrics = &self.0.metrics;
        let published = |revision: Option<Revision>| self.0.fleet.publication(revision?);
        if let Some(published) = published(news.received) {
            metrics.received.observe((now - published.at).as_secs_f64());
        }
        if let Some(published) = published(news.applied) {
            metrics.observe_applied(published.kind.as_ref(), (now - published.at).as_secs_f64());
        }
        metrics.reports.inc();
        Ok(answer)
    }

    fn page(&self, identity: &Identity, request: &v1::ListRequest) -> Result<v1::ListResponse, Status> {
        let scope = self.0.converter().scope(
            identity,
            &request.kinds,
            request.filter.as_ref(),
            &request.agent,
            &request.agent_labels,
        )?;
        let token = PageToken::parse(&request.page_token, scope.hash())?;
        let state = self.0.lists.state(&self.0.store, token.as_ref())?;
        for kind in scope.kinds.iter().flat_map(|kinds| kinds.iter()) {
            self.check_kind(kind)?;
        }
        let incomplete = state.incomplete_kinds(&scope);
        if request.require_complete && !incomplete.is_empty() {
            let message = format!("{incomplete:?} are incomplete: their publishers have not finished a sync yet");
            return Err(Status::unavailable(message));
        }

        let limits = &self.0.config.limits;
        let max = match request.page_size as usize {
            0 => limits.page_objects,
            size => size.min(limits.page_objects),
        };
        let mut page = Page { objects: Vec::new(), bytes: 0, max, max_bytes: limits.page_bytes, last: None };
        let observer = scope.is_observer();
        let passes = |record: &Record| scope.admits(record, |filter| filter.passes(record, &*self.0.fields));
        let after = token.as_ref().map(|token| &token.after);
        let flow = (state.kinds().filter(|(kind, _)| scope.covers(kind)))
            .filter(|(kind, _)| after.is_none_or(|after| *kind >= after.kind()))
            .flat_map(|(_, kind)| kind.all().iter(after))
            .filter(|record| passes(record))
            .try_for_each(|record| page.add(record, observer));
        let next_page_token = match (flow, page.last) {
            (ControlFlow::Break(()), Some(last)) => {
                self.0.lists.keep(&state);
                PageToken::new(&state, scope.hash(), last).to_string()
            }
            _ => String::new(),
        };
        Ok(v1::ListResponse {
            objects: page.objects,
            epoch: state.epoch().0,
            revision: state.head().0,
            next_page_token,
            incomplete_kinds: incomplete.iter().map(ToString::to_string).collect(),
        })
    }

    /// A kind that nobody registered, published or announced is more likely a slip than a question.
    fn check_kind(&self, kind: &Kind) -> Result<(), Status> {
        if self.0.store.state().kind(kind).is_some() || self.0.schemas.is_registered(kind.as_str()) {
            return Ok(());
        }
        let near = self.0.schemas.nearest_kind(kind.as_str());
        let hint = near.map(|near| format!(" (hint: did you mean {near}?)")).unwrap_or_default();
        Err(Status::not_found(format!("kind {kind} is not known here{hint}")))
    }
}

/// A page under way.
struct Page {
    objects: Vec<v1::Object>,
    bytes: usize,
    max: usize,
    max_bytes: usize,
    last: Option<ObjectKey>,
}

// === impl Page ===

impl Page {
    /// Adds an object, unless the page is full.
    fn add(&mut self, record: &Record, observer: bool) -> ControlFlow<()> {
        if self.objects.len() >= self.max || self.bytes >= self.max_bytes {
            return ControlFlow::Break(());
        }
        let mut object = record.to_wire();
        if !observer {
            object.audience = None;
        }
        self.bytes += record.size();
        self.last = Some(record.to_key());
        self.objects.push(object);
        ControlFlow::Continue(())
    }
}
