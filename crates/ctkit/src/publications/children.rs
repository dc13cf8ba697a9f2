//! The children of one owner.

use nimbus_core::ObjectKey;

/// The children of one owner, each once. Most owners have one, which takes no allocation.
#[derive(Debug, Default)]
pub(crate) enum Children {
    #[default]
    None,
    One(ObjectKey),
    Many(Vec<ObjectKey>),
}

// === impl Children ===

impl Children {
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, ObjectKey> {
        match self {
            Self::None => [].iter(),
            Self::One(child) => std::slice::from_ref(child).iter(),
            Self::Many(children) => children.iter(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.iter().len() == 0
    }

    /// Adds a child that is not there yet.
    pub(crate) fn push(&mut self, child: ObjectKey) {
        *self = match std::mem::take(self) {
            Self::None => Self::One(child),
            Self::One(first) => Self::Many(vec![first, child]),
            Self::Many(mut children) => {
                children.push(child);
                Self::Many(children)
            }
        };
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&ObjectKey) -> bool) {
        match self {
            Self::None => {}
            Self::One(child) if keep(child) => {}
            Self::One(_) => *self = Self::None,
            Self::Many(children) => children.retain(keep),
        }
    }
}
