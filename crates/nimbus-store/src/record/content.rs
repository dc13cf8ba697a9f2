//! What a writer decides about an object.

use std::sync::Arc;

use bytes::Bytes;
use nimbus_core::{
    Annotations, Audience, Finalizers, Generation, Invalid, Kind, Labels, ObjectKey, Owner, PublisherId, Reference,
    Revision, Uid,
};
use nimbus_wire::v1;
use prost::Message as _;

/// What a writer decides about an object; the store adds revision and digests.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// Its name.
    pub key: ObjectKey,
    /// This life of the name.
    pub uid: Uid,
    /// How often the spec changed.
    pub generation: Generation,
    /// What selectors look at.
    pub labels: Labels,
    /// What it needs.
    pub refs: Arc<[Reference]>,
    /// On whose behalf it exists.
    pub owner: Option<Owner>,
    /// The publisher that owns the spec.
    pub manager: PublisherId,
    /// Notes for people and programs.
    pub annotations: Annotations,
    /// Who still has something to do before a delete is done.
    pub finalizers: Finalizers,
    /// Whether a delete was asked for.
    pub deleting: bool,
    /// Whom it is for.
    pub audience: Audience,
    /// An encoded `google.protobuf.Any`; empty if there is none.
    pub spec: Bytes,
    /// The same for the status.
    pub status: Bytes,
    /// The generation that the status speaks of.
    pub observed: Generation,
}

/// The same, where it lies: a record copies what it keeps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decision<'a> {
    pub(crate) key: &'a ObjectKey,
    pub(crate) uid: &'a Uid,
    pub(crate) generation: Generation,
    pub(crate) labels: &'a Labels,
    pub(crate) refs: &'a Arc<[Reference]>,
    pub(crate) owner: Option<&'a Owner>,
    pub(crate) manager: &'a PublisherId,
    pub(crate) annotations: &'a Annotations,
    pub(crate) finalizers: &'a Finalizers,
    pub(crate) deleting: bool,
    pub(crate) audience: &'a Audience,
    pub(crate) spec: &'a [u8],
    pub(crate) status: &'a [u8],
    pub(crate) observed: Generation,
}

/// The parts of an encoded object that are kept as they were written.
#[derive(Clone, PartialEq, prost::Message)]
struct Written {
    #[prost(bytes = "bytes", tag = "11")]
    spec: Bytes,
    #[prost(bytes = "bytes", tag = "12")]
    status: Bytes,
}

// === impl Content ===

impl Content {
    /// Reads what [`Record::encoded`] wrote for an observer, and the revision in it.
    ///
    /// # Errors
    /// If it is no object.
    pub(crate) fn decode(encoded: &Bytes) -> Result<(Self, Revision), String> {
        let object = v1::Object::decode(encoded.clone()).map_err(|error| error.to_string())?;
        let Written { spec, status } = Written::decode(encoded.clone()).map_err(|error| error.to_string())?;
        let revision = Revision(object.revision);
        let content = Self::from_wire(&object).map_err(|error| error.to_string())?;
        Ok((Self { spec, status, ..content }, revision))
    }

    /// Reads what a writer decided from an object as it travels. The kind is that of the object, the manager must be
    /// named.
    ///
    /// # Errors
    /// If a name, a label, a reference or the audience is not one.
    pub fn from_wire(object: &v1::Object) -> Result<Self, Invalid> {
        let encode =
            |any: &Option<prost_types::Any>| any.as_ref().map_or_else(Bytes::new, |any| any.encode_to_vec().into());
        Ok(Self {
            key: ObjectKey::new(Kind::new(&object.kind)?, &object.namespace, &object.name)?,
            uid: Uid::new(&object.uid)?,
            generation: Generation(object.generation),
            labels: Labels::new(&object.labels)?,
            refs: object.refs.iter().map(Reference::try_from).collect::<Result<_, _>>()?,
            owner: object.owner.clone().map(Owner::from),
            manager: PublisherId::new(&object.manager)?,
            annotations: Annotations::new(object.annotations.clone())?,
            finalizers: Finalizers::new(object.finalizers.iter().map(String::as_str))?,
            deleting: object.deleting,
            audience: Audience::from_wire(object.audience.as_ref())?,
            spec: encode(&object.spec),
            status: encode(&object.status),
            observed: Generation(object.observed_generation),
        })
    }
}

// === impl Decision ===

impl<'a> From<&'a Content> for Decision<'a> {
    fn from(content: &'a Content) -> Self {
        Self {
            key: &content.key,
            uid: &content.uid,
            generation: content.generation,
            labels: &content.labels,
            refs: &content.refs,
            owner: content.owner.as_ref(),
            manager: &content.manager,
            annotations: &content.annotations,
            finalizers: &content.finalizers,
            deleting: content.deleting,
            audience: &content.audience,
            spec: &content.spec,
            status: &content.status,
            observed: content.observed,
        }
    }
}
