//! Objects and tombstones as the store keeps them: immutable, shared, encoded once.

mod encode;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use nimbus_core::{
    Annotations, Audience, Digest, Finalizers, Generation, Invalid, Kind, Labels, LeafHasher, ObjectKey, Owner,
    PublisherId, Reference, Revision, Uid,
};
use nimbus_wire::v1;
use prost::{Message as _, encoding::encoded_len_varint};

use crate::record::encode::{Encoded, Span};

/// Where a change stands in the order of a collection: its revision, and its place within the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The revision of the transaction.
    pub revision: Revision,
    /// The place within it.
    pub seq: u32,
}

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

/// An object at the revision that last changed it.
#[derive(Debug)]
pub struct Record {
    key: ObjectKey,
    uid: Uid,
    generation: Generation,
    observed: Generation,
    slot: Slot,
    labels: Labels,
    refs: Arc<[Reference]>,
    manager: PublisherId,
    /// Most objects have none of these.
    extras: Option<Box<Extras>>,
    audience: Audience,
    /// Computed when somebody asks: not everybody who keeps objects compares sets of them.
    leaves: OnceLock<Leaves>,
    /// The encoded object without its audience: what is the same after a restart of the bus, then the revision.
    body: Bytes,
    /// The audience as an encoded field of the object; empty for everyone.
    audience_field: Box<[u8]>,
    owner: Span,
    spec: Span,
    status: Span,
}

/// The digests of an object.
#[derive(Debug, Clone, Copy)]
struct Leaves {
    /// As agents see it.
    leaf: Digest,
    /// Mixed into the leaf for observers, who see the audience as well.
    audience: Digest,
}

/// What few objects have.
#[derive(Debug, Clone)]
struct Extras {
    annotations: Annotations,
    finalizers: Finalizers,
    deleting: bool,
}

/// The end of an object, for everybody or for one lane.
#[derive(Debug)]
pub struct Grave {
    /// What ended.
    pub key: ObjectKey,
    /// Its last life.
    pub uid: Uid,
    /// When.
    pub slot: Slot,
    /// Readers whose position is below this never saw it.
    pub since: Revision,
    /// What it referred to, for the order of removals.
    pub refs: Arc<[Reference]>,
    /// It still exists elsewhere.
    pub out_of_scope: bool,
}

/// The parts of an encoded object that are kept as they were written.
#[derive(Clone, PartialEq, prost::Message)]
struct Packed {
    #[prost(bytes = "bytes", tag = "11")]
    spec: Bytes,
    #[prost(bytes = "bytes", tag = "12")]
    status: Bytes,
}

// === impl Content ===

impl Content {
    /// The object as an observer sees it, in one piece, for those who keep no record of it.
    pub fn encode(&self, revision: Revision) -> Bytes {
        let Encoded { body, audience_field, .. } = Encoded::new(self, revision);
        if audience_field.is_empty() { body } else { [&body[..], &audience_field].concat().into() }
    }

    /// Reads what [`Record::encoded`] wrote for an observer, and the revision in it.
    ///
    /// # Errors
    /// If it is no object.
    pub(crate) fn decode(encoded: &Bytes) -> Result<(Self, Revision), String> {
        let object = v1::Object::decode(encoded.clone()).map_err(|error| error.to_string())?;
        let Packed { spec, status } = Packed::decode(encoded.clone()).map_err(|error| error.to_string())?;
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

// === impl Record ===

impl Record {
    /// Encodes an object and gives it its place in the order.
    pub fn new(content: Content, slot: Slot) -> Self {
        let Encoded { body, audience_field, owner, spec, status } = Encoded::new(&content, slot.revision);
        let Content { key, uid, generation, labels, refs, manager, audience, observed, .. } = content;
        let Content { annotations, finalizers, deleting, .. } = content;
        Self {
            key,
            uid,
            generation,
            observed,
            slot,
            labels,
            refs,
            manager,
            extras: Extras::new(annotations, finalizers, deleting),
            audience,
            leaves: OnceLock::new(),
            body,
            audience_field,
            owner,
            spec,
            status,
        }
    }

    /// The name.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// This life of the name.
    pub fn uid(&self) -> &Uid {
        &self.uid
    }

    /// How often the spec changed.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// When anything last changed.
    pub fn revision(&self) -> Revision {
        self.slot.revision
    }

    /// The place in the order.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// What selectors look at.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Whom it is for.
    pub fn audience(&self) -> &Audience {
        &self.audience
    }

    /// The publisher that owns the spec.
    pub fn manager(&self) -> &PublisherId {
        &self.manager
    }

    /// On whose behalf it exists. Read from the encoded object: few ask, and as a message it would be as large again.
    ///
    /// # Panics
    /// Never: the bytes are our own encoding.
    pub fn owner(&self) -> Option<v1::Owner> {
        let bytes = self.owner.of(&self.body)?;
        Some(v1::Owner::decode(bytes).expect("the store encoded it"))
    }

    /// What it refers to.
    pub fn refs(&self) -> &Arc<[Reference]> {
        &self.refs
    }

    /// Notes for people and programs.
    pub fn annotations(&self) -> Annotations {
        self.extras
            .as_ref()
            .map_or_else(Annotations::default, |extras| extras.annotations.clone())
    }

    /// Who still has something to do before a delete is done.
    pub fn finalizers(&self) -> Finalizers {
        self.extras.as_ref().map_or_else(Finalizers::default, |extras| extras.finalizers.clone())
    }

    /// Whether a delete was asked for.
    pub fn is_deleting(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.deleting)
    }

    /// The generation that the status speaks of.
    pub fn observed(&self) -> Generation {
        self.observed
    }

    /// The encoded `Any` of the status where it lies; empty if there is none.
    pub fn status_bytes(&self) -> &[u8] {
        self.status.of(&self.body).unwrap_or_default()
    }

    /// The encoded `Any` of the spec where it lies.
    pub fn spec_bytes(&self) -> &[u8] {
        self.spec.of(&self.body).unwrap_or_default()
    }

    /// The encoded `Any` of the status; empty if there is none.
    pub fn status(&self) -> Bytes {
        self.status.slice(&self.body)
    }

    /// The encoded `Any` of the spec.
    pub fn spec(&self) -> Bytes {
        self.spec.slice(&self.body)
    }

    /// The strong references.
    pub fn needs(&self) -> impl Iterator<Item = &ObjectKey> {
        strong(&self.refs)
    }

    /// The same object as agents see it. Lanes of named agents hold on to these: an audience may be long, and grows by
    /// one agent at a time.
    pub(crate) fn without_audience(&self) -> Arc<Self> {
        Arc::new(Self {
            key: self.key.clone(),
            uid: self.uid.clone(),
            labels: self.labels.clone(),
            refs: self.refs.clone(),
            manager: self.manager.clone(),
            extras: self.extras.clone(),
            audience: Audience::Everyone,
            leaves: Leaves { leaf: self.leaf(false), audience: Digest::ZERO }.into(),
            body: self.body.clone(),
            audience_field: Box::default(),
            ..*self
        })
    }

    /// The same object as agents were sent it at `slot`: what they see of it has not changed since.
    pub(crate) fn sent_at(&self, slot: Slot) -> Arc<Self> {
        if slot == self.slot { self.without_audience() } else { Self::new(self.content(), slot).without_audience() }
    }

    /// Everything that a writer decided.
    pub fn content(&self) -> Content {
        Content {
            key: self.key.clone(),
            uid: self.uid.clone(),
            generation: self.generation,
            labels: self.labels.clone(),
            refs: self.refs.clone(),
            owner: self.owner().map(Owner::from),
            manager: self.manager.clone(),
            annotations: self.annotations(),
            finalizers: self.finalizers(),
            deleting: self.is_deleting(),
            audience: self.audience.clone(),
            spec: self.spec(),
            status: self.status(),
            observed: self.observed,
        }
    }

    /// The digest as seen by an agent, or by an observer, who sees the audience as well.
    pub fn leaf(&self, observer: bool) -> Digest {
        let leaves = self.leaves.get_or_init(|| self.digest());
        if observer { leaves.leaf.mixed(leaves.audience) } else { leaves.leaf }
    }

    fn digest(&self) -> Leaves {
        // Everything but the revision, which comes last.
        let len = self.body.len() - 1 - encoded_len_varint(self.slot.revision.0);
        let mut leaf = LeafHasher::new(&self.key);
        leaf.part(&self.body[..len]);
        let audience = if self.audience_field.is_empty() {
            Digest::ZERO
        } else {
            let mut hasher = LeafHasher::extra();
            hasher.part(&self.audience_field);
            hasher.finish()
        };
        Leaves { leaf: leaf.finish(), audience }
    }

    /// The encoded object, as an agent or an observer sees it, in two parts.
    pub fn encoded(&self, observer: bool) -> [&[u8]; 2] {
        [&self.body, if observer { &self.audience_field } else { &[] }]
    }

    /// The object as a message.
    ///
    /// # Panics
    /// Never: the bytes are our own encoding.
    pub fn to_wire(&self) -> v1::Object {
        let bytes = self.encoded(true).concat();
        v1::Object::decode(bytes.as_slice()).expect("the store encoded it")
    }

    /// Bytes of memory that the encoded object takes.
    pub fn size(&self) -> usize {
        self.body.len() + self.audience_field.len()
    }

    /// The tombstone of this object.
    pub(crate) fn grave(&self, slot: Slot, since: Revision, out_of_scope: bool) -> Arc<Grave> {
        let (key, uid, refs) = (self.key.clone(), self.uid.clone(), self.refs.clone());
        Arc::new(Grave { key, uid, slot, since, refs, out_of_scope })
    }
}

// === impl Extras ===

impl Extras {
    fn new(annotations: Annotations, finalizers: Finalizers, deleting: bool) -> Option<Box<Self>> {
        let none = annotations.is_empty() && finalizers.is_empty() && !deleting;
        (!none).then(|| Box::new(Self { annotations, finalizers, deleting }))
    }
}

// === impl Grave ===

impl Grave {
    /// What it needed while it lived.
    pub fn needs(&self) -> impl Iterator<Item = &ObjectKey> {
        strong(&self.refs)
    }
}

fn strong(refs: &[Reference]) -> impl Iterator<Item = &ObjectKey> {
    refs.iter().filter(|reference| !reference.weak).map(|reference| &reference.to)
}

pub(crate) fn reference_to_wire(reference: &Reference) -> v1::Reference {
    let v1::Key { kind, namespace, name } = reference.to.to_wire();
    v1::Reference { kind, namespace, name, weak: reference.weak }
}
