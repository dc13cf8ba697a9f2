//! Where the children go: a stand-in for the server, in this process.

use std::{collections::HashMap, sync::Arc};

use anyhow::ensure;
use bytes::Bytes;
use kube_client::{
    Api, Client,
    api::{Patch, PatchParams},
};
use kube_core::ObjectMeta;
use nimbus_core::{Annotations, Audience, Epoch, Invalid, Kind, Labels, ObjectKey, PublisherId, Spec as _};
use nimbus_store::{Collection, Config, Draft, Op, Refused, Txn};
use nimbus_wire::v1;
use parking_lot::Mutex;
use prost::Message as _;
use tokio::time::Instant;

use crate::{
    Arguments, Publish,
    api_server::ApiServer,
    progress::Progress,
    resource::{Placement, PlacementSpec, WorkloadStatus},
};

/// Takes children, and statuses.
pub(crate) struct Publisher {
    target: Target,
    progress: Arc<Progress>,
    /// Whether statuses are written.
    status: bool,
}

enum Target {
    Client(Client, ApiServer),
    Map(Mutex<HashMap<String, Bytes>>),
    Collection { collection: Collection, kind: Kind, publisher: PublisherId },
}

/// Why a child was not published.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PublishError {
    #[error("cannot encode a child or a status")]
    Encode(#[from] serde_json::Error),
    #[error("cannot apply a child")]
    Apply(#[from] kube_client::Error),
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error(transparent)]
    Refused(#[from] Refused),
}

// === impl Publisher ===

impl Publisher {
    pub(crate) fn new(arguments: &Arguments, progress: Arc<Progress>) -> anyhow::Result<Self> {
        let target = match arguments.publish {
            Publish::Client => {
                let server = ApiServer::new(arguments.objects as usize);
                Target::Client(Client::new(server.clone(), "default"), server)
            }
            Publish::Map => Target::Map(Mutex::new(HashMap::with_capacity(arguments.objects as usize))),
            Publish::Collection => Target::Collection {
                collection: Collection::new(Config::new(Epoch(1))),
                kind: PlacementSpec::kind(),
                publisher: PublisherId::new("bench")?,
            },
        };
        Ok(Self { target, progress, status: arguments.status })
    }

    /// Publishes a child.
    pub(crate) async fn publish(&self, child: Placement) -> Result<(), PublishError> {
        match &self.target {
            Target::Client(client, _) => {
                let namespace = child.metadata.namespace.as_deref().unwrap_or_default();
                let placements = Api::<Placement>::namespaced(client.clone(), namespace);
                let name = child.metadata.name.as_deref().unwrap_or_default();
                placements.patch(name, &PatchParams::apply("bench"), &Patch::Apply(&child)).await?;
            }
            Target::Map(map) => {
                let encoded = serde_json::to_vec(&child)?;
                map.lock().insert(child.metadata.name.unwrap_or_default(), encoded.into());
            }
            Target::Collection { collection, kind, publisher } => {
                let steps = vec![Op::Upsert(draft(kind, child)?).into()];
                collection.commit(&Txn { publisher: publisher.clone(), fence: 0, leases: Vec::new(), steps })?;
            }
        }
        self.progress.wrote(1);
        Ok(())
    }

    /// Encodes the status of an object that was dealt with, if that is wanted, and counts it: the source keeps none.
    pub(crate) fn report(&self, generation: Option<i64>) -> Result<(), PublishError> {
        if self.status {
            let encoded = serde_json::to_vec(&WorkloadStatus::patch(generation))?;
            std::hint::black_box(encoded);
            self.progress.wrote(1);
        }
        Ok(())
    }

    /// Resolves with the time at which the last write was done.
    pub(crate) async fn complete(&self) -> Instant {
        self.progress.complete().await
    }

    /// Checks that every child is there once.
    pub(crate) fn check(&self, children: u64) -> anyhow::Result<()> {
        let held = match &self.target {
            Target::Client(_, server) => server.len(),
            Target::Map(map) => map.lock().len(),
            Target::Collection { collection, kind, .. } => {
                collection.state().kind(kind).map_or(0, |kind| kind.all().len())
            }
        };
        ensure!(held as u64 == children, "{held} children were published, not {children}");
        Ok(())
    }
}

/// The same child as a publisher of nimbus would write it.
fn draft(kind: &Kind, child: Placement) -> Result<Draft, Invalid> {
    let ObjectMeta { name, namespace, labels, owner_references, .. } = child.metadata;
    let namespace = namespace.unwrap_or_default();
    let owner = owner_references.into_iter().flatten().next();
    let owner = owner.map(|owner| v1::Owner {
        kind: owner.kind,
        namespace: namespace.clone(),
        name: owner.name,
        uid: owner.uid,
    });
    Ok(Draft {
        key: ObjectKey::new(kind.clone(), &namespace, &name.unwrap_or_default())?,
        uid: None,
        generation: None,
        labels: Labels::new(&labels.unwrap_or_default())?,
        refs: [].into(),
        owner: owner.map(Into::into),
        annotations: Annotations::default(),
        audience: Audience::Everyone,
        spec: child.spec.pack().encode_to_vec().into(),
    })
}
