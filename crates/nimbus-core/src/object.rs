//! Objects as programs see them: metadata and a spec of a known type.

use std::{any::TypeId, cell::RefCell, collections::BTreeMap, fmt, sync::Arc};

use nimbus_wire::v1;
use prost::{
    Message, Name,
    encoding::{WireType, encode_key, encode_varint, encoded_len_varint},
};
use prost_types::Any;

use crate::{
    Annotations, Finalizers, Generation, Invalid, Kind, Labels, ObjectKey, PublisherId, Reference, Revision, Uid,
};

/// A kind that a program knows as a type: every prost message that has a name (`enable_type_names` in prost-build).
pub trait Spec: Message + Name + Default + 'static {
    /// The kind of these specs.
    ///
    /// # Panics
    /// If the message has no full name, which generated code always gives it.
    fn kind() -> Kind {
        let new = || Kind::new(&Self::full_name()).expect("generated code gives messages their full names");
        KINDS.with_borrow_mut(|kinds| kinds.entry(TypeId::of::<Self>()).or_insert_with(new).clone())
    }

    /// Packs it, with the type as generic tools look for it.
    fn pack(&self) -> Any {
        Any { type_url: format!("{TYPES}{}", Self::full_name()), value: self.encode_to_vec() }
    }

    /// Packs it and encodes that: the bytes of [`Spec::pack`], in one allocation.
    fn pack_to_vec(&self) -> Vec<u8> {
        let (kind, len) = (Self::kind(), self.encoded_len());
        let url = TYPES.len() + kind.as_str().len();
        let mut bytes =
            Vec::with_capacity(2 + encoded_len_varint(url as u64) + url + encoded_len_varint(len as u64) + len);
        encode_key(1, WireType::LengthDelimited, &mut bytes);
        encode_varint(url as u64, &mut bytes);
        bytes.extend_from_slice(TYPES.as_bytes());
        bytes.extend_from_slice(kind.as_str().as_bytes());
        // As everywhere, what is empty is not there.
        if len > 0 {
            encode_key(2, WireType::LengthDelimited, &mut bytes);
            encode_varint(len as u64, &mut bytes);
            self.encode_raw(&mut bytes);
        }
        bytes
    }
}

/// What stands before the name of a packed type; generic tools look for it.
const TYPES: &str = "type.googleapis.com/";

thread_local! {
    /// The kinds of all types that were asked for: as many as the program has, and each is one allocation. They are few, and
    /// are found sooner by their order than by their hashes.
    static KINDS: RefCell<BTreeMap<TypeId, Kind>> = const { RefCell::new(BTreeMap::new()) };
}

impl<M: Message + Name + Default + 'static> Spec for M {}

/// Everything about an object but its spec and status.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Meta {
    /// Its name.
    pub key: ObjectKey,
    /// This life of the name.
    pub uid: Uid,
    /// How often the spec changed.
    pub generation: Generation,
    /// When anything last changed.
    pub revision: Revision,
    /// What selectors look at.
    pub labels: Labels,
    /// What it needs.
    pub refs: Arc<[Reference]>,
    /// On whose behalf it exists.
    pub owner: Option<v1::Owner>,
    /// The publisher that owns the spec.
    pub manager: Option<PublisherId>,
    /// Notes for people and programs.
    pub annotations: Annotations,
    /// Who still has something to do before a delete is done.
    pub finalizers: Finalizers,
    /// Whether a delete was asked for.
    pub deleting: bool,
}

/// An object with a spec of type `K`.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Object<K> {
    /// Everything but the spec.
    pub meta: Meta,
    /// What should be true.
    pub spec: K,
}

/// Why an object from outside could not be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// A part of its metadata is wrong.
    #[error(transparent)]
    Meta(#[from] Invalid),
    /// It has no spec.
    #[error("{0} has no spec")]
    NoSpec(ObjectKey),
    /// The spec is another message.
    #[error("the spec of {key} is a {found:?}, expected a {expected}")]
    Type {
        /// The object.
        key: ObjectKey,
        /// The type in it.
        found: String,
        /// The type that its kind says.
        expected: Kind,
    },
    /// The bytes of the spec are not that message.
    #[error("the spec of {key} is not a {}", .key.kind())]
    Decode {
        /// The object.
        key: ObjectKey,
        /// What is wrong with it.
        #[source]
        source: prost::DecodeError,
    },
}

// === impl Meta ===

impl Meta {
    /// Metadata with nothing but a name, a life and numbers.
    pub fn new(key: ObjectKey, uid: Uid, generation: Generation, revision: Revision) -> Self {
        Self {
            key,
            uid,
            generation,
            revision,
            labels: Labels::default(),
            refs: Arc::default(),
            owner: None,
            manager: None,
            annotations: Annotations::default(),
            finalizers: Finalizers::default(),
            deleting: false,
        }
    }

    /// Reads the metadata of an object.
    ///
    /// # Errors
    /// If a name, a label or a reference is not one.
    pub fn from_wire(object: &v1::Object) -> Result<Self, Invalid> {
        let manager = Some(&object.manager).filter(|manager| !manager.is_empty());
        Ok(Self {
            key: ObjectKey::new(Kind::new(&object.kind)?, &object.namespace, &object.name)?,
            uid: Uid::new(&object.uid)?,
            generation: Generation(object.generation),
            revision: Revision(object.revision),
            labels: Labels::new(&object.labels)?,
            refs: object.refs.iter().map(Reference::try_from).collect::<Result<_, _>>()?,
            owner: object.owner.clone(),
            manager: manager.map(|manager| PublisherId::new(manager)).transpose()?,
            annotations: Annotations::new(object.annotations.clone())?,
            finalizers: Finalizers::new(object.finalizers.iter().map(String::as_str))?,
            deleting: object.deleting,
        })
    }

    /// What it cannot be without.
    pub fn needs(&self) -> impl Iterator<Item = &ObjectKey> {
        self.refs.iter().filter(|reference| !reference.weak).map(|reference| &reference.to)
    }
}

// === impl Object ===

impl<K> Object<K> {
    /// An object from its parts.
    pub fn new(meta: Meta, spec: K) -> Self {
        Self { meta, spec }
    }

    /// Its name.
    pub fn key(&self) -> &ObjectKey {
        &self.meta.key
    }

    /// Its name without kind and namespace.
    pub fn name(&self) -> &str {
        self.meta.key.name()
    }
}

impl<K: Spec> Object<K> {
    /// Reads an object whose spec is a `K`.
    ///
    /// # Errors
    /// If it is of another kind, or is not well-formed.
    pub fn from_wire(object: &v1::Object) -> Result<Self, ObjectError> {
        let meta = Meta::from_wire(object)?;
        let any = object.spec.as_ref().ok_or_else(|| ObjectError::NoSpec(meta.key.clone()))?;
        let found = any.type_url.rsplit_once('/').map_or(&*any.type_url, |(_, name)| name);
        if found != K::full_name() {
            let (key, found) = (meta.key, found.to_owned());
            return Err(ObjectError::Type { key, found, expected: K::kind() });
        }
        match K::decode(&*any.value) {
            Ok(spec) => Ok(Self { meta, spec }),
            Err(source) => Err(ObjectError::Decode { key: meta.key, source }),
        }
    }
}

impl Object<Any> {
    /// Reads an object of any kind; the spec stays packed.
    ///
    /// # Errors
    /// If it has no spec, or is not well-formed.
    pub fn packed(object: &v1::Object) -> Result<Self, ObjectError> {
        let meta = Meta::from_wire(object)?;
        match object.spec.clone() {
            Some(spec) => Ok(Self { meta, spec }),
            None => Err(ObjectError::NoSpec(meta.key)),
        }
    }
}

impl<K: fmt::Debug> fmt::Debug for Object<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("key", &self.meta.key)
            .field("generation", &self.meta.generation)
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}
