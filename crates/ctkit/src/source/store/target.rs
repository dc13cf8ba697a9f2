//! The bus in this process, as a target and a table of leases.

use std::{
    collections::BTreeSet,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use nimbus_bus::OpenSync as BusSync;
use nimbus_core::{Epoch, Kind, ObjectKey, PublisherId};
use nimbus_store::{Committed, Guard, Held, LeaseError, Record, Txn};
use nimbus_wire::v1::{self, fleet_server::Fleet, watch_status_response::Event};
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Status};

use crate::{
    leases::{self, Acquired, Leases},
    source::{CommitError, Store},
    target::{OpenSync, SyncEnded, Target, TargetEvent},
};

/// A sync of the bus in this process. Dropping it gives it up: nothing is deleted.
#[derive(Debug)]
pub struct StoreSync {
    sync: BusSync,
    epoch: Epoch,
}

/// What agents report, once the bus has answered.
enum Watching {
    Asked(Pin<Box<dyn Future<Output = Result<Reports, Status>> + Send>>),
    Answered(Reports),
}

type Reports = Pin<Box<dyn Stream<Item = Result<v1::WatchStatusResponse, Status>> + Send>>;

// === impl Store ===

impl Target for Store {
    type Sync = StoreSync;

    async fn commit(&self, txn: Txn) -> Result<Committed, CommitError> {
        self.submit(&txn).await
    }

    async fn begin_sync(
        &self,
        publisher: PublisherId,
        fence: u64,
        kinds: BTreeSet<Kind>,
        leases: Vec<Guard>,
    ) -> Result<StoreSync, CommitError> {
        let epoch = self.bus().store().state().epoch();
        Ok(StoreSync { sync: self.bus().begin_sync(&publisher, fence, &kinds, leases).await?, epoch })
    }

    async fn published(
        &self,
        publisher: &PublisherId,
        kinds: &BTreeSet<Kind>,
    ) -> Result<Vec<Arc<Record>>, CommitError> {
        let state = self.bus().store().state();
        let records = kinds.iter().filter_map(|kind| state.kind(kind)).flat_map(|kind| kind.all().iter(None));
        Ok(records.filter(|record| record.manager() == publisher).cloned().collect())
    }

    async fn propagation(&self, key: &ObjectKey) -> Result<v1::Propagation, CommitError> {
        let target = v1::Target { target: Some(v1::target::Target::Object(key.to_wire())) };
        let request = v1::GetPropagationRequest { target: Some(target), ..v1::GetPropagationRequest::default() };
        let answer = self.bus().fleet_service().get_propagation(Request::new(request)).await;
        answer
            .map_err(|status| unavailable(&status))
            .map(|answer| answer.into_inner().propagation.unwrap_or_default())
    }

    fn reports(&self, kinds: &BTreeSet<Kind>) -> impl Stream<Item = TargetEvent> + Send + 'static {
        let request = v1::WatchStatusRequest {
            kinds: kinds.iter().map(ToString::to_string).collect(),
            ..v1::WatchStatusRequest::default()
        };
        let (fleet, epoch) = (self.bus().fleet_service(), self.bus().store().state().epoch());
        let watch = async move {
            let reports = fleet.watch_status(Request::new(request)).await?.into_inner();
            Ok(Box::pin(reports) as Reports)
        };
        let events = Watching::Asked(Box::pin(watch)).filter_map(move |event| match event.event? {
            Event::Report(report) => Some(TargetEvent::Report(Box::new(report))),
            Event::Forgotten(agent) => Some(TargetEvent::Forgotten(agent)),
            Event::CaughtUp(_) => Some(TargetEvent::CaughtUp),
            // All agents follow, as after the beginning.
            Event::Restarted(_) => Some(TargetEvent::Connected(epoch)),
        });
        tokio_stream::once(TargetEvent::Connected(epoch)).chain(events)
    }
}

impl Leases for Store {
    async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Acquired, CommitError> {
        let acquired = self.bus().acquire(name, holder, ttl).await.map_err(|error| refused(&error))?;
        Ok(Acquired { granted: acquired.granted, lease: held(acquired.lease) })
    }

    async fn renew(&self, held: &[Guard]) -> Result<Vec<Arc<str>>, CommitError> {
        Ok(self.bus().renew(held))
    }

    async fn release(&self, held: &[Guard]) -> Result<(), CommitError> {
        self.bus().release(held);
        Ok(())
    }

    async fn list(&self, prefix: &str) -> Result<Vec<leases::Held>, CommitError> {
        let leases = self.bus().leases(prefix).await.map_err(|error| refused(&error))?;
        Ok(leases.into_iter().map(held).collect())
    }
}

// === impl StoreSync ===

impl OpenSync for StoreSync {
    async fn keep(&mut self, keys: Vec<ObjectKey>) -> Result<(), CommitError> {
        Ok(self.sync.keep(keys)?)
    }

    async fn end(self) -> Result<SyncEnded, CommitError> {
        let (revision, summary) = self.sync.end().await?;
        Ok(SyncEnded { epoch: Some(self.epoch), revision, summary })
    }
}

// === impl Watching ===

impl Stream for Watching {
    type Item = v1::WatchStatusResponse;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match &mut *self {
                Self::Asked(answer) => match ready!(answer.as_mut().poll(cx)) {
                    Ok(reports) => *self = Self::Answered(reports),
                    Err(status) => {
                        tracing::warn!(%status, "cannot watch agents");
                        return Poll::Ready(None);
                    }
                },
                Self::Answered(reports) => {
                    // In one process, it ends only with the bus.
                    return Poll::Ready(ready!(reports.as_mut().poll_next(cx)).and_then(Result::ok));
                }
            }
        }
    }
}

fn held(held: Held) -> leases::Held {
    leases::Held { name: held.name, holder: held.holder, token: held.token, expires_in: held.expires_in }
}

fn refused(error: &LeaseError) -> CommitError {
    match error {
        LeaseError::Full { .. } | LeaseError::Lost(_) => CommitError::Unavailable(error.to_string()),
        _ => CommitError::Invalid { key: None, message: error.to_string() },
    }
}

fn unavailable(status: &Status) -> CommitError {
    CommitError::Unavailable(status.message().to_owned())
}
