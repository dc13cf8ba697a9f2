//! Objects and tombstones as the store keeps them: immutable, shared, encoded once.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use nimbus_core::{
    Annotations, Audience, Digest, Finalizers, Generation, Invalid, Kind, Labels, LeafHasher, ObjectKey, PublisherId,
    Reference, Revision, Uid,
};
use nimbus_wire::v1;
use prost::{
    Message as _,
    encoding::{WireType, encode_key, encode_varint},
};

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
    pub owner: Option<v1::Owner>,
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
    owner: Option<Box<v1::Owner>>,
    manager: PublisherId,
    /// Most objects have none of these.
    extras: Option<Box<Extras>>,
    audience: Audience,
    leaf: Digest,
    /// Mixed into the leaf for observers, who see the audience as well.
    audience_leaf: Digest,
    /// The encoded object without its audience: what is the same after a restart of the bus, then the revision.
    body: Bytes,
    /// The audience as an encoded field of the object; empty for everyone.
    audience_field: Bytes,
    spec: (u32, u32),
    status: (u32, u32),
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

const SPEC_FIELD: u32 = 11;
const STATUS_FIELD: u32 = 12;
const REVISION_FIELD: u32 = 6;
const AUDIENCE_FIELD: u32 = 14;

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
            owner: object.owner.clone(),
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
        let Content { key, uid, generation, labels, refs, owner, manager, audience, spec, status, observed, .. } =
            content;
        let Content { annotations, finalizers, deleting, .. } = content;
        let header = v1::Object {
            kind: key.kind().to_string(),
            namespace: key.namespace().to_owned(),
            name: key.name().to_owned(),
            uid: uid.to_string(),
            generation: generation.0,
            labels: labels.to_wire(),
            refs: refs.iter().map(reference_to_wire).collect(),
            owner: owner.clone(),
            manager: manager.to_string(),
            observed_generation: observed.0,
            annotations: annotations.to_wire(),
            finalizers: finalizers.to_wire(),
            deleting,
            ..v1::Object::default()
        };
        let mut body = BytesMut::with_capacity(header.encoded_len() + spec.len() + status.len() + 32);
        header.encode_raw(&mut body);
        let spec = put_field(&mut body, SPEC_FIELD, &spec);
        let status = put_field(&mut body, STATUS_FIELD, &status);
        let mut leaf = LeafHasher::new(&key);
        leaf.part(&body);
        let leaf = leaf.finish();
        put_revision(&mut body, slot.revision);

        let mut audience_field = BytesMut::new();
        if let Some(wire) = audience.to_wire() {
            encode_key(AUDIENCE_FIELD, WireType::LengthDelimited, &mut audience_field);
            wire.encode_length_delimited(&mut audience_field).expect("a growing buffer has room");
        }
        let audience_leaf = if audience_field.is_empty() {
            Digest::ZERO
        } else {
            let mut hasher = LeafHasher::extra();
            hasher.part(&audience_field);
            hasher.finish()
        };
        Self {
            key,
            uid,
            generation,
            observed,
            slot,
            labels,
            refs,
            owner: owner.map(Box::new),
            manager,
            extras: Extras::new(annotations, finalizers, deleting),
            audience,
            leaf,
            audience_leaf,
            body: tight(&body),
            audience_field: tight(&audience_field),
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

    /// On whose behalf it exists.
    pub fn owner(&self) -> Option<&v1::Owner> {
        self.owner.as_deref()
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

    /// The encoded `Any` of the status; empty if there is none.
    pub fn status(&self) -> Bytes {
        self.body.slice(self.status.0 as usize..self.status.1 as usize)
    }

    /// The encoded `Any` of the spec.
    pub fn spec(&self) -> Bytes {
        self.body.slice(self.spec.0 as usize..self.spec.1 as usize)
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
            owner: self.owner.clone(),
            manager: self.manager.clone(),
            extras: self.extras.clone(),
            audience: Audience::Everyone,
            audience_leaf: Digest::ZERO,
            body: self.body.clone(),
            audience_field: Bytes::new(),
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
            owner: self.owner.as_deref().cloned(),
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
        if observer { self.leaf.mixed(self.audience_leaf) } else { self.leaf }
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

/// Appends a message field and says where its bytes lie.
fn put_field(body: &mut BytesMut, field: u32, bytes: &[u8]) -> (u32, u32) {
    if bytes.is_empty() {
        return (0, 0);
    }
    encode_key(field, WireType::LengthDelimited, body);
    encode_varint(bytes.len() as u64, body);
    let start = u32::try_from(body.len()).expect("object size is limited");
    body.put_slice(bytes);
    (start, start + u32::try_from(bytes.len()).expect("object size is limited"))
}

fn put_revision(body: &mut BytesMut, revision: Revision) {
    encode_key(REVISION_FIELD, WireType::Varint, body);
    encode_varint(revision.0, body);
}

/// Gives back what the buffer reserved and did not use: an object may live for years.
fn tight(buffer: &[u8]) -> Bytes {
    Bytes::from(buffer.to_vec().into_boxed_slice())
}
