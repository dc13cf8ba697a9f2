//! Requests into the words of the store, with errors that name the field.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use nimbus_core::{
    Annotations, Audience, Finalizers, Generation, Invalid, Kind, Labels, ObjectKey, Owner, Reference, Revision, Uid,
};
use nimbus_store::{Draft, Filter, FinalizersDraft, Op, Precondition, Reason, Scope, StatusDraft, Step, Viewer};
use nimbus_wire::v1;
use prost::Message as _;
use tonic::Status;

use crate::{config::Limits, fault, identity::Identity, metrics::Metrics, schemas::Schemas};

/// Turns requests into the words of the store.
pub(crate) struct Converter<'a> {
    pub(crate) schemas: &'a Schemas,
    pub(crate) limits: &'a Limits,
    pub(crate) metrics: &'a Metrics,
}

type Any = prost_types::Any;

// === impl Converter ===

impl Converter<'_> {
    pub(crate) fn step(&self, op: v1::Op, path: &str) -> Result<Step, Status> {
        let precondition = precondition(op.precondition, path)?;
        let take_over = op.take_over;
        let op = match op.op {
            None => return Err(fault::bad(path, "one of upsert, delete, status or finalizers must be set")),
            Some(v1::op::Op::Upsert(object)) => Op::Upsert(self.draft(object, &format!("{path}.upsert"))?),
            Some(v1::op::Op::Delete(key)) => {
                Op::Delete(ObjectKey::try_from(&key).map_err(|error| fault::field(&format!("{path}.delete"), &error))?)
            }
            Some(v1::op::Op::Status(write)) => Op::Status(self.status(write, &format!("{path}.status"))?),
            Some(v1::op::Op::Finalizers(write)) => Op::Finalizers(finalizers(&write, &format!("{path}.finalizers"))?),
        };
        Ok(Step { op, precondition, take_over })
    }

    pub(crate) fn draft(&self, object: v1::Object, path: &str) -> Result<Draft, Status> {
        let at = |field: &str| format!("{path}.{field}");
        let spec = object
            .spec
            .ok_or_else(|| fault::bad(&at("spec"), "a spec, packed in google.protobuf.Any"))?;
        if object.status.is_some() || object.observed_generation != 0 {
            return Err(fault::bad(&at("status"), "no status: it has other writers (hint: use an op with status)"));
        }
        if !object.finalizers.is_empty() || object.deleting {
            let expected = "no finalizers and no deletion (hint: use an op with finalizers, or delete)";
            return Err(fault::bad(&at("finalizers"), expected));
        }
        let kind = kind_of(&spec).map_err(|expected| fault::bad(&at("spec"), expected))?;
        if !object.kind.is_empty() && object.kind != kind {
            let expected = format!("the spec is a {kind}, but kind says {}", object.kind);
            return Err(fault::bad(&at("kind"), expected));
        }
        let key = Kind::new(&kind).and_then(|kind| ObjectKey::new(kind, &object.namespace, &object.name));
        let key = key.map_err(|error| fault::field(&at(error.what), &error))?;
        self.check_spec(&spec, &kind, &at("spec"))?;
        let uid = match &*object.uid {
            "" => None,
            uid => Some(Uid::new(uid).map_err(|error| fault::field(&at("uid"), &error))?),
        };
        let stated = references(&object.refs, path)?;
        let declared = self.schemas.declared();
        let refs = if declared.covers(&kind) {
            let max = self.limits.store.refs;
            let completed = declared.complete(&key, &spec.value, stated, max);
            completed.map_err(|flaw| {
                let reason = Reason::from(flaw);
                reason.limit().into_iter().for_each(|limit| self.metrics.refuse(limit));
                fault::in_spec(&at("spec"), &reason)
            })?
        } else {
            stated
        };
        Ok(Draft {
            key,
            uid,
            generation: (object.generation != 0).then_some(Generation(object.generation)),
            labels: Labels::new(&object.labels).map_err(|error| fault::field(&at("labels"), &error))?,
            refs,
            owner: object.owner.map(Owner::from),
            annotations: Annotations::new(object.annotations)
                .map_err(|error| fault::field(&at("annotations"), &error))?,
            audience: Audience::from_wire(object.audience.as_ref())
                .map_err(|error| fault::field(&at("audience"), &error))?,
            spec: encode(&spec),
        })
    }

    fn status(&self, write: v1::StatusWrite, path: &str) -> Result<StatusDraft, Status> {
        let key = write.key.ok_or_else(|| fault::bad(&format!("{path}.key"), "the key of the object"))?;
        let key = ObjectKey::try_from(&key).map_err(|error| fault::field(&format!("{path}.key"), &error))?;
        let status = match &write.status {
            None => Bytes::new(),
            Some(status) => {
                let path = format!("{path}.status");
                let kind = kind_of(status).map_err(|expected| fault::bad(&path, expected))?;
                self.check_spec(status, &kind, &path)?;
                encode(status)
            }
        };
        Ok(StatusDraft { key, status, observed: Generation(write.observed_generation) })
    }

    /// What a caller is subscribed to, or lists.
    pub(crate) fn scope(
        &self,
        identity: &Identity,
        kinds: &[String],
        filter: Option<&v1::Filter>,
        agent: &str,
        labels: &std::collections::BTreeMap<String, String>,
    ) -> Result<Scope, Status> {
        let viewer = match identity.agent(agent)? {
            None if labels.is_empty() => Viewer::Observer,
            None => return Err(fault::bad("agent_labels", "no labels without an agent")),
            Some(id) => {
                self.at_most("agent_labels", labels.len(), self.limits.agent_labels)?;
                let labels = Labels::new(labels).map_err(|error| fault::field("agent_labels", &error))?;
                Viewer::Agent { id, labels }
            }
        };
        self.at_most("request_kinds", kinds.len(), self.limits.request_kinds)?;
        let kinds: BTreeSet<Kind> = kinds
            .iter()
            .enumerate()
            .map(|(at, kind)| Kind::new(kind).map_err(|error| fault::field(&format!("kinds[{at}]"), &error)))
            .collect::<Result<_, _>>()?;
        let filter = self.filter(filter, &kinds)?;
        Ok(Scope { kinds: (!kinds.is_empty()).then(|| Arc::new(kinds)), filter, viewer })
    }

    fn filter(&self, filter: Option<&v1::Filter>, kinds: &BTreeSet<Kind>) -> Result<Option<Arc<Filter>>, Status> {
        if let Some(filter) = filter {
            let terms = filter.names.len() + filter.namespaces.len() + filter.fields.len() + filter.selector.len() / 8;
            self.at_most("filter_terms", terms, self.limits.filter_terms)?;
        }
        let path = |error: &Invalid| if error.what == "field" { "filter.fields" } else { "filter.selector" };
        let compiled = Filter::compile(filter).map_err(|error| fault::field(path(&error), &error))?;
        let Some(compiled) = compiled else { return Ok(None) };
        for path in compiled.field_paths() {
            if kinds.is_empty() {
                return Err(fault::bad("filter.fields", "kinds must be named when fields are tested"));
            }
            for kind in kinds {
                self.check_path(kind, path)?;
            }
        }
        Ok(Some(Arc::new(compiled)))
    }

    fn check_path(&self, kind: &Kind, path: &str) -> Result<(), Status> {
        if !self.schemas.is_registered(kind.as_str()) {
            let expected = format!("{kind} must be registered before its fields can be tested (hint: RegisterKinds)");
            return Err(fault::bad("filter.fields", expected));
        }
        let parts: Vec<&str> = path.split('.').collect();
        self.schemas
            .check_field(kind.as_str(), &parts)
            .map_err(|expected| fault::bad("filter.fields", expected))
    }

    fn check_spec(&self, any: &Any, kind: &str, path: &str) -> Result<(), Status> {
        let malformed = |error| fault::bad(path, format!("the bytes are not a {kind}: {error}"));
        self.schemas.check(kind, &any.value).map_err(malformed)
    }

    pub(crate) fn at_most(&self, limit: &'static str, size: usize, max: usize) -> Result<(), Status> {
        if size > max {
            self.metrics.refuse(limit);
            return Err(fault::full(limit, format!("{limit}: {size}, at most {max} allowed")));
        }
        Ok(())
    }
}

/// The kind that an `Any` holds.
fn kind_of(any: &Any) -> Result<String, String> {
    let (_, kind) = any.type_url.rsplit_once('/').unwrap_or(("", &any.type_url));
    match Kind::new(kind) {
        Ok(kind) => Ok(kind.to_string()),
        Err(_) => Err(format!("a type such as type.googleapis.com/demo.v1.Policy, found {:?}", any.type_url)),
    }
}

fn finalizers(write: &v1::FinalizersWrite, path: &str) -> Result<FinalizersDraft, Status> {
    let key = write
        .key
        .as_ref()
        .ok_or_else(|| fault::bad(&format!("{path}.key"), "the key of the object"))?;
    let key = ObjectKey::try_from(key).map_err(|error| fault::field(&format!("{path}.key"), &error))?;
    if write.add.is_empty() && write.remove.is_empty() {
        return Err(fault::bad(path, "finalizers to add, or to remove"));
    }
    let names = |field: &str, names: &[String]| {
        let names = Finalizers::new(names.iter().map(String::as_str));
        names.map_err(|error| fault::field(&format!("{path}.{field}"), &error))
    };
    let (add, remove) = (names("add", &write.add)?, names("remove", &write.remove)?);
    if let Some(both) = add.iter().find(|name| remove.contains(name)) {
        return Err(fault::bad(&format!("{path}.remove"), format!("{both:?} is added by the same operation")));
    }
    Ok(FinalizersDraft { key, add, remove })
}

fn references(refs: &[v1::Reference], path: &str) -> Result<Arc<[Reference]>, Status> {
    // What only the spec said when somebody read it is nothing that they say.
    let stated = refs.iter().enumerate().filter(|(_, reference)| !reference.declared);
    let parsed = stated.map(|(at, reference)| {
        Reference::try_from(reference).map_err(|error| fault::field(&format!("{path}.refs[{at}]"), &error))
    });
    // The same referent twice is one reference; the order says nothing.
    let parsed: BTreeSet<Reference> = parsed.collect::<Result<_, _>>()?;
    Ok(parsed.into_iter().collect())
}

fn precondition(wire: Option<v1::Precondition>, path: &str) -> Result<Precondition, Status> {
    let Some(wire) = wire else { return Ok(Precondition::default()) };
    let at = format!("{path}.precondition");
    if wire.absent && (!wire.uid.is_empty() || wire.revision.is_some() || wire.generation.is_some()) {
        return Err(fault::bad(&at, "either absent or conditions on what is there, not both"));
    }
    let uid = match &*wire.uid {
        "" => None,
        uid => Some(Uid::new(uid).map_err(|error| fault::field(&format!("{at}.uid"), &error))?),
    };
    Ok(Precondition {
        absent: wire.absent,
        uid,
        revision: wire.revision.map(Revision),
        generation: wire.generation.map(Generation),
    })
}

fn encode(any: &Any) -> Bytes {
    any.encode_to_vec().into()
}
