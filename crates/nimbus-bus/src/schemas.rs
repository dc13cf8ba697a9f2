//! The users' kinds, registered at run time as protobuf descriptors.

mod built_in;
mod check;
mod compat;
mod declared;
mod error;
mod field;
mod file;
mod imports;
mod limits;
mod registration;
mod shape;
mod snapshot;
mod wire;

#[cfg(test)]
pub(crate) mod tests;

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;
use nimbus_core::{ObjectKey, Reference};
use parking_lot::Mutex;

pub(crate) use crate::schemas::{
    declared::{Declared, Flaw},
    file::File,
    imports::closure,
    snapshot::Snapshot,
    wire::{Raw, Records},
};
pub use crate::schemas::{error::SchemaError, limits::SchemaLimits};

/// The kinds that were registered, and every descriptor that the bus knows.
///
/// A cheap handle: clones share one state. Reads are wait-free and see one immutable snapshot; a registration replaces
/// the snapshot as a whole or not at all.
#[derive(Clone)]
pub struct Schemas {
    inner: Arc<Inner>,
}

struct Inner {
    limits: SchemaLimits,
    current: ArcSwap<Snapshot>,
    /// Held while the next snapshot is built, so that no registration is lost.
    writer: Mutex<()>,
}

// === impl Schemas ===

impl Schemas {
    /// Only what is built in: `nimbus.v1`, health, reflection, `google.protobuf` and the `google.rpc` error details.
    pub fn new(limits: SchemaLimits) -> Self {
        let current = ArcSwap::from_pointee(Snapshot::built_in());
        Self { inner: Arc::new(Inner { limits, current, writer: Mutex::new(()) }) }
    }

    /// Adds the files of an encoded `FileDescriptorSet` and makes messages in them kinds.
    ///
    /// `kinds` names the messages; empty means every top-level message of the files that are new or changed, except
    /// those in packages of `google` and of what is built in. Returns the kinds that this call stands for, in order:
    /// the named ones, or those of the set that are registered now. Asking again changes nothing and returns the same.
    ///
    /// A file that is known with other content is replaced, and so is a file that defines the same symbols under
    /// another name: schemas evolve, and include roots differ. A file that is built in is not: the bus keeps its own.
    ///
    /// Takes time in proportion to all that is registered, most of a second at the default limits: call it where
    /// blocking is allowed.
    ///
    /// # Errors
    ///
    /// Nothing is changed if a limit is exceeded, a file is malformed or cannot be linked, an import is missing, a
    /// named kind does not exist, or a registered kind would vanish or no longer read what was written with it.
    pub fn register(&self, descriptor_set: &[u8], kinds: &[String]) -> Result<Vec<String>, SchemaError> {
        let _writer = self.inner.writer.lock();
        let current = self.inner.current.load_full();
        let (next, registered) = registration::register(&current, &self.inner.limits, descriptor_set, kinds)?;
        if let Some(next) = next {
            self.inner.current.store(Arc::new(next));
        }
        Ok(registered)
    }

    /// Whether `kind` was registered.
    pub fn is_registered(&self, kind: &str) -> bool {
        self.inner.current.load().kind(kind).is_some()
    }

    /// How many kinds were registered.
    pub(crate) fn count(&self) -> usize {
        self.inner.current.load().kinds().count()
    }

    /// All registered kinds, in order.
    pub fn kinds(&self) -> Vec<String> {
        self.inner.current.load().kinds().map(ToOwned::to_owned).collect()
    }

    /// The registered kind whose name is most like `kind`, for error messages.
    pub fn nearest_kind(&self, kind: &str) -> Option<String> {
        nimbus_core::nearest(kind, self.inner.current.load().kinds())
    }

    /// Whether `bytes` decode as a message of `kind`; those of a kind that is not registered always do.
    ///
    /// Unknown fields and extensions need only be well-formed, so that older descriptors accept newer objects.
    ///
    /// # Errors
    ///
    /// Says which field at which byte is wrong, and how.
    pub fn check(&self, kind: &str, bytes: &[u8]) -> Result<(), String> {
        match self.inner.current.load().kind(kind) {
            Some(message) => check::check(message, bytes),
            None => Ok(()),
        }
    }

    /// The value at `path` in an encoded message of `kind`, as text: an enum by name, numbers in decimal.
    ///
    /// Parts of the path are field names as in the proto file or as in JSON. A field without presence that is not set
    /// has its default; one with presence that is not set, itself or a message around it, has none. Also none: no such
    /// path ([`Schemas::check_field`] says why), a kind that is not registered, malformed bytes.
    pub fn field(&self, kind: &str, bytes: &[u8], path: &[&str]) -> Option<String> {
        let current = self.inner.current.load();
        field::read(&field::resolve(current.kind(kind)?, path).ok()?, bytes)
    }

    /// Whether [`Schemas::field`] can read `path` in messages of `kind`, and it is no secret.
    pub fn has_field(&self, kind: &str, path: &[&str]) -> bool {
        self.check_field(kind, path).is_ok()
    }

    /// The same as [`Schemas::has_field`], with the reason.
    ///
    /// # Errors
    ///
    /// Says why the path cannot be read, with the nearest field if a name is unknown.
    pub fn check_field(&self, kind: &str, path: &[&str]) -> Result<(), String> {
        let current = self.inner.current.load();
        let Some(message) = current.kind(kind) else {
            return Err(format!("kind {kind} is not registered, so its fields are unknown"));
        };
        field::resolve(message, path).and_then(|steps| field::check_secrets(&steps))
    }

    /// What an object refers to by what is in its spec, as its schema says; nothing if that says nothing.
    ///
    /// # Errors
    ///
    /// Says which field names what no object can be called, and what is wrong with it.
    pub fn references(&self, key: &ObjectKey, spec: &[u8]) -> Result<Arc<[Reference]>, String> {
        let completed = self.declared().complete(key, spec, Arc::default(), usize::MAX);
        completed.map_err(|flaw| nimbus_store::Reason::from(flaw).to_string())
    }

    /// What objects refer to by what their specs say. Never changes; a later registration makes another.
    pub(crate) fn declared(&self) -> Arc<Declared> {
        self.inner.current.load().declared.clone()
    }

    /// What is known now. Never changes; a later registration makes another.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.inner.current.load_full()
    }
}

impl Default for Schemas {
    fn default() -> Self {
        Self::new(SchemaLimits::default())
    }
}

impl fmt::Debug for Schemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schemas").field("kinds", &self.kinds()).finish_non_exhaustive()
    }
}
