//! What few objects have.

use std::{ops::Range, sync::Arc};

use nimbus_core::{Annotations, Audience, Digest, Finalizers, Labels, LeafHasher, Reference};

use crate::record::{Content, encode::audience_field};

/// What few objects have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rest {
    pub(crate) labels: Labels,
    pub(crate) refs: Arc<[Reference]>,
    /// Where the owner lies, within the head.
    pub(crate) owner: Option<Range<usize>>,
    pub(crate) annotations: Annotations,
    pub(crate) finalizers: Finalizers,
    pub(crate) deleting: bool,
    pub(crate) audience: Audience,
    /// As an encoded field of the object; empty for everyone.
    pub(crate) audience_field: Box<[u8]>,
    /// Mixed into the leaf for observers, who see the audience as well.
    pub(crate) audience_leaf: Digest,
}

// === impl Rest ===

impl Rest {
    /// What there is of that, if anything.
    pub(crate) fn new(content: &Content, owner: Option<Range<usize>>) -> Option<Self> {
        let Content { labels, refs, annotations, finalizers, deleting, audience, .. } = content;
        let none = labels.is_empty()
            && refs.is_empty()
            && owner.is_none()
            && annotations.is_empty()
            && finalizers.is_empty()
            && !deleting
            && *audience == Audience::Everyone;
        if none {
            return None;
        }
        let audience_field = audience_field(audience);
        let audience_leaf = if audience_field.is_empty() {
            Digest::ZERO
        } else {
            let mut hasher = LeafHasher::extra();
            hasher.part(&audience_field);
            hasher.finish()
        };
        Some(Self {
            labels: labels.clone(),
            refs: refs.clone(),
            owner,
            annotations: annotations.clone(),
            finalizers: finalizers.clone(),
            deleting: *deleting,
            audience: audience.clone(),
            audience_field,
            audience_leaf,
        })
    }

    /// The same for everyone, if anything is left of it then.
    pub(crate) fn without_audience(&self) -> Option<Self> {
        let Self { labels, refs, owner, annotations, finalizers, deleting, .. } = self;
        let none = labels.is_empty()
            && refs.is_empty()
            && owner.is_none()
            && annotations.is_empty()
            && finalizers.is_empty()
            && !deleting;
        (!none).then(|| Self {
            labels: labels.clone(),
            refs: refs.clone(),
            owner: owner.clone(),
            annotations: annotations.clone(),
            finalizers: finalizers.clone(),
            deleting: *deleting,
            ..Self::default()
        })
    }
}
