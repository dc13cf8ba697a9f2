//! Objects as the store takes them.

use std::sync::Arc;

use bytes::Bytes;
use nimbus_core::{
    Annotations, Audience, DraftParts, Generation, InvalidDraft, Labels, ObjectKey, Owner, PublisherId, Reference,
    Revision, Spec, Uid,
};

use crate::record::encode_draft;

/// An object as its publisher wants it, whatever its kind.
///
/// ```
/// # use nimbus_core::Draft;
/// # use nimbus_wire::v1::Key;
/// let typed = Draft::new("greeting", Key::default()).for_label("zone", "a");
/// assert_eq!(nimbus_store::Draft::try_from(typed)?.key.name(), "greeting");
/// # Ok::<(), nimbus_core::InvalidDraft>(())
/// ```
#[derive(Debug, Clone)]
pub struct Draft {
    /// Its name.
    pub key: ObjectKey,
    /// This life of it; if the publisher does not say, it is derived from the name and its earlier lives.
    pub uid: Option<Uid>,
    /// If the publisher does not say, the store counts.
    pub generation: Option<Generation>,
    /// What selectors look at.
    pub labels: Labels,
    /// What it needs.
    pub refs: Arc<[Reference]>,
    /// On whose behalf it exists.
    pub owner: Option<Owner>,
    /// Notes for people and programs.
    pub annotations: Annotations,
    /// Whom it is for.
    pub audience: Audience,
    /// An encoded `Any`.
    pub spec: Bytes,
}

// === impl Draft ===

impl Draft {
    /// The object as an observer would see it, if it were taken like this: encoded, without a [`Record`](crate::Record)
    /// in between.
    pub fn encoded(&self, manager: &PublisherId, revision: Revision) -> Vec<u8> {
        encode_draft(self, manager, revision)
    }
}

impl<K: Spec> TryFrom<nimbus_core::Draft<K>> for Draft {
    type Error = InvalidDraft;

    /// Checks a draft and packs its spec, so that drafts of all kinds are one type.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    fn try_from(draft: nimbus_core::Draft<K>) -> Result<Self, InvalidDraft> {
        let DraftParts { key, uid, generation, labels, annotations, audience, refs, owner, spec, .. } =
            draft.into_parts()?;
        let spec = spec.pack_to_vec().into();
        Ok(Self { key, uid, generation, labels, refs, owner, annotations, audience, spec })
    }
}

#[cfg(test)]
mod tests;
