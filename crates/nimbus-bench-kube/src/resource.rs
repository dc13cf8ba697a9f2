//! The objects that are listed, and the children that are made of them.

use std::{borrow::Cow, collections::BTreeMap};

use k8s_openapi::NamespaceResourceScope;
use kube_core::{ObjectMeta, Resource};
use serde::{Deserialize, Serialize};

/// What is listed; written by hand as `#[derive(CustomResource)]` would write it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Workload {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: WorkloadSpec,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WorkloadSpec {
    pub(crate) zone: String,
    pub(crate) replicas: u32,
    pub(crate) paused: bool,
    pub(crate) payload: String,
}

/// What is published for each [`Workload`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Placement {
    api_version: Cow<'static, str>,
    kind: Cow<'static, str>,
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: PlacementSpec,
}

/// What is written back for each [`Workload`], as a merge patch of its status.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Patch {
    status: WorkloadStatus,
}

/// The same as ours says.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkloadStatus {
    conditions: Vec<Condition>,
    observed_generation: Option<i64>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    r#type: &'static str,
    status: &'static str,
    reason: &'static str,
    message: &'static str,
    observed_generation: Option<i64>,
}

/// Both a part of the JSON and a message: each publisher takes what it needs.
#[derive(Clone, Serialize, Deserialize, prost::Message)]
pub(crate) struct PlacementSpec {
    #[prost(string, tag = "1")]
    zone: String,
    #[prost(uint32, tag = "2")]
    replicas: u32,
    #[prost(string, tag = "3")]
    payload: String,
}

/// The spec of a [`Workload`] as a message: what a controller of ours reacts to.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WorkloadMessage {
    #[prost(string, tag = "1")]
    pub(crate) zone: String,
    #[prost(uint32, tag = "2")]
    pub(crate) replicas: u32,
    #[prost(bool, tag = "3")]
    pub(crate) paused: bool,
    #[prost(string, tag = "4")]
    pub(crate) payload: String,
}

const ZONES: [&str; 4] = ["north", "east", "south", "west"];

// === impl Workload ===

impl Workload {
    /// The n-th object, with what every API server adds to its metadata and no more.
    pub(crate) fn new(number: u64, payload: u32) -> Self {
        let spec = WorkloadSpec::new(number, payload);
        Self {
            metadata: ObjectMeta {
                name: Some(format!("workload-{number:07}")),
                namespace: Some("default".to_owned()),
                uid: Some(format!("00000000-0000-4000-8000-{number:012x}")),
                resource_version: Some((1_000_000 + number).to_string()),
                generation: Some(1),
                labels: Some(BTreeMap::from([("zone".to_owned(), spec.zone.clone())])),
                ..ObjectMeta::default()
            },
            spec,
        }
    }

    /// The child that should exist, if any.
    pub(crate) fn placement(&self) -> Option<Placement> {
        let (Self { metadata, spec }, false) = (self, self.spec.paused) else { return None };
        Some(Placement {
            api_version: Cow::Borrowed("bench.nimbus.dev/v1"),
            kind: Cow::Borrowed("Placement"),
            metadata: ObjectMeta {
                name: Some(format!("{}-placement", metadata.name.as_deref()?)),
                namespace: metadata.namespace.clone(),
                labels: Some(BTreeMap::from([("zone".to_owned(), spec.zone.clone())])),
                owner_references: Some(vec![self.controller_owner_ref(&())?]),
                ..ObjectMeta::default()
            },
            spec: PlacementSpec {
                zone: spec.zone.clone(),
                replicas: spec.replicas,
                payload: spec.payload.to_ascii_uppercase(),
            },
        })
    }
}

impl Resource for Workload {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Workload".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "bench.nimbus.dev".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "workloads".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

// === impl Placement ===

impl Resource for Placement {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Placement".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "bench.nimbus.dev".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "placements".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

// === impl WorkloadSpec ===

impl WorkloadSpec {
    /// That of the n-th object.
    fn new(number: u64, payload: u32) -> Self {
        Self {
            zone: ZONES[number as usize % ZONES.len()].to_owned(),
            replicas: number as u32 % 10,
            paused: false,
            payload: "x".repeat(payload as usize),
        }
    }
}

// === impl WorkloadStatus ===

impl WorkloadStatus {
    /// It was dealt with.
    pub(crate) fn patch(observed_generation: Option<i64>) -> Patch {
        let (r#type, status, reason, message) = ("Ready", "True", "Reconciled", "");
        let conditions = vec![Condition { r#type, status, reason, message, observed_generation }];
        Patch { status: Self { conditions, observed_generation } }
    }
}

// === impl WorkloadMessage ===

impl WorkloadMessage {
    /// That of the n-th object.
    pub(crate) fn new(number: u64, payload: u32) -> Self {
        let WorkloadSpec { zone, replicas, paused, payload } = WorkloadSpec::new(number, payload);
        Self { zone, replicas, paused, payload }
    }

    /// The spec of the child that should exist, if any.
    pub(crate) fn placement(&self) -> Option<PlacementSpec> {
        (!self.paused).then(|| PlacementSpec {
            zone: self.zone.clone(),
            replicas: self.replicas,
            payload: self.payload.to_ascii_uppercase(),
        })
    }
}

impl prost::Name for WorkloadMessage {
    const NAME: &'static str = "Workload";
    const PACKAGE: &'static str = "bench.v1";
}

// === impl PlacementSpec ===

impl prost::Name for PlacementSpec {
    const NAME: &'static str = "Placement";
    const PACKAGE: &'static str = "bench.v1";
}
