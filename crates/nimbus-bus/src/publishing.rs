//! The calls of `Publisher`: transactions, syncs, descriptors.

use std::{collections::BTreeSet, sync::Arc};

use nimbus_core::{
    Kind, ObjectKey,
    planted::{self, Bug},
};
use nimbus_store::{Effect, Txn};
use nimbus_wire::v1::{self, publisher_server::Publisher, sync_request};
use tokio_stream::StreamExt as _;
use tonic::{Request, Response, Status, Streaming};

use crate::{fault, identity::Identity, inner::Inner, schemas::SchemaError, writing::OpenSync};

/// The calls of `Publisher`.
#[derive(Clone)]
pub(crate) struct Publishing(pub(crate) Arc<Inner>);

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
        let leases = self.0.guards(&request.leases)?;
        let txn = Txn { publisher, fence: request.fence, leases, steps };
        let result = if request.dry_run { self.0.plan(&txn) } else { self.0.submit(&txn).await };
        let committed = result.map_err(|refused| fault::refused(&refused, "ops"))?;
        self.0.readiness.refresh(&self.0).await;
        Ok(Response::new(v1::ApplyResponse {
            epoch: self.0.store.state().epoch().0,
            revision: committed.revision.0,
            outcomes: committed.outcomes.iter().map(outcome).collect(),
        }))
    }

    async fn sync(&self, request: Request<Streaming<v1::SyncRequest>>) -> Result<Response<v1::SyncResponse>, Status> {
        let identity = Identity::of(request.metadata());
        let mut steps = request.into_inner();
        // A stream that breaks off drops it, and so gives it up.
        let mut open: Option<OpenSync> = None;
        while let Some(step) = steps.next().await {
            match (step?.step, open.take()) {
                (None, _) => return Err(fault::bad("step", "one of begin, items, keep or end must be set")),
                (Some(sync_request::Step::Begin(begin)), None) => {
                    open = Some(self.begin(&identity, &begin).await?);
                    self.0.readiness.refresh(&self.0).await;
                }
                (Some(sync_request::Step::Begin(_)), Some(_)) => {
                    return Err(fault::bad("begin", "one begin for each stream, and it has been sent already"));
                }
                (Some(_), None) => return Err(fault::bad("begin", "a sync starts with begin")),
                (Some(sync_request::Step::Items(items)), Some(mut sync)) => {
                    self.items(&mut sync, items).await?;
                    open = Some(sync);
                }
                (Some(sync_request::Step::Keep(keep)), Some(mut sync)) => {
                    Self::keep(&mut sync, &keep)?;
                    open = Some(sync);
                }
                (Some(sync_request::Step::End(_)), Some(sync)) => {
                    let (revision, summary) = sync.end().await.map_err(|refused| fault::refused(&refused, "end"))?;
                    self.0.readiness.refresh(&self.0).await;
                    return Ok(Response::new(v1::SyncResponse {
                        epoch: self.0.store.state().epoch().0,
                        revision: revision.0,
                        created: summary.created,
                        updated: summary.updated,
                        unchanged: summary.unchanged,
                        deleted: summary.deleted,
                    }));
                }
            }
        }
        if let Some(sync) = open.filter(|_| planted::is(Bug::SweepUnfinished)) {
            drop(sync.end().await);
        }
        Err(Status::aborted("the stream ended before the sync did: nothing was deleted (hint: send end)"))
    }

    async fn register_kinds(
        &self,
        request: Request<v1::RegisterKindsRequest>,
    ) -> Result<Response<v1::RegisterKindsResponse>, Status> {
        let request = request.into_inner();
        let registered = self.0.schemas.register(&request.descriptor_set, &request.kinds);
        let kinds = registered.map_err(|error| self.bad_schema(&error))?;
        self.0.remember(&kinds, &request).await.map_err(|lost| fault::lost(&lost))?;
        tracing::info!(kinds = ?kinds, "kinds registered");
        Ok(Response::new(v1::RegisterKindsResponse { kinds }))
    }
}

impl Publishing {
    async fn begin(&self, identity: &Identity, begin: &v1::SyncBegin) -> Result<OpenSync, Status> {
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
        let leases = self.0.guards(&begin.leases)?;
        let begun = self.0.begin_sync(&publisher, begin.fence, &kinds, leases).await;
        begun.map_err(|refused| fault::refused(&refused, "begin"))
    }

    async fn items(&self, sync: &mut OpenSync, items: v1::SyncItems) -> Result<(), Status> {
        let converter = self.0.converter();
        let drafts = items.objects.into_iter().enumerate();
        let drafts = drafts.map(|(at, object)| converter.draft(object, &format!("items.objects[{at}]")));
        let drafts: Vec<_> = drafts.collect::<Result<_, _>>()?;
        let done = sync.complete_items(drafts).await;
        done.map_err(|refused| fault::refused(&refused, "items.objects"))?;
        Ok(())
    }

    fn keep(sync: &mut OpenSync, keep: &v1::SyncKeep) -> Result<(), Status> {
        let key =
            |(at, key)| ObjectKey::try_from(key).map_err(|error| fault::field(&format!("keep.keys[{at}]"), &error));
        let keys: Vec<ObjectKey> = keep.keys.iter().enumerate().map(key).collect::<Result<_, _>>()?;
        sync.keep(keys).map_err(|refused| fault::refused(&refused, "keep.keys"))
    }

    fn bad_schema(&self, error: &SchemaError) -> Status {
        if let SchemaError::TooLarge { name, .. } = error {
            self.0.metrics.refuse(name);
            return fault::full(name, error.to_string());
        }
        fault::bad("descriptor_set", error.to_string())
    }
}

fn outcome(outcome: &nimbus_store::Outcome) -> v1::Outcome {
    let result = match outcome.effect {
        Effect::Created => v1::Result::Created,
        Effect::Updated => v1::Result::Updated,
        Effect::Deleted => v1::Result::Deleted,
        Effect::Absent => v1::Result::Absent,
        Effect::Deleting => v1::Result::Deleting,
        _ => v1::Result::Unchanged,
    };
    v1::Outcome {
        result: result.into(),
        uid: outcome.uid.as_ref().map(ToString::to_string).unwrap_or_default(),
        generation: outcome.generation.0,
        revision: outcome.revision.0,
    }
}
