//! What not all objects have.

use std::{ops::Range, sync::Arc};

use nimbus_core::{Annotations, Audience, Digest, Finalizers, Labels, LeafHasher, Reference};

use crate::record::{Decision, encode::audience_field};

/// What not all objects have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rest {
    pub(crate) labels: Labels,
    /// Where the owner lies, within the head.
    pub(crate) owner: Option<Range<u32>>,
    pub(crate) more: Option<Box<More>>,
}

/// What few objects have.
#[derive(Debug, Clone, Default)]
pub(crate) struct More {
    pub(crate) refs: Arc<[Reference]>,
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
    pub(crate) fn new(content: &Decision<'_>, owner: Option<Range<usize>>) -> Option<Self> {
        let labels = content.labels.clone();
        let place = |at: usize| u32::try_from(at).expect("object size is limited");
        let owner = owner.map(|owner| place(owner.start)..place(owner.end));
        Self { labels, owner, more: More::new(content).map(Box::new) }.if_any()
    }

    /// The same for everyone, if anything is left of it then.
    pub(crate) fn without_audience(&self) -> Option<Self> {
        let Self { labels, owner, more } = self;
        let more = more.as_deref().and_then(More::without_audience).map(Box::new);
        Self { labels: labels.clone(), owner: owner.clone(), more }.if_any()
    }

    fn if_any(self) -> Option<Self> {
        let none = self.labels.is_empty() && self.owner.is_none() && self.more.is_none();
        (!none).then_some(self)
    }
}

// === impl More ===

impl More {
    /// What there is of that, if anything.
    pub(crate) fn new(content: &Decision<'_>) -> Option<Self> {
        let Decision { refs, annotations, finalizers, deleting, audience, .. } = *content;
        let none = refs.is_empty()
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
            refs: refs.clone(),
            annotations: annotations.clone(),
            finalizers: finalizers.clone(),
            deleting,
            audience: audience.clone(),
            audience_field,
            audience_leaf,
        })
    }

    /// The same for everyone, if anything is left of it then.
    pub(crate) fn without_audience(&self) -> Option<Self> {
        let Self { refs, annotations, finalizers, deleting, .. } = self;
        let none = refs.is_empty() && annotations.is_empty() && finalizers.is_empty() && !deleting;
        (!none).then(|| Self {
            refs: refs.clone(),
            annotations: annotations.clone(),
            finalizers: finalizers.clone(),
            deleting: *deleting,
            ..Self::default()
        })
    }
}
