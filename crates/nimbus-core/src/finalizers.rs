//! Who still has something to do before a delete is done.

use std::sync::Arc;

use crate::id::{Invalid, check_name};

/// Who still has something to do before a delete is done: names in their order, each once. Cheap to clone, and free if
/// there are none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Finalizers(Option<Arc<[Box<str>]>>);

// === impl Finalizers ===

impl Finalizers {
    /// Checks and takes names.
    ///
    /// # Errors
    /// If one of them is not a name.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, Invalid> {
        let checked = names.into_iter().map(|name| check_name("finalizer", name).map(|()| name.into()));
        let mut names: Vec<Box<str>> = checked.collect::<Result<_, _>>()?;
        names.sort_unstable();
        names.dedup();
        Ok(Self((!names.is_empty()).then(|| names.into())))
    }

    /// Whether this one is among them.
    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|one| one == name)
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|names| names.iter()).map(|name| &**name)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |names| names.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// These, with some more and without others.
    #[must_use]
    pub fn edited(&self, add: &Self, remove: &Self) -> Self {
        let mut names: Vec<Box<str>> = self
            .iter()
            .chain(add.iter())
            .filter(|name| !remove.contains(name))
            .map(Into::into)
            .collect();
        names.sort_unstable();
        names.dedup();
        Self((!names.is_empty()).then(|| names.into()))
    }

    /// The names as they travel.
    pub fn to_wire(&self) -> Vec<String> {
        self.iter().map(ToOwned::to_owned).collect()
    }
}
