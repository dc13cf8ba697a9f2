//! What a subscriber makes of the objects that come.

use nimbus_core::{Digest, Invalid, ObjectKey, Revision};
use nimbus_wire::v1;

/// What a subscriber makes of the objects that come.
///
/// A mirror needs little of an object: its name, which life and revision of it this is, who manages it, and the digest
/// that the bus gave it.
pub trait Held: Clone {
    /// Takes an object from the bus.
    ///
    /// # Errors
    /// If it makes no sense to this subscriber, who then gives up the connection. One who can go on without the object
    /// takes it nevertheless: the bus counts it.
    fn read(object: v1::Object, digest: Digest) -> Result<Self, Invalid>;

    /// Its name.
    fn key(&self) -> &ObjectKey;

    /// This life of the name.
    fn uid(&self) -> &str;

    /// When anything last changed.
    fn revision(&self) -> Revision;

    /// The publisher that owns the spec; empty if nobody does.
    fn manager(&self) -> &str;

    /// Stands for everything in it but the revision.
    fn digest(&self) -> Digest;

    /// What stays of it in the mirror. Whoever keeps the objects elsewhere leaves out what is large.
    #[must_use]
    fn kept(&self) -> Self {
        self.clone()
    }
}
