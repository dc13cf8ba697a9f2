//! What not all objects have.

use std::sync::Arc;

use nimbus_core::{Annotations, Audience, Digest, Finalizers, Labels, LeafHasher, Reference};

use crate::record::{Decision, encode::audience_field};

/// What not all objects have. Labels are as much as is kept here: they need no piece of memory of their own.
#[derive(Debug, Clone)]
pub(crate) enum Rest {
    Labels(Labels),
    /// Something else, and labels with it; or nothing.
    More(Option<Box<More>>),
}

/// What few objects have, and their labels.
#[derive(Debug, Clone, Default)]
pub(crate) struct More {
    labels: Labels,
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
    /// What there is of that.
    pub(crate) fn new(content: &Decision<'_>) -> Self {
        Self::of(content.labels, More::new(content))
    }

    /// The same for everyone.
    pub(crate) fn without_audience(&self) -> Self {
        match self {
            Self::More(Some(more)) => Self::of(&more.labels, more.without_audience()),
            few => few.clone(),
        }
    }

    /// The labels, if there are any.
    pub(crate) fn labels(&self) -> Option<&Labels> {
        match self {
            Self::Labels(labels) => Some(labels),
            Self::More(more) => more.as_deref().map(|more| &more.labels),
        }
    }

    /// What few objects have, if there is anything of it.
    pub(crate) fn more(&self) -> Option<&More> {
        match self {
            Self::Labels(_) => None,
            Self::More(more) => more.as_deref(),
        }
    }

    fn of(labels: &Labels, more: Option<More>) -> Self {
        match more {
            None if !labels.is_empty() => Self::Labels(labels.clone()),
            more => Self::More(more.map(Box::new)),
        }
    }
}

// === impl More ===

impl More {
    /// What there is of that, if anything.
    pub(crate) fn new(content: &Decision<'_>) -> Option<Self> {
        let Decision { labels, refs, annotations, finalizers, deleting, audience, .. } = *content;
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
            labels: labels.clone(),
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
        let Self { labels, refs, annotations, finalizers, deleting, .. } = self;
        let none = refs.is_empty() && annotations.is_empty() && finalizers.is_empty() && !deleting;
        (!none).then(|| Self {
            labels: labels.clone(),
            refs: refs.clone(),
            annotations: annotations.clone(),
            finalizers: finalizers.clone(),
            deleting: *deleting,
            ..Self::default()
        })
    }
}
