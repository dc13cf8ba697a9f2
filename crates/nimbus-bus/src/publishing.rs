//! The calls of `Publisher`: transactions, syncs, descriptors.

use std::{collections::BTreeSet, sync::Arc};

use nimbus_core::Kind;
use nimbus_store::{Committed, Effect, Reason, Refused, SyncId, Txn};
use nimbus_wire::v1::{self, publisher_server::Publisher, sync_request};
use tokio::time::Instant;
use tokio_stream::StreamExt as _;
use tonic::{Request, Response, Status, Streaming};

use crate::{fault, identity::Identity, inner::Inner, schemas::SchemaError};

/// The calls of `Publisher`.
#[derive(Clone)]
pub(crate) struct Publishing(pub(crate) Arc<Inner>);

/// A sync that is given up when its stream breaks off.
struct OpenSync<'a> {
    inner: &'a Inner,
    id: Option<SyncId>,
}

// === impl Publishing ===

#[tonic::async_trait]
impl Publisher for Publishing {
    async fn apply(&self, request: Request<v1::ApplyRequest>) -> Result<Response<v1::ApplyResponse>, Status> {
        let identity = Identity::of(request.metadata());
        let request = request.into_inner();
        let publisher = identity.publisher(&request.publisher)?;
        let converter = self.0.converter();
        let steps = request
            .ops
            .into_iter()
            .enumerate()
            .map(|(at, op)| converter.step(op, &format!("ops[{at}]")));
        let steps: Vec<_> = steps.collect::<Result<_, _>>()?;
        self.0.check_publisher(&publisher)?;
        let txn = Txn { publisher, fence: request.fence, steps };
        let kinds = self.0.store.state().kinds().count();
        let now = Instant::now();
        let result = if request.dry_run { self.0.store.plan(&txn) } else { self.0.store.commit(&txn) };
        let committed = result.map_err(|refused| self.refuse(&refused, "ops"))?;
        self.0.metrics.transaction("committed");
        if !request.dry_run {
            self.note(&committed, now);
        }
        let state = self.0.store.state();
        let written = txn
            .steps
            .iter()
            .map(|step| step.op.key().kind())
            .filter(|kind| state.kind(kind).is_some());
        self.0.hear(&txn.publisher, written);
        self.0.metrics.set_used("objects", state.objects());
        if state.kinds().count() != kinds {
            self.0.metrics.set_used("kinds", state.kinds().count());
            self.0.update_readiness().await;
        }
        Ok(Response::new(v1::ApplyResponse {
            epoch: state.epoch().0,
            revision: committed.revision.0,
            outcomes: committed.outcomes.iter().map(outcome).collect(),
        }))
    }

    async fn sync(&self, request: Request<Streaming<v1::SyncRequest>>) -> Result<Response<v1::SyncResponse>, Status> {
        let identity = Identity::of(request.metadata());
        let mut steps = request.into_inner();
        let mut open = OpenSync { inner: &self.0, id: None };
        while let Some(step) = steps.next().await {
            match (step?.step, open.id.clone()) {
                (None, _) => return Err(fault::bad("step", "one of begin, items or end must be set")),
                (Some(sync_request::Step::Begin(begin)), None) => {
                    open.id = Some(self.begin(&identity, &begin)?);
                    self.0.update_readiness().await;
                }
                (Some(sync_request::Step::Begin(_)), Some(_)) => {
                    return Err(fault::bad("begin", "one begin for each stream, and it has been sent already"));
                }
                (Some(_), None) => return Err(fault::bad("begin", "a sync starts with begin")),
                (Some(sync_request::Step::Items(items)), Some(id)) => self.items(&id, items)?,
                (Some(sync_request::Step::End(_)), Some(id)) => {
                    let (revision, summary) =
                        self.0.store.end_sync(&id).map_err(|refused| self.refuse(&refused, "end"))?;
                    open.id = None;
                    if summary.deleted > 0 {
                        self.0.fleet.published(revision, Instant::now());
                    }
                    self.0.metrics.sync("ended");
                    self.0.metrics.set_used("objects", self.0.store.state().objects());
                    self.0.update_readiness().await;
                    return Ok(Response::new(v1::SyncResponse {
                        epoch: self.0.config.epoch.0,
                        revision: revision.0,
                        created: summary.created,
                        updated: summary.updated,
                        unchanged: summary.unchanged,
                        deleted: summary.deleted,
                    }));
                }
            }
        }
        Err(Status::aborted("the stream ended before the sync did: nothing was deleted (hint: send end)"))
    }

    async fn register_kinds(
        &self,
        request: Request<v1::RegisterKindsRequest>,
    ) -> Result<Response<v1::RegisterKindsResponse>, Status> {
        let v1::RegisterKindsRequest { descriptor_set, kinds } = request.into_inner();
        let kinds = self
            .0
            .schemas
            .register(&descriptor_set, &kinds)
            .map_err(|error| self.bad_schema(&error))?;
        tracing::info!(kinds = ?kinds, "kinds registered");
        Ok(Response::new(v1::RegisterKindsResponse { kinds }))
    }
}

impl Publishing {
    fn begin(&self, identity: &Identity, begin: &v1::SyncBegin) -> Result<SyncId, Status> {
        let publisher = identity.publisher(&begin.publisher)?;
        if begin.kinds.is_empty() {
            return Err(fault::bad("begin.kinds", "at least one kind: what is not named is deleted at the end"));
        }
        let kinds = begin
            .kinds
            .iter()
            .enumerate()
            .map(|(at, kind)| Kind::new(kind).map_err(|error| fault::field(&format!("begin.kinds[{at}]"), &error)));
        let kinds: BTreeSet<Kind> = kinds.collect::<Result<_, _>>()?;
        self.0.check_publisher(&publisher)?;
        let id = self.0.store.begin_sync(&publisher, begin.fence, kinds.clone());
        let id = id.map_err(|refused| self.refuse(&refused, "begin"))?;
        self.0.hear(&publisher, kinds.iter());
        Ok(id)
    }

    fn items(&self, id: &SyncId, items: v1::SyncItems) -> Result<(), Status> {
        let converter = self.0.converter();
        let drafts = items.objects.into_iter().enumerate();
        let drafts = drafts.map(|(at, object)| converter.draft(object, &format!("items.objects[{at}]")));
        let drafts: Vec<_> = drafts.collect::<Result<_, _>>()?;
        let now = Instant::now();
        let items = self.0.store.sync_items(id, drafts);
        let committed = items.map_err(|refused| self.refuse(&refused, "items.objects"))?;
        self.note(&committed, now);
        self.0.hear(id.publisher(), std::iter::empty());
        Ok(())
    }

    /// Takes note of when a transaction was published, if it changed anything.
    fn note(&self, committed: &Committed, now: Instant) {
        let changed = |outcome: &nimbus_store::Outcome| {
            matches!(outcome.effect, Effect::Created | Effect::Updated | Effect::Deleted)
        };
        if committed.outcomes.iter().any(changed) {
            self.0.fleet.published(committed.revision, now);
        }
    }

    fn refuse(&self, refused: &Refused, path: &str) -> Status {
        self.0.metrics.transaction("refused");
        if let Refused::Full { limit, .. } | Refused::Step { reason: Reason::TooLarge { limit, .. }, .. } = refused {
            self.0.metrics.refuse(limit);
        }
        fault::refused(refused, path)
    }

    fn bad_schema(&self, error: &SchemaError) -> Status {
        if let SchemaError::TooLarge { name, .. } = error {
            self.0.metrics.refuse(name);
            return fault::full(name, error.to_string());
        }
        fault::bad("descriptor_set", error.to_string())
    }
}

// === impl OpenSync ===

impl Drop for OpenSync<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.inner.metrics.sync("aborted");
            self.inner.store.abort_sync(&id);
        }
    }
}

fn outcome(outcome: &nimbus_store::Outcome) -> v1::Outcome {
    let result = match outcome.effect {
        Effect::Created => v1::Result::Created,
        Effect::Updated => v1::Result::Updated,
        Effect::Deleted => v1::Result::Deleted,
        Effect::Absent => v1::Result::Absent,
        _ => v1::Result::Unchanged,
    };
    v1::Outcome {
        result: result.into(),
        uid: outcome.uid.as_ref().map(ToString::to_string).unwrap_or_default(),
        generation: outcome.generation.0,
        revision: outcome.revision.0,
    }
}
