//! Objects and tombstones as the store keeps them: immutable, shared, encoded once.

mod content;
mod encode;
mod family;
mod grave;
mod leaf;
mod owner;
mod packed;
mod rest;
mod uid;

use std::{
    borrow::Cow,
    fmt, str,
    sync::{Arc, LazyLock, OnceLock},
};

use bytes::Bytes;
use nimbus_core::{
    Annotations, Audience, Digest, Finalizers, Generation, Kind, Labels, LeafHasher, ObjectKey, Owner, PublisherId,
    Reference, Revision, Uid,
};
use nimbus_wire::v1;
use prost::{
    Message as _,
    encoding::{encoded_len_varint, key_len},
};

pub use self::content::Content;
pub(crate) use self::{content::Decision, encode::encode_draft, grave::Grave};
use crate::record::{
    encode::{GENERATION, OBSERVED_GENERATION, REVISION, leading_number, put_revision, with_buffer},
    family::Family,
    leaf::Leaf,
    packed::Packed,
    rest::{More, Rest},
};

/// Where a change stands in the order of a collection: its revision, and its place within the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The revision of the transaction.
    pub revision: Revision,
    /// The place within it.
    pub seq: u32,
}

/// An object at the revision that last changed it.
///
/// There may be millions of these, so each is as small as can be had without asking much of those who read it: what it
/// has of its own is packed in one piece of memory, what it shares with others of its kind is kept once for all of them,
/// and what few have is apart.
pub struct Record {
    family: Arc<Family>,
    body: Body,
    rest: Rest,
    revision: Revision,
    seq: u32,
    /// The digest as agents see it. Computed when somebody asks: not everybody who keeps objects compares sets of them.
    leaf: Leaf,
    /// Made when somebody asks who wants to borrow it.
    key: OnceLock<ObjectKey>,
}

/// Where the object lies.
#[derive(Debug)]
enum Body {
    Here(Packed),
    /// In the same object as agents see it: it is for named agents, whose lanes hold on to that one. An audience may be
    /// long, and grows by one agent at a time.
    Bare(Arc<Record>),
}

/// What an object has that has nothing else.
static NOTHING_MORE: LazyLock<More> = LazyLock::new(More::default);
static NO_LABELS: LazyLock<Labels> = LazyLock::new(Labels::default);

// === impl Record ===

impl Record {
    /// Packs an object and gives it its place in the order.
    pub fn new(content: Content, slot: Slot) -> Self {
        let record = Self::kept(&content, slot);
        Self { key: content.key.into(), ..record }
    }

    /// The same, for many that nobody may ever ask for their names: these lie in it, and are not kept a second time.
    pub(crate) fn kept<'a>(content: impl Into<Decision<'a>>, slot: Slot) -> Self {
        let content = &content.into();
        let family = Family::of(content.key.kind(), content.manager);
        let packed = Packed::new(content, &family);
        let bare = |rest, body| Self {
            family: family.clone(),
            body,
            rest,
            revision: slot.revision,
            seq: slot.seq,
            leaf: Leaf::default(),
            key: OnceLock::new(),
        };
        let rest = Rest::new(content);
        if let Audience::Agents(_) = content.audience {
            let body = Arc::new(bare(rest.without_audience(), Body::Here(packed)));
            return bare(rest, Body::Bare(body));
        }
        bare(rest, Body::Here(packed))
    }

    /// The kind.
    pub fn kind(&self) -> &Kind {
        &self.family.kind
    }

    /// The name and all that it belongs to. Whoever has no use for it beyond the moment asks for [`Record::to_key`].
    pub fn key(&self) -> &ObjectKey {
        self.key.get_or_init(|| self.make_key())
    }

    /// The same for a moment: a record remembers a key that is borrowed from it.
    pub fn to_key(&self) -> ObjectKey {
        self.key.get().cloned().unwrap_or_else(|| self.make_key())
    }

    fn make_key(&self) -> ObjectKey {
        let (namespace, name) = self.names_in_kind();
        let text = |bytes| str::from_utf8(bytes).expect("names are ASCII");
        ObjectKey::new(self.kind().clone(), text(namespace), text(name)).expect("it was one before")
    }

    /// The namespace.
    ///
    /// # Panics
    /// Never: names are ASCII.
    pub fn namespace(&self) -> &str {
        str::from_utf8(self.names_in_kind().0).expect("names are ASCII")
    }

    /// The name within its namespace.
    ///
    /// # Panics
    /// Never: names are ASCII.
    pub fn name(&self) -> &str {
        str::from_utf8(self.names_in_kind().1).expect("names are ASCII")
    }

    /// The namespace and the name, to be compared with others of the kind: the order of bytes is that of text.
    pub(crate) fn names_in_kind(&self) -> (&[u8], &[u8]) {
        self.packed().names()
    }

    /// This life of the name.
    pub fn to_uid(&self) -> Uid {
        self.packed().uid()
    }

    /// Whether this is its life.
    pub fn has_uid(&self, uid: &Uid) -> bool {
        self.packed().has_uid(uid)
    }

    /// Whether another object is of the same life.
    pub fn has_life_of(&self, other: &Self) -> bool {
        self.packed().has_uid_of(other.packed())
    }

    /// How often the spec changed.
    pub fn generation(&self) -> Generation {
        Generation(leading_number(self.packed().parts().head, GENERATION))
    }

    /// When anything last changed.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The place in the order.
    pub fn slot(&self) -> Slot {
        Slot { revision: self.revision, seq: self.seq }
    }

    /// What selectors look at.
    pub fn labels(&self) -> &Labels {
        self.rest.labels().unwrap_or_else(|| &NO_LABELS)
    }

    /// Whom it is for.
    pub fn audience(&self) -> &Audience {
        &self.more().audience
    }

    /// The publisher that owns the spec.
    pub fn manager(&self) -> &PublisherId {
        &self.family.manager
    }

    /// On whose behalf it exists. Put together from what is kept of it: few ask, and as a message it would be much larger.
    pub fn owner(&self) -> Option<v1::Owner> {
        self.packed().owner(&self.family).map(|owner| owner.to_wire())
    }

    fn has_owner(&self, owner: Option<&Owner>) -> bool {
        match (self.packed().owner(&self.family), owner) {
            (Some(own), Some(owner)) => own.is(owner),
            (own, owner) => own.is_none() && owner.is_none(),
        }
    }

    /// What it refers to.
    pub fn refs(&self) -> &Arc<[Reference]> {
        &self.more().refs
    }

    /// Notes for people and programs.
    pub fn annotations(&self) -> Annotations {
        self.more().annotations.clone()
    }

    /// Who still has something to do before a delete is done.
    pub fn finalizers(&self) -> Finalizers {
        self.more().finalizers.clone()
    }

    /// Whether a delete was asked for.
    pub fn is_deleting(&self) -> bool {
        self.more().deleting
    }

    /// The generation that the status speaks of.
    pub fn observed(&self) -> Generation {
        Generation(leading_number(self.packed().parts().middle, OBSERVED_GENERATION))
    }

    /// The encoded `Any` of the status where it lies; empty if there is none.
    pub fn status_bytes(&self) -> &[u8] {
        self.packed().parts().status
    }

    /// The encoded `Any` of the spec. Where it lies, or put together, if all but the message in it is known from the kind.
    pub fn spec_bytes(&self) -> Cow<'_, [u8]> {
        self.packed().spec(&self.family)
    }

    /// The message in the spec where it lies, if it is one of the object's kind, and packed as everybody does it.
    pub fn message(&self) -> Option<&[u8]> {
        self.packed().message()
    }

    /// Whether another object has the same spec.
    pub fn has_spec_of(&self, other: &Self) -> bool {
        match (self.message(), other.message()) {
            (Some(mine), Some(others)) if self.kind() == other.kind() => mine == others,
            _ => self.has_spec(&other.spec_bytes()),
        }
    }

    /// Whether this is its spec.
    pub(crate) fn has_spec(&self, spec: &[u8]) -> bool {
        self.packed().has_spec(&self.family, spec)
    }

    /// The encoded `Any` of the status; empty if there is none.
    pub fn status(&self) -> Bytes {
        Bytes::copy_from_slice(self.status_bytes())
    }

    /// The encoded `Any` of the spec.
    pub fn spec(&self) -> Bytes {
        self.spec_bytes().into_owned().into()
    }

    /// The strong references.
    pub fn needs(&self) -> impl Iterator<Item = &ObjectKey> {
        strong(self.refs())
    }

    /// The same object as agents see it, if it is for named agents. Their lanes hold on to these.
    pub(crate) fn without_audience(self: &Arc<Self>) -> Arc<Self> {
        match &self.body {
            Body::Bare(bare) => bare.clone(),
            Body::Here(_) => self.clone(),
        }
    }

    /// The same object as agents were sent it at `slot`: what they see of it has not changed since.
    pub(crate) fn sent_at(self: &Arc<Self>, slot: Slot) -> Arc<Self> {
        if slot == self.slot() {
            return self.without_audience();
        }
        Arc::new(Self::kept(&self.content(), slot)).without_audience()
    }

    /// Everything that a writer decided.
    pub fn content(&self) -> Content {
        let More { refs, annotations, finalizers, deleting, audience, .. } = self.more().clone();
        Content {
            key: self.to_key(),
            uid: self.to_uid(),
            generation: self.generation(),
            labels: self.labels().clone(),
            refs,
            owner: self.owner().map(Owner::from),
            manager: self.manager().clone(),
            annotations,
            finalizers,
            deleting,
            audience,
            spec: self.spec(),
            status: self.status(),
            observed: self.observed(),
        }
    }

    /// Whether a writer has decided this, whoever that is.
    pub(crate) fn is<'a>(&self, content: impl Into<Decision<'a>>) -> bool {
        let content = content.into();
        let More { refs, annotations, finalizers, deleting, audience, .. } = self.more();
        self.has_spec(content.spec)
            && self.has_uid(content.uid)
            && self.generation() == content.generation
            && self.labels() == content.labels
            && refs == content.refs
            && annotations == content.annotations
            && finalizers == content.finalizers
            && *deleting == content.deleting
            && audience == content.audience
            && self.status_bytes() == content.status
            && self.observed() == content.observed
            && self.has_owner(content.owner)
    }

    /// The digest as seen by an agent, or by an observer, who sees the audience as well.
    pub fn leaf(&self, observer: bool) -> Digest {
        match &self.body {
            Body::Bare(bare) if observer => bare.leaf(false).mixed(self.more().audience_leaf),
            Body::Bare(bare) => bare.leaf(false),
            Body::Here(packed) => {
                let leaf = self.leaf.get_or_compute(|| self.digest(packed));
                if observer { leaf.mixed(self.more().audience_leaf) } else { leaf }
            }
        }
    }

    fn digest(&self, packed: &Packed) -> Digest {
        let (namespace, name) = packed.names();
        let mut leaf = LeafHasher::named(self.kind().as_str(), namespace, name);
        // Everything but the revision, which comes last.
        with_buffer(|buffer| {
            packed.put(&self.family, buffer);
            leaf.part(buffer);
        });
        leaf.finish()
    }

    /// Appends the encoded object, as an agent or an observer sees it.
    pub fn encode(&self, observer: bool, buffer: &mut Vec<u8>) {
        self.packed().put(&self.family, buffer);
        put_revision(buffer, self.revision);
        if observer {
            buffer.extend_from_slice(&self.more().audience_field);
        }
    }

    /// The encoded object, as an agent or an observer sees it.
    pub fn encoded(&self, observer: bool) -> Vec<u8> {
        let mut buffer = Vec::with_capacity(self.encoded_len(observer));
        self.encode(observer, &mut buffer);
        buffer
    }

    /// How many bytes that is.
    pub fn encoded_len(&self, observer: bool) -> usize {
        let audience = if observer { self.more().audience_field.len() } else { 0 };
        self.packed().len(&self.family) + key_len(REVISION) + encoded_len_varint(self.revision.0) + audience
    }

    /// The object as a message.
    ///
    /// # Panics
    /// Never: the bytes are our own encoding.
    pub fn to_wire(&self) -> v1::Object {
        v1::Object::decode(&*self.encoded(true)).expect("the store encoded it")
    }

    /// Bytes of the encoded object, by which limits count.
    pub fn size(&self) -> usize {
        self.encoded_len(true)
    }

    /// The tombstone of this object, which has this name.
    pub(crate) fn grave(&self, key: &ObjectKey, slot: Slot, since: Revision, out_of_scope: bool) -> Arc<Grave> {
        let (key, uid, refs) = (key.clone(), self.to_uid(), self.refs().clone());
        Arc::new(Grave { key, uid, slot, since, refs, out_of_scope })
    }

    fn packed(&self) -> &Packed {
        let mut record = self;
        loop {
            match &record.body {
                Body::Here(packed) => return packed,
                Body::Bare(bare) => record = bare,
            }
        }
    }

    fn more(&self) -> &More {
        self.rest.more().unwrap_or_else(|| &NOTHING_MORE)
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it is, and not what somebody has asked of it so far.
        f.debug_struct("Record")
            .field("slot", &self.slot())
            .field("object", &self.to_wire())
            .field("leaf", &self.leaf(true))
            .finish()
    }
}

fn strong(refs: &[Reference]) -> impl Iterator<Item = &ObjectKey> {
    refs.iter().filter(|reference| !reference.weak).map(|reference| &reference.to)
}
